//! Applications whose use looks like misuse.

mod daily;
mod judged;

pub use daily::DailySuspects;
pub use judged::{EvidenceDayView, EvidenceHourView, EvidenceView, SuspectView, SuspectsView};
