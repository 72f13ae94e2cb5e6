//! The benchmark run: the only input of scores.
//!
//! Valid by construction, so that no statistic has to check whether a score is a number. What a failure means for the
//! score is defined by [`RunFailure`].

mod bad_run;
mod change_author;
mod model;
mod run_failure;
mod run_record;
mod suite_table;
mod suite_text;
mod trial;
mod written;
mod written_trial;

pub use bad_run::BadRun;
use bad_run::amount;
pub use change_author::{ChangeAuthor, ChangeReason};
pub use model::TestedModel;
pub use run_failure::RunFailure;
pub use run_record::{MAX_TRIALS, Run, RunOutcome};
pub use suite_table::{AxisSet, MAX_SUITES, SuiteEntry, SuiteTable};
pub use trial::Trial;
pub use written::{IdentifiedRun, LONGEST_RUN, RunId};
pub(super) use written::{WrittenModel, WrittenRun};
pub(super) use written_trial::{WrittenTrial, written_failed_trial};
