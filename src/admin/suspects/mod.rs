//! Applications whose use looks like misuse.

mod judged;

pub use judged::{EvidenceDayView, EvidenceHourView, EvidenceView, FigureView, SuspectView, SuspectsView};
