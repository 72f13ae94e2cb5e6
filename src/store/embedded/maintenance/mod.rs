//! Operations on the store file as a whole: check, backup, export, import.
//!
//! None needs an open store; all except [`import()`] and [`close_future_days`] work while a server runs, and none
//! except [`close_future_days`] writes to the file it reads. Single keys are changed with `scoregate keys`.

mod backed_up;
mod dump;
mod dump_rows;
mod future_days;
mod import;
mod inspect;
mod load;
mod owner_rows;
mod read_only;
mod status_rows;
pub(super) mod swap;
mod transfer;
mod walk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::fault::StoreFault;
use super::paths::{CLOSED, HALF, remove_database, sync_directory, with_suffix};
use super::{file, schema};
use crate::clock::{Day, Wall};
use crate::store::StoreError;

pub use super::paths::recovery_steps;
pub use backed_up::{last_backup, record_backup};
pub use dump::{ExportSummary, export};
pub use future_days::{ClosedDays, close_command, close_future_days};
pub use import::{ImportOptions, ImportSummary, import};
pub use inspect::{InspectionReport, check};

/// Why an operation failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// There is no store.
    #[error("there is no store at {}; set the server's data directory with --data-dir or --config", .0.display())]
    NoStore(PathBuf),
    /// There is a store.
    #[error(
        "there is a store at {}; to replace it with a new one, move it away first",
        .0.display()
    )]
    IsThere(PathBuf),
    /// The output file exists.
    #[error("{} exists; use another name, or --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// The store would be replaced.
    #[error(
        "the store at {} holds {applications} applications; use --replace to move it aside", path.display()
    )]
    InUse {
        /// Its path.
        path: PathBuf,
        /// Its number of applications.
        applications: u64,
    },
    /// The file to be imported is unsuitable.
    #[error("{} cannot be imported: {reason}", path.display())]
    Unfit {
        /// Its path.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// The given date is not that of the machine's clock.
    #[error(
        "today is {} by this machine's clock ({}) and not {given}; correct the clock or pass today's date",
        clock.day(), clock.rfc3339()
    )]
    OtherDay {
        /// The given date.
        given: Day,
        /// The clock's time.
        clock: Wall,
    },
    /// The output cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MaintenanceError {
    /// Whether other arguments would help.
    pub const fn is_input(&self) -> bool {
        match self {
            Self::NoStore(_)
            | Self::IsThere(_)
            | Self::Exists(_)
            | Self::InUse { .. }
            | Self::Unfit { .. }
            | Self::OtherDay { .. } => true,
            Self::Unwritable { .. } | Self::Store(_) => false,
        }
    }
}

/// Puts the store out of use by giving it another name, which it returns. The directory must be locked.
pub fn close(directory: &Path, now: Wall) -> Result<PathBuf, MaintenanceError> {
    let path = file_in(directory);
    let closed = with_suffix(&path, &format!("{CLOSED}{}", swap::instant(now)));
    swap::rename(&path, &closed).map_err(|error| StoreFault::from(error).into_error("be closed", &path))?;
    Ok(closed)
}

/// Creates a new, empty store where the store is missing, despite traces of an old one. Files left by the old one are
/// renamed. The directory must be locked.
pub fn create_new(directory: &Path, now: Wall) -> Result<(), MaintenanceError> {
    let path = file_in(directory);
    if path.exists() {
        return Err(MaintenanceError::IsThere(path));
    }
    let made = swap::finish(&path).map_err(StoreFault::from).and_then(|()| {
        if path.exists() {
            return Ok(()); // an interrupted import was finished, so nothing was lost
        }
        swap::move_log_aside(&path, &swap::instant(now))?;
        file::make_new(&path, schema::STEPS)
    });
    made.map_err(|fault| fault.into_error("create its file", &path).into())
}

/// Whether a data directory contains a store, or traces of one.
pub fn is_used(directory: &Path) -> bool {
    let path = file_in(directory);
    path.exists() || file::missing(&path).is_some()
}

/// The store file of a data directory.
pub fn file_in(directory: &Path) -> PathBuf {
    directory.join(file::FILE_NAME)
}

/// Writes a complete copy of the store, accessible to its owner only, while a server may keep writing: the copy is a
/// snapshot. It gets its final name only after it was checked and synced.
pub fn back_up(directory: &Path, to: &Path, force: bool) -> Result<InspectionReport, MaintenanceError> {
    let path = file_in(directory);
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path));
    }
    if is_the_store(&path, to) || (to.exists() && !force) {
        return Err(MaintenanceError::Exists(to.to_owned()));
    }
    let half = with_suffix(to, HALF);
    let unwritable = |source| MaintenanceError::Unwritable { path: to.to_owned(), source };
    remove_database(&half).map_err(unwritable)?;
    let done = copied(&path, &half, to).and_then(|report| match report.faults.first() {
        None => Ok(report),
        Some(fault) => {
            let (path, reason) = (path.display().to_string(), fault.clone());
            Err(StoreError::Damaged { path, reason }.into())
        }
    });
    let kept = done.and_then(|report| {
        fs::rename(&half, to).and_then(|()| sync_directory(to)).map_err(unwritable)?;
        Ok(report)
    });
    if kept.is_err() {
        drop(remove_database(&half)); // its own errors are reported elsewhere
    }
    kept
}

/// Copies the store and checks the copy.
fn copied(path: &Path, half: &Path, to: &Path) -> Result<InspectionReport, MaintenanceError> {
    let copied = read_only::at(path, |store| {
        remove_database(half)?;
        file::copy(store, half)
    });
    copied.map_err(|fault| match fault {
        StoreFault::Disk(source) => MaintenanceError::Unwritable { path: to.to_owned(), source },
        other @ (StoreFault::Sql(_)
        | StoreFault::Record(_)
        | StoreFault::Disorder
        | StoreFault::Refused(_)) => other.into_error("be copied", path).into(),
    })?;
    let mut report = inspect::at(half).map_err(|fault| fault.into_error("read the copy", half))?;
    to.clone_into(&mut report.path);
    Ok(report)
}

/// Whether a path is the store itself, or belongs to it.
fn is_the_store(path: &Path, other: &Path) -> bool {
    let same = |mine: PathBuf| match (mine.canonicalize(), other.canonicalize()) {
        (Ok(mine), Ok(other)) => mine == other,
        _ => false,
    };
    ["", super::paths::LOG, super::paths::INDEX].iter().any(|ending| same(with_suffix(path, ending)))
}
