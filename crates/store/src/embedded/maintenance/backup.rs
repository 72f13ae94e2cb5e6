//! `scoregate store backup`: a complete copy of the store, while a server may keep writing.

use std::fs;
use std::path::Path;

use super::super::fault::StoreFault;
use super::super::file;
use super::super::paths::{HALF, remove_database, sync_directory, with_suffix};
use super::inspect::{self, InspectionReport};
use super::maintenance_error::MaintenanceError;
use super::read_only;
use super::store_file::{file_in, is_the_store};
use crate::StoreError;

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
