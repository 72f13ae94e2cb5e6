//! `scoregate store backup`: a complete copy of the store, while a server may keep writing.

use std::{
    fs, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use super::{
    inspect::{self, InspectionReport},
    maintenance_error::{MaintenanceError, MaintenanceResult},
    read_only, seal,
    store_file::{file_in, is_the_store},
};
use crate::{
    StoreError,
    durable_file::{HALF, remove_database, sync_directory, with_suffix},
    embedded::{file, swap},
    statements::Fault,
};
use scoregate_base::clock::Wall;

/// The names of dated backups: prefix and suffix around the time.
const DATED: [&str; 2] = ["scoregate-", ".db"];

/// Writes a complete copy of the store, accessible to its owner only, while a server may keep writing. The copy is a
/// snapshot with a checksum. It gets its final name only after it has been checked and synced.
pub fn back_up(directory: &Path, to: &Path, force: bool) -> MaintenanceResult<InspectionReport> {
    let path = file_in(directory);
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path));
    }
    if is_the_store(&path, to) || (to.exists() && !force) {
        return Err(MaintenanceError::Exists(to.to_owned()));
    }
    let half = with_suffix(to, HALF);
    let unwritable = |source| MaintenanceError::Unwritable {
        path: to.to_owned(),
        source,
    };
    remove_database(&half).map_err(unwritable)?;
    let done = copied(&path, &half, to).and_then(|report| match report.faults.first() {
        None => Ok(report),
        Some(fault) => {
            let path = path.display().to_string();
            let reason = fault.clone();
            Err(StoreError::Damaged { path, reason }.into())
        }
    });
    let kept = done.and_then(|report| {
        fs::rename(&half, to)
            .and_then(|()| sync_directory(to))
            .map_err(unwritable)?;
        Ok(report)
    });
    if kept.is_err() {
        drop(remove_database(&half)); // the original error is more important
    }
    kept
}

/// Copies the store and checks the copy.
fn copied(path: &Path, half: &Path, to: &Path) -> MaintenanceResult<InspectionReport> {
    let copied = read_only::at(path, |store| {
        remove_database(half)?;
        file::copy(&store.lock(), half)?;
        Ok(seal::seal(half)?)
    });
    copied.map_err(|fault| {
        if let Fault::Disk(source) = fault {
            return MaintenanceError::Unwritable {
                path: to.to_owned(),
                source,
            };
        }
        fault.into_error("be copied", path).into()
    })?;
    let mut report = inspect::at(half).map_err(|fault| fault.into_error("read the copy", half))?;
    to.clone_into(&mut report.path);
    Ok(report)
}

/// The path for a dated backup in a directory. Removes unfinished backups there. The directory must exist, because it
/// may be on a disk that is not mounted.
pub fn dated(directory: &Path, now: Wall) -> MaintenanceResult<PathBuf> {
    let [prefix, suffix] = DATED;
    let instant = swap::instant(Wall::from_seconds(now.seconds()));
    let leftovers = own_files(directory, &format!("{suffix}{HALF}"));
    let removed =
        leftovers.and_then(|found| found.iter().try_for_each(|half| remove_database(half)));
    removed.map_err(|source| MaintenanceError::Unwritable {
        path: directory.to_owned(),
        source,
    })?;
    Ok(directory.join(format!("{prefix}{instant}{suffix}")))
}

/// Removes the oldest dated backups in the directory of a complete backup, so that `keep` remain, including that one.
pub fn prune(complete: &Path, keep: NonZeroUsize) -> MaintenanceResult<()> {
    let directory = complete.parent().unwrap_or(Path::new("."));
    let removed = own_files(directory, DATED[1]).and_then(|mut found| {
        found.retain(|other| other != complete);
        let surplus = (found.len() + 1).saturating_sub(keep.get());
        found.iter().take(surplus).try_for_each(fs::remove_file)
    });
    removed.map_err(|source| MaintenanceError::Unwritable {
        path: directory.to_owned(),
        source,
    })
}

/// Files with the name of a dated backup, oldest first.
fn own_files(directory: &Path, suffix: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .and_then(|name| name.strip_prefix(DATED[0])?.strip_suffix(suffix));
        if name.is_some_and(|text| {
            text.bytes()
                .map(|byte| if byte.is_ascii_digit() { b'0' } else { byte })
                .eq(*b"0000-00-00T000000Z")
        }) && entry.file_type()?.is_file()
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
