//! The archive: benchmark runs on disk, in a file of their own, and their daily aggregates, which are all that a
//! refresh reads.
//!
//! A batch is stored completely or not at all, and is synced when it is acknowledged; known runs are recognised by
//! their id. Runs count once their days are aggregated, when no import is running, so that no score is computed from a
//! partial import. Several processes may use one archive: one writes at a time, readers never wait. Runs are read
//! from files in `cli`.

mod audit;
mod changing;
mod file;
mod importing;
mod incident_records;
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
mod tests_of_formats;
#[cfg(test)]
mod tests_of_imports;
#[cfg(test)]
mod tests_of_incidents;
mod writing;

use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;

use crate::clock::Wall;

use super::hour::Hour;
use super::run::SuiteTable;
use writing::DescriptionIds;

pub use audit::{ChangeAuthor, RunChange, RunChangeKind};
pub use changing::{RefusedRunChange, RunChangeError};
pub use importing::{ImportEnd, RunningImport};
pub use incident_records::IncidentRetractionError;
pub(super) use incident_records::IncidentScanRecord;
pub(super) use reading::{ArchivedModel, NewestRuns};
pub use writing::RunInsertion;

/// Version of the format of aggregates.
const SUMS: u32 = 6;
const HOURS_OF_A_DAY: u64 = 24;
/// Days are numbered `model * DAYS + day`, so that the days of a model are contiguous. Sufficient for 2,700 years.
const DAYS: i64 = 1_000_000;

/// Benchmark runs on disk.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    connection: Connection,
    described: DescriptionIds,
}

/// Why an archive cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be read or written.
    #[error("the archive {} cannot be used: {error}{}", .path.display(), remedy(.error))]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: rusqlite::Error,
    },
    /// The file is not an archive.
    #[error("{} is not an archive of runs; use another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was created by a newer version.
    #[error("the archive {} has format {found}, but this version supports {known}; use a newer version", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest known format.
        known: i32,
    },
    /// The path cannot be used.
    #[error("the archive {} is on a file system without shared memory; move it to a local disk", .path.display())]
    Place {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the archive {} is damaged ({what}); restore a copy, or import its runs into a new archive", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The finding.
        what: String,
    },
    /// The lock of imports cannot be used.
    #[error("the lock of imports {} cannot be used: {error}; check that the file is readable", .path.display())]
    Lock {
        /// The locked file.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// Another version has aggregated the days.
    #[error("the archive {} was aggregated by another version; restart this program", .path.display())]
    OtherMethod {
        /// The file.
        path: PathBuf,
    },
}

/// Stored data that cannot be decoded.
#[derive(Debug)]
struct Damage(String);

/// An error before the path is known.
#[derive(Debug)]
enum Trouble {
    File(rusqlite::Error),
    Damage(Damage),
    OtherMethod,
}

impl Archive {
    /// Opens an archive; creates it if it is missing.
    ///
    /// If another version has aggregated it, the days needed for `now` are aggregated again: that takes seconds for a
    /// large one.
    pub fn open(path: &Path, now: Wall) -> Result<Self, ArchiveError> {
        let connection = file::open(path, &summed_by(&SuiteTable::default()))?;
        let archive = Self {
            path: path.to_owned(),
            inside: Mutex::new(Inside { connection, described: DescriptionIds::default() }),
        };
        archive.adopt(now)?;
        Ok(archive)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it contains no runs that count.
    pub fn is_empty(&self) -> Result<bool, ArchiveError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM day)";
        let answer = self.inside().connection.query_row(sql, [], |row| row.get(0));
        answer.map_err(|error| ArchiveError::of(&self.path, error))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // A transaction left open by a panic was rolled back with its guard.
        self.inside.lock()
    }

    fn to_error(&self, hint: Trouble) -> ArchiveError {
        let path = self.path.clone();
        match hint {
            Trouble::File(error) => ArchiveError::of(&path, error),
            Trouble::Damage(Damage(what)) => ArchiveError::Damaged { path, what },
            Trouble::OtherMethod => ArchiveError::OtherMethod { path },
        }
    }
}

impl ArchiveError {
    fn of(path: &Path, error: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign { path },
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Damaged { path, what: error.to_string() },
            Some(_) | None => Self::File { path, error },
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::File(error)
    }
}

impl From<Damage> for Trouble {
    fn from(damage: Damage) -> Self {
        Self::Damage(damage)
    }
}

/// The remedy.
fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "; free some disk space and import the same file again",
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; another import is writing to it: try again",
        Some(rusqlite::ErrorCode::CannotOpen) => "; check that its directory exists and is writable",
        Some(rusqlite::ErrorCode::ReadOnly) => "; check that the file and its directory are writable",
        Some(_) | None => "",
    }
}

/// Identifies the version of aggregates: they depend on the axes of the suites.
fn summed_by(suites: &SuiteTable) -> String {
    format!("{} {SUMS}", suites.method_version())
}

/// The number of a model's day that contains an hour.
fn day_number(model: i64, hour: Hour) -> i64 {
    let day = i64::try_from(hour.number() / HOURS_OF_A_DAY).unwrap_or(DAYS - 1);
    model * DAYS + day.min(DAYS - 1)
}
