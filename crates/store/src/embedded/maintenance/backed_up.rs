//! The time of the last backup, in a file beside the store, so that a running server can report it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use super::super::paths::LAST_BACKUP as FILE;
use crate::durable_file::{FileReplacement, HALF, if_found};
use scoregate_base::clock::Wall;

/// Records a complete backup or export.
pub fn record_backup(directory: &Path, now: Wall) -> io::Result<()> {
    let replacement = FileReplacement::begin(&directory.join(FILE), HALF)?;
    writeln!(replacement.file(), "{}", now.rfc3339())?;
    // Root may run the backup, and the server reads the file as the owner of the directory. Others cannot give files away.
    let owner = fs::metadata(directory)?;
    drop(fchown(replacement.file(), Some(owner.uid()), Some(owner.gid())));
    replacement.finish().map(drop)
}

/// The time of the last complete backup or export; `None` if there never was one.
pub fn last_backup(directory: &Path) -> io::Result<Option<Wall>> {
    let Some(text) = if_found(fs::read_to_string(directory.join(FILE)))? else { return Ok(None) };
    let unreadable = || io::Error::new(ErrorKind::InvalidData, format!("{FILE} contains no timestamp"));
    Wall::parse_rfc3339(text.trim()).ok_or_else(unreadable).map(Some)
}
