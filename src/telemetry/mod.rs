//! What can be seen from outside while it runs: the table of metrics, the logs, and traces.
//!
//! Lowest layer: it knows words and numbers, not requests. What is counted when is `instruments`'s business and
//! that of the background tasks.

mod event_limits;
pub mod heaviest;
mod line_writer;
pub mod log;
mod memory_limit;
pub mod metrics;
mod process;
pub mod requests;
pub mod stripes;
pub mod trace;
