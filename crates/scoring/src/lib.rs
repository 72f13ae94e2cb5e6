//! The built-in backend: scores models from benchmark runs, so that the gateway can run on one machine without another
//! service.
//!
//! A snapshot contains all results at a full hour. Pure functions compute it from the runs before that hour, and again after an
//! import. It is swapped as a whole, so that lists and details are consistent. Answers are rendered together with
//! the snapshot, so a query is a lookup. [`scoregate_base::routes`] defines the parameters. The gateway handles keys,
//! tiers, envelopes and HTTP, and removes `latestScore` where required.

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
