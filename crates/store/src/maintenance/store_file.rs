//! The store file of a data directory: finding, creating and closing it.

use std::path::{Path, PathBuf};

use super::maintenance_error::{MaintenanceError, MaintenanceResult};
use crate::{
    durable_file::{INDEX, LOG, with_suffix},
    embedded::{file, paths::CLOSED, swap},
    statements::{Fault, schema::STEPS},
};
use scoregate_base::clock::Wall;

/// Renames the store file, so that it is out of use, and returns the new path. The caller must hold the lock of the
/// directory.
pub fn close(directory: &Path, now: Wall) -> MaintenanceResult<PathBuf> {
    let path = file_in(directory);
    let closed = with_suffix(&path, &format!("{CLOSED}{}", swap::instant(now)));
    swap::rename(&path, &closed)
        .map_err(|error| Fault::from(error).into_error("be closed", &path))?;
    Ok(closed)
}

/// Creates a new, empty store if the store file is missing, even if files of an old store are left. These files are
/// renamed. The caller must hold the lock of the directory.
pub fn create_new(directory: &Path, now: Wall) -> MaintenanceResult<()> {
    let path = file_in(directory);
    if path.exists() {
        return Err(MaintenanceError::IsThere(path));
    }
    let made = swap::finish(&path).map_err(Fault::from).and_then(|()| {
        if path.exists() {
            return Ok(()); // an interrupted import was completed, so nothing was lost
        }
        swap::move_log_aside(&path, &swap::instant(now))?;
        file::make_new(&path, STEPS)
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

/// Whether a path is the store file or one of its log files.
pub fn is_the_store(path: &Path, other: &Path) -> bool {
    ["", LOG, INDEX].iter().any(|ending| {
        let mine = with_suffix(path, ending).canonicalize();
        mine.is_ok_and(|mine| other.canonicalize().is_ok_and(|other| mine == other))
    })
}
