//! The archive: benchmark runs on disk, in a file of their own, and their sums by day, which are all that a refresh reads.
//!
//! A batch is taken in whole or not at all, and is on the disk when it is acknowledged; known runs are known again by
//! their identifier. Runs begin to count when their days are summed up, at the end of an import, so that no score is
//! made from half of one. Several processes may use one archive: one writes at a time, readers never wait. Not for: where
//! runs come from (`cli`), nor for what is made of them.

mod file;
mod reading;
mod rows;
mod sums;
#[cfg(test)]
mod tests;
mod writing;

use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;

use crate::clock::Wall;

use super::hour::Hour;
use super::method;
use writing::DescriptionIds;

pub(super) use reading::NewestRuns;
pub use writing::RunInsertion;

/// The layout of a stored sum.
const SUMS: u32 = 2;
const HOURS_OF_A_DAY: u64 = 24;
/// Days are numbered `model * DAYS + day`, so that the days of a model lie together. Enough for 2,700 years.
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
        /// What is wrong.
        error: rusqlite::Error,
    },
    /// The file is something else.
    #[error("{} is a database but not an archive of runs; use another file", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was made by a newer version.
    #[error("the archive {} has format {found}, but this version supports {known}; use a newer version", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i32,
        /// The newest format known here.
        known: i32,
    },
    /// The file lies where it cannot be used.
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
        /// What was found.
        what: String,
    },
    /// Another version has summed the days up.
    #[error("the archive {} was aggregated by another version; restart this program", .path.display())]
    OtherMethod {
        /// The file.
        path: PathBuf,
    },
}

/// Something that was stored and cannot be read back.
#[derive(Debug)]
struct Damage(String);

/// Why work on the archive failed, before it is said where.
#[derive(Debug)]
enum Trouble {
    File(rusqlite::Error),
    Damage(Damage),
    OtherMethod,
}

impl Archive {
    /// Opens an archive; makes it if it is missing.
    ///
    /// One that another version has summed up is summed up anew, as far as `now` needs it: that takes seconds for a
    /// large one.
    pub fn open(path: &Path, now: Wall) -> Result<Self, ArchiveError> {
        let connection = file::open(path, &summed_by())?;
        let archive = Self {
            path: path.to_owned(),
            inside: Mutex::new(Inside { connection, described: DescriptionIds::default() }),
        };
        archive.adopt(now)?;
        Ok(archive)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are no runs in it that count.
    pub fn is_empty(&self) -> Result<bool, ArchiveError> {
        let ask = "SELECT NOT EXISTS (SELECT 1 FROM day)";
        let answer = self.inside().connection.query_row(ask, [], |row| row.get(0));
        answer.map_err(|error| ArchiveError::of(&self.path, error))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // A transaction that a panic left open was rolled back with its guard.
        self.inside.lock()
    }

    fn told(&self, trouble: Trouble) -> ArchiveError {
        let path = self.path.clone();
        match trouble {
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

/// What would do.
fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "; make room on its disk and import the same file again",
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; another import is writing to it: try again",
        Some(rusqlite::ErrorCode::CannotOpen) => "; does its directory exist, and may it be written?",
        Some(rusqlite::ErrorCode::ReadOnly) => "; may it and its directory be written?",
        Some(_) | None => "",
    }
}

/// Who makes sums such as ours.
fn summed_by() -> String {
    format!("{} {SUMS}", method::METHOD_VERSION)
}

/// The number of the day of a model that an hour lies in.
fn day_number(model: i64, hour: Hour) -> i64 {
    let day = i64::try_from(hour.number() / HOURS_OF_A_DAY).unwrap_or(DAYS - 1);
    model * DAYS + day.min(DAYS - 1)
}
