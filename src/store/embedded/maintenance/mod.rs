//! What an operator does with the file as a whole: check it, back it up, write it out, and put another in its place.
//!
//! Nothing here needs a store that is open; all but [`import()`] and [`close_future_days`] work while a server runs, and none writes to the file it
//! reads, but [`close_future_days`]. Not for: single keys (`scoregate keys`), nor for asking the operator anything.

mod backed_up;
mod dump;
mod dump_lines;
mod future_days;
mod import;
mod inspect;
mod load;
mod look;
pub(super) mod swap;
mod transfer;
mod walk;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::beside::{HALF, beside, remove_database, sync_directory};
use super::fault::StoreFault;
use super::{file, schema};
use crate::clock::{Day, Wall};
use crate::store::StoreError;

pub use super::beside::way_back;
pub use backed_up::{last_backup, record_backup};
pub use dump::{ExportSummary, export};
pub use dump_lines::RecordCounts;
pub use future_days::{ClosedDays, close_command, close_future_days};
pub use import::{ImportOptions, ImportSummary, import};
pub use inspect::{InspectionReport, check};

/// Why it could not be done. Nothing was changed.
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
    /// A file with that name is already there.
    #[error("{} exists; use another name, or --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// There is a store which would be replaced.
    #[error(
        "the store at {} holds {applications} applications; use --replace to move it aside", path.display()
    )]
    InUse {
        /// Where it lies.
        path: PathBuf,
        /// How many applications it has.
        applications: u64,
    },
    /// The file that was to be imported is not what it has to be.
    #[error("{} cannot be imported: {reason}", path.display())]
    Unfit {
        /// Where it lies.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Another date was said than the machine's clock shows.
    #[error(
        "today is {} by this machine's clock ({}) and not {said}: correct the clock, or pass the other date",
        clock.day(), clock.rfc3339()
    )]
    OtherDay {
        /// What was said.
        said: Day,
        /// What the clock shows.
        clock: Wall,
    },
    /// The output cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable {
        /// Where to.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MaintenanceError {
    /// Whether the operator can mend it by asking for something else.
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

/// Makes a new, empty store where there is none, whatever shows that there was one. What is left of the old one is put
/// aside. The directory must be held.
pub fn begin_anew(directory: &Path, now: Wall) -> Result<(), MaintenanceError> {
    let path = file_in(directory);
    if path.exists() {
        return Err(MaintenanceError::IsThere(path));
    }
    let made = swap::finish(&path).map_err(StoreFault::from).and_then(|()| {
        if path.exists() {
            return Ok(()); // an import that a crash cut off is finished, and is no loss
        }
        swap::put_aside(&path, &swap::instant(now))?;
        file::make_new(&path, schema::STEPS)
    });
    made.map_err(|fault| fault.told("make its file", &path).into())
}

/// Whether there is a store in a data directory, or something shows that there was one.
pub fn is_used(directory: &Path) -> bool {
    let path = file_in(directory);
    path.exists() || file::gone(&path).is_some()
}

/// The store's file in a data directory.
pub fn file_in(directory: &Path) -> PathBuf {
    directory.join(file::FILE_NAME)
}

/// Writes a whole copy of the store to a file for its owner alone, while a server may go on writing: the copy is what
/// was committed at one instant. Under its final name there is only ever a copy that was checked and is on the disk.
pub fn back_up(directory: &Path, to: &Path, force: bool) -> Result<InspectionReport, MaintenanceError> {
    let path = file_in(directory);
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path));
    }
    if is_the_store(&path, to) || (to.exists() && !force) {
        return Err(MaintenanceError::Exists(to.to_owned()));
    }
    let half = beside(to, HALF);
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
        drop(remove_database(&half)); // whatever is wrong with it was told already
    }
    kept
}

/// Copies the store and looks at the copy.
fn copied(path: &Path, half: &Path, to: &Path) -> Result<InspectionReport, MaintenanceError> {
    let copied = look::at(path, |store| {
        remove_database(half)?;
        file::copy(store, half)
    });
    copied.map_err(|fault| match fault {
        StoreFault::Disk(source) => MaintenanceError::Unwritable { path: to.to_owned(), source },
        other @ (StoreFault::Sql(_)
        | StoreFault::Record(_)
        | StoreFault::Disorder
        | StoreFault::Refused(_)) => other.told("be copied", path).into(),
    })?;
    let mut report = inspect::at(half).map_err(|fault| fault.told("read the copy", half))?;
    to.clone_into(&mut report.path);
    Ok(report)
}

/// Whether a path leads to the store itself, or to what belongs to it.
fn is_the_store(path: &Path, other: &Path) -> bool {
    let same = |mine: PathBuf| match (mine.canonicalize(), other.canonicalize()) {
        (Ok(mine), Ok(other)) => mine == other,
        _ => false,
    };
    ["", super::beside::LOG, super::beside::INDEX].iter().any(|ending| same(beside(path, ending)))
}
