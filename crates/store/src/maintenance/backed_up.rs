//! Time and size of the last backup, in a file next to the store, so that a running server can report them.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, fchown},
    path::Path,
};

use crate::{
    durable_file::{FileReplacement, HALF, if_found},
    embedded::paths::LAST_BACKUP as FILE,
};
use scoregate_base::clock::Wall;

/// A verified backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastBackup {
    /// When the backup began.
    pub at: Wall,
    /// Size of the backup.
    pub bytes: u64,
}

/// Records a verified backup.
pub fn record_backup(directory: &Path, backup: LastBackup) -> io::Result<()> {
    let replacement = FileReplacement::begin(&directory.join(FILE), HALF)?;
    writeln!(
        replacement.file(),
        "{} {}",
        backup.at.rfc3339(),
        backup.bytes
    )?;
    // If root runs the backup, the file gets the owner of the directory, so that the server can read it. Other users
    // cannot change the owner.
    let owner = fs::metadata(directory)?;
    drop(fchown(
        replacement.file(),
        Some(owner.uid()),
        Some(owner.gid()),
    ));
    replacement.finish().map(drop)
}

/// The last verified backup; `None` if there was none.
pub fn last_backup(directory: &Path) -> io::Result<Option<LastBackup>> {
    let Some(text) = if_found(fs::read_to_string(directory.join(FILE)))? else {
        return Ok(None);
    };
    let (at, bytes) = text.trim().split_once(' ').ok_or_else(unreadable)?;
    let Some((at, bytes)) = Wall::parse_rfc3339(at).zip(bytes.parse().ok()) else {
        return Err(unreadable());
    };
    Ok(Some(LastBackup { at, bytes }))
}

fn unreadable() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("{FILE} does not contain a timestamp and a size"),
    )
}
