//! The archive: benchmark runs on disk, in a separate file.
//!
//! An import is one transaction, so that an import that is killed leaves no trace. Known runs are recognised by their
//! ids. A refresh reads the runs of the window. Several processes may share an archive. Only one writes at a time, and
//! readers never wait. `cli` reads runs from files.

mod archive_error;
mod deletion;
mod file;
mod import;
mod incident_records;
mod opened;
mod query;
mod reading;
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_descriptions;
#[cfg(test)]
mod tests_of_incidents;

use archive_error::Trouble;

pub use archive_error::ArchiveError;
pub use file::FORMAT as ARCHIVE_FORMAT;
pub use import::RunImport;
pub use incident_records::IncidentScanRecord;
pub use opened::Archive;
pub use reading::{ArchivedModel, NewestRuns};
pub use rows::RunInsertion;
