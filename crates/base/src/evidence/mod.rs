//! Evidence of how an application uses the service: each gateway's hourly observations, and the daily record into which they are
//! merged.
//!
//! The code is pure, and memory use is bounded. Addresses are not kept: networks and user agents are mapped to
//! positions in small bit sets by a hash with a key that changes every day. Sets can be merged repeatedly and in any
//! order, so the order in which gateways report does not matter.

mod bit_set;
mod codec;
mod day;
mod hour;
pub mod judgement;
mod mark;

pub use bit_set::BitSet;
pub use codec::BadEvidence;
pub use day::{DayEvidence, EVIDENCE_DAYS_KEPT, HourSummary};
pub use hour::{HourCounts, HourEvidence, Origin};
pub use mark::{DocumentMark, catalogue_size, model_position};
