//! Why an archive cannot be used.

use std::path::{Path, PathBuf};

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

/// An error before the path is known.
#[derive(Debug)]
pub(super) enum Trouble {
    File(rusqlite::Error),
    /// Stored data cannot be decoded.
    Damage(String),
    OtherMethod,
}

impl ArchiveError {
    pub(super) fn of(path: &Path, error: rusqlite::Error) -> Self {
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

fn remedy(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => "; free some disk space and import the same file again",
        Some(rusqlite::ErrorCode::DatabaseBusy) => "; another import is writing to it: try again",
        Some(rusqlite::ErrorCode::CannotOpen) => "; check that its directory exists and is writable",
        Some(rusqlite::ErrorCode::ReadOnly) => "; check that the file and its directory are writable",
        Some(_) | None => "",
    }
}
