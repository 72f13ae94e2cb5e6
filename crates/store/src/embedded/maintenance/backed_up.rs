//! The time of the last backup, in a file beside the store, so that a running server can report it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use super::super::paths::{HALF, LAST_BACKUP as FILE, remove, sync_directory, with_suffix};
use scoregate_base::clock::Wall;

const MODE: u32 = 0o600;

/// Records a complete backup or export.
pub fn record_backup(directory: &Path, now: Wall) -> io::Result<()> {
    let path = directory.join(FILE);
    let half = with_suffix(&path, HALF);
    remove(&half)?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(MODE).open(&half)?;
    writeln!(file, "{}", now.rfc3339())?;
    // Root may run the backup, and the server reads the file as the owner of the directory. Others cannot give files away.
    let owner = fs::metadata(directory)?;
    drop(fchown(&file, Some(owner.uid()), Some(owner.gid())));
    file.sync_all()?;
    fs::rename(&half, &path)?;
    sync_directory(&path)
}

/// The time of the last complete backup or export; `None` if there never was one.
pub fn last_backup(directory: &Path) -> io::Result<Option<Wall>> {
    match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => {
            let instant = Wall::parse_rfc3339(text.trim());
            let unreadable =
                || io::Error::new(ErrorKind::InvalidData, format!("{FILE} contains no timestamp"));
            instant.ok_or_else(unreadable).map(Some)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
