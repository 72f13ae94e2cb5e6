//! The built-in backend: scores models from benchmark runs, so that the gateway can run by itself on one machine.
//!
//! The results at one instant are a snapshot, computed by pure functions from the runs before a full hour, and again
//! after an import, and swapped as a whole, so that lists and details agree. Answers are rendered with the snapshot;
//! a query is a lookup. Parameters are those of [`scoregate_base::routes`]. Keys, tiers, envelopes and HTTP are handled by
//! the gateway, which also removes `latestScore` where required.

mod answer;
mod archive;
mod backend;
mod changes;
mod count;
mod drift;
mod endpoints;
mod export_line;
mod figures;
mod hour;
mod incident_scan;
#[cfg(any(test, feature = "lab"))]
pub mod lab;
mod levels;
mod losses;
mod measure;
mod method;
mod model_state;
mod noise;
mod period_scores;
mod presence;
mod ranks;
mod round_length;
mod run;
mod score_noise;
mod series;
mod simulate;
mod snapshot;
mod snapshot_updater;
mod statistics;
mod student;
mod suite;
#[cfg(test)]
mod tests;
mod tool_logs;

pub use answer::Answer;
pub use archive::{ARCHIVE_FORMAT, Archive, ArchiveError, RunImport, RunInsertion};
pub use backend::{Change, Scoring};
pub use export_line::ExportLine;
pub use incident_scan::incident::IncidentRecord;
#[cfg(any(test, feature = "lab"))]
pub use lab::simulated_load::simulated_records;
pub use method::METHOD_VERSION;
pub use run::{
    AxisSet, BadRun, ChangeAuthor, ChangeReason, IdentifiedRun, LONGEST_RUN, MAX_SUITES,
    MAX_TRIALS, Run, RunFailure, RunId, RunLine, RunOutcome, SuiteEntry, SuiteTable, TestedModel,
    Trial,
};
pub use simulate::sample_runs;
pub use snapshot::RunSource;
pub use snapshot_updater::{SnapshotUpdater, UpdateRequest, UpdateRequests, UpdateSnapshot};
#[cfg(any(test, feature = "lab"))]
pub use student::t_quantile;
pub use suite::{Axis, Suite};
pub use tool_logs::{
    EvaluationTool, LogMapping, LogProblem, LogVerdict, MappedRuns, log_files, read_log,
};
