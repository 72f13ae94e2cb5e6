//! Evidence of how an application uses the service: the observations of each gateway in an hour, and the record of a day
//! that is merged from them.
//!
//! Pure, and bounded in memory. No address is kept: networks and user agents are positions in small bit sets, by a keyed
//! hash whose key changes every day. Merging is idempotent for sets, so the order in which gateways report does not matter.

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
