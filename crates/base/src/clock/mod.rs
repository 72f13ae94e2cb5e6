//! The only source of time, with a manual clock for tests.
//!
//! Every decision takes a [`Now`] as an argument, and every wait is in this module. A test can therefore move the whole
//! gateway an hour ahead in a millisecond. Steps of the wall clock are handled in `steps`.

mod alarm;
mod instants;
mod steps;
mod time_source;

pub use alarm::Alarm;
pub use instants::{BadDay, BadTimestamp, Day, Mono, Now, Wall};
pub use steps::{ClockEvent, StepDirection};
use time_source::ClockSource;
pub use time_source::{Clock, DeadlineExceeded, ManualClock};
