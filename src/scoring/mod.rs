//! The built-in backend: scores models from benchmark runs, so that the gateway can run by itself on one machine.
//!
//! The results at one instant are a snapshot, computed by pure functions from the runs before a full hour, and again
//! after an import, and swapped as a whole, so that lists and details agree. Answers are rendered with the snapshot;
//! a query is a lookup. Parameters are those of [`crate::routes`]. Keys, tiers, envelopes and HTTP are handled by
//! the gateway, which also removes `latestScore` where required.

mod alert_baseline;
mod answer;
mod archive;
mod backend;
mod catalogue;
mod changes;
mod count;
#[cfg(any(test, feature = "lab"))]
pub mod coverage;
mod degradation_scan;
#[cfg(any(test, feature = "lab"))]
pub mod detection;
mod drift;
mod endpoints;
mod export_line;
mod figures;
mod hour;
mod incident;
mod incident_line;
mod incidents;
mod losses;
mod measure;
mod method;
mod model_state;
mod outage_scan;
mod page_hinkley;
mod peer_noise;
mod period_scores;
mod presence;
mod round_count;
mod round_length;
mod round_noise;
mod run;
mod score_noise;
mod series;
mod simulate;
#[cfg(any(test, feature = "lab"))]
mod simulated_load;
#[cfg(any(test, feature = "lab"))]
mod simulated_noise;
mod snapshot;
mod snapshot_updater;
mod statistics;
mod student;
#[cfg(test)]
mod tests;
mod tool_logs;
mod weekly_cycle;

pub use answer::Answer;
pub use archive::{
    Archive, ArchiveError, ChangeAuthor, ImportEnd, IncidentRetractionError, RefusedRunChange, RunChange,
    RunChangeError, RunChangeKind, RunInsertion, RunningImport,
};
pub use backend::{Change, Scoring};
pub use export_line::ExportLine;
pub use incident::{IncidentRecord, IncidentRetraction, ScanPosition};
pub use method::METHOD_VERSION;
pub use run::{
    Axis, AxisSet, BadRun, BadSuiteTable, ChangeReason, IdentifiedRun, LONGEST_RUN, MAX_SUITES, MAX_TRIALS,
    Run, RunFailure, RunId, RunOutcome, Suite, SuiteEntry, SuiteTable, TestedModel, Trial, Withdrawal,
};
#[cfg(any(test, feature = "lab"))]
pub use simulated_load::simulated_records;
pub use snapshot::RunSource;
pub use snapshot_updater::{SnapshotUpdater, UpdateRequest, UpdateRequests, UpdateSnapshot};
pub use tool_logs::{EvaluationTool, LogMapping, LogProblem, LogVerdict, MappedRuns, log_files, read_log};
