//! The archive: benchmark runs on disk, in a file of their own, and their daily aggregates, which are all that a
//! refresh reads.
//!
//! A batch is stored completely or not at all, and is synced when it is acknowledged; known runs are recognised by
//! their id. Runs count once their days are aggregated, when no import is running, so that no score is computed from a
//! partial import. Several processes may use one archive: one writes at a time, readers never wait. Runs are read
//! from files in `cli`.

mod archive_error;
mod audit;
mod changing;
mod day_number;
mod description_ids;
mod file;
mod importing;
mod incident_records;
mod opened;
mod query;
mod reading;
mod rows;
mod suites;
mod sums;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_changes;
#[cfg(test)]
mod tests_of_descriptions;
#[cfg(test)]
mod tests_of_imports;
#[cfg(test)]
mod tests_of_incidents;
mod writing;

use archive_error::Trouble;
use day_number::{DAYS, HOURS_OF_A_DAY, day_number, summed_by};

pub use archive_error::ArchiveError;
pub use audit::{RunChange, RunChangeKind};
pub use changing::{RefusedRunChange, RunChangeError, RunChangeObstacle};
pub use file::FORMAT as ARCHIVE_FORMAT;
pub use importing::{ImportEnd, RunningImport};
pub use incident_records::IncidentRetractionError;
pub(super) use incident_records::IncidentScanRecord;
pub use opened::Archive;
pub(super) use reading::{ArchivedModel, NewestRuns};
pub use writing::RunInsertion;
