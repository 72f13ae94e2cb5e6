//! The reasons why an archive cannot be used.

use std::{fmt, path::PathBuf};

use rusqlite::types::FromSqlError;

/// Why an archive cannot be used.
#[derive(Debug)]
pub struct ArchiveError {
    /// Path of the archive.
    pub(super) path: PathBuf,
    pub(super) trouble: Trouble,
}

/// The problem with a file.
#[derive(Debug)]
pub enum Trouble {
    /// The file cannot be read or written.
    File(rusqlite::Error),
    /// The file is not an archive.
    Foreign,
    /// The file has the format of a newer version.
    Newer { found: i32, known: i32 },
    /// The file is on a file system where it cannot be shared.
    Place,
    /// The data in the file cannot be decoded.
    Damage(String),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.trouble {
            Trouble::File(error) => write!(
                f,
                "the archive {path} cannot be used: {error}{}",
                remedy(error)
            ),
            Trouble::Foreign => write!(f, "{path} is not an archive of runs; use another file"),
            Trouble::Newer { found, known } => write!(
                f,
                "the archive {path} has format {found}, but this version supports {known}; use a newer version"
            ),
            Trouble::Place => {
                write!(
                    f,
                    "the archive {path} is on a file system without shared memory; move it to a local disk"
                )
            }
            Trouble::Damage(what) => write!(
                f,
                "the archive {path} is damaged ({what}); restore a copy, or import its runs into a new archive"
            ),
        }
    }
}

impl std::error::Error for ArchiveError {}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => Self::Foreign,
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => Self::Damage(error.to_string()),
            Some(_) | None => Self::File(error),
        }
    }
}

impl From<FromSqlError> for Trouble {
    fn from(error: FromSqlError) -> Self {
        Self::Damage(error.to_string())
    }
}

fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => {
            "; free some disk space and import the same file again"
        }
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; another import is writing to it: try again",
        Some(rusqlite::ErrorCode::CannotOpen) => {
            "; check that its directory exists and is writable"
        }
        Some(rusqlite::ErrorCode::ReadOnly) => {
            "; check that the file and its directory are writable"
        }
        Some(_) | None => "",
    }
}
