//! The benchmark run, which is the only input to the scores.
//!
//! Runs are valid by construction, so that no statistic has to check whether a score is a number. [`RunFailure`]
//! defines what a failure means for the score.

mod bad_run;
mod change_author;
mod model;
mod run_failure;
mod run_id;
mod run_line;
mod run_record;
mod suite_table;
mod suite_text;
mod trial;
mod trial_line;

pub use bad_run::BadRun;
pub use change_author::{ChangeAuthor, ChangeReason};
pub use model::TestedModel;
pub use run_failure::RunFailure;
pub use run_id::RunId;
pub use run_line::{LONGEST_RUN, RunLine};
pub use run_record::{IdentifiedRun, MAX_TRIALS, Run, RunOutcome};
pub use suite_table::{AxisSet, MAX_SUITES, SuiteEntry, SuiteTable};
pub use trial::Trial;
pub use trial_line::{TrialLine, TrialScores};
