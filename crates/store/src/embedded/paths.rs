//! Paths of the files next to the store: write-ahead log, unfinished files, replaced stores and backups; and the
//! recovery commands for a store that cannot be used.
//!
//! `file` and `maintenance` read and write these files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use crate::{
    LocalFile, Mirror, StoreError,
    durable_file::{HALF, LOG, if_found, new_private_file, sync_directory, with_suffix},
    statements::schema::FORMAT,
};
use scoregate_base::clock::Wall;

/// Suffix of a complete store that is about to replace the file; followed by a timestamp.
pub const NEXT: &str = ".next-";
/// Suffix of a replaced store; followed by the same timestamp.
pub const ASIDE: &str = ".aside-";
/// Suffix of a store that an export closed; followed by a timestamp. Its contents were moved, so it is never offered
/// for recovery.
pub const CLOSED: &str = ".closed-";
/// Suffix of the copy that is made before a migration.
const UPGRADED: &str = ".bak";
/// Suffix of the marker file, which shows that the directory has held a store. It is created at the first start, before
/// the store is used.
const MARKER: &str = ".created";
/// Name of the file with the time (RFC 3339) and size (bytes) of the last backup, in one line.
pub const LAST_BACKUP: &str = "last-backup";
/// The lock file of the directory, which every version creates. It is empty once there has been a store. Before that,
/// it contains a line.
const DIRECTORY_LOCK: &str = "scoregate.lock";

/// The first bytes of a backup.
pub const BACKUP_BEGINS: &[u8] = b"SQLite format 3\0";
/// The first bytes of an export.
pub const EXPORT_BEGINS: &[u8] = b"{\"format\":\"scoregate-export\"";

/// Files next to `path` whose names start with its name and this suffix, sorted.
pub fn files_with_prefix(path: &Path, suffix: &str) -> Vec<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}{suffix}");
    let mut found = sibling_files(path);
    found.retain(|other| file_name(other).starts_with(&prefix));
    found.sort();
    found
}

/// Leaves durable marks next to the store. From now on, a missing store file is an error.
pub fn mark(path: &Path) -> io::Result<()> {
    empty_lock(&path.with_file_name(DIRECTORY_LOCK))?;
    let marker = with_suffix(path, MARKER);
    match new_private_file(&marker) {
        Ok(mut file) => {
            file.write_all(b"This directory holds a scoregate store. Do not remove this file.\n")?;
            file.sync_all()?;
            sync_directory(&marker)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Empties the lock file if it exists and is not empty.
fn empty_lock(lock: &Path) -> io::Result<()> {
    let is_written = if_found(fs::metadata(lock))?.is_some_and(|found| found.len() > 0);
    if is_written {
        OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(lock)?
            .sync_all()
    } else {
        Ok(())
    }
}

/// Files that show that there was a store, even if the store file itself is missing.
pub fn store_traces(path: &Path) -> Vec<PathBuf> {
    let marker = with_suffix(path, MARKER);
    let has_marker = marker.exists();
    let log = with_suffix(path, LOG);
    let has_log = fs::metadata(&log).is_ok_and(|found| found.len() > 0);
    let mut found = files_with_prefix(path, ".v");
    found.retain(|other| file_name(other).ends_with(UPGRADED));
    found.extend(files_with_prefix(path, ASIDE));
    found.extend(files_with_prefix(path, CLOSED));
    found.extend(has_log.then_some(log));
    found.extend(has_marker.then_some(marker));
    let beside_any_store =
        [Mirror::NAME, LocalFile::NAME, LAST_BACKUP].map(|name| path.with_file_name(name));
    found.extend(beside_any_store.into_iter().filter(|other| other.exists()));
    let lock = path.with_file_name(DIRECTORY_LOCK);
    let has_empty_lock = fs::metadata(&lock).is_ok_and(|found| found.len() == 0);
    found.extend(has_empty_lock.then_some(lock));
    found
}

/// Backups and exports next to the store, newest first. Replaced stores are not listed, because they were replaced for
/// a reason.
fn backups(path: &Path) -> Vec<(PathBuf, Wall)> {
    let excluded = [HALF, NEXT, ASIDE, CLOSED].map(|suffix| format!("{}{suffix}", file_name(path)));
    let mut found: Vec<(PathBuf, Wall)> = sibling_files(path)
        .into_iter()
        .filter(|other| {
            !excluded
                .iter()
                .any(|prefix| file_name(other).starts_with(prefix))
        })
        .filter(|other| other != path && backup_kind(other).is_some())
        .map(|other| (other.clone(), modified_at(&other)))
        .collect();
    found.sort_by_key(|(other, at)| (std::cmp::Reverse(*at), other.clone()));
    found
}

/// The kind of a file according to its first bytes: a backup or an export. A database with an application id, such as the archive
/// of runs, is neither, because a store has no application id.
pub fn backup_kind(path: &Path) -> Option<&'static [u8]> {
    const APPLICATION_ID_BYTES: std::ops::Range<usize> = 68..72;
    let mut first = Vec::new();
    File::open(path)
        .ok()?
        .take(APPLICATION_ID_BYTES.end as u64)
        .read_to_end(&mut first)
        .ok()?;
    let is_other_program = first.starts_with(BACKUP_BEGINS)
        && first
            .get(APPLICATION_ID_BYTES)
            .is_some_and(|id| id != [0; 4]);
    [BACKUP_BEGINS, EXPORT_BEGINS]
        .into_iter()
        .find(|prefix| first.starts_with(prefix) && !is_other_program)
}

fn modified_at(path: &Path) -> Wall {
    let written = fs::metadata(path).and_then(|found| found.modified());
    let since = written.map(|at| at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default());
    Wall::default().plus(since.unwrap_or_default())
}

fn sibling_files(path: &Path) -> Vec<PathBuf> {
    let Some(directory) = path.parent() else {
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|other| other.is_file())
        .collect()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Commands that recover from a store that cannot be used; `None` for other errors.
pub fn recovery_steps(error: &StoreError) -> Option<String> {
    let (StoreError::Damaged { path, .. } | StoreError::Newer { path, .. }) = error else {
        return None;
    };
    let path = Path::new(path);
    let here = quoted(path.parent().unwrap_or(Path::new(".")));
    if let Some(steps) = closed(path, &here) {
        return Some(steps);
    }
    let mut lines = vec![
        "The file is unchanged. To recover, with the server stopped:".to_owned(),
        format!("  scoregate store check --data-dir {here}"),
    ];
    let restore = |from: &Path| {
        format!(
            "  scoregate store restore {} --data-dir {here}",
            quoted(from)
        )
    };
    let backups = backups(path);
    for (index, (backup, at)) in backups.iter().enumerate() {
        let label = if index == 0 { "" } else { "or older: " };
        lines.push(format!("  # {label}written {}", at.rfc3339()));
        lines.push(restore(backup));
    }
    if backups.is_empty() && path.exists() {
        let saved = with_suffix(path, ".saved");
        let format = FORMAT;
        lines.push(
            "There is no backup next to it. If you have one elsewhere: scoregate store restore FILE. Otherwise save what \
             sqlite3 can read:"
                .into(),
        );
        // If an error occurs, a dump ends with a rollback. A dump never contains the format version.
        lines.push(format!(
            "  sqlite3 {} .dump | sed 's/^ROLLBACK.*/COMMIT;/; $aPRAGMA user_version = {format};' | sqlite3 {}",
            quoted(path),
            quoted(&saved)
        ));
        lines.push(restore(&saved));
    }
    if !path.exists() {
        lines.extend(missing(path, &here));
    }
    lines.push("The replaced store is kept, with `aside` in its name.".into());
    Some(lines.join("\n"))
}

/// The advice if an export closed the store. Using a copy of it would grant today's quotas again.
fn closed(path: &Path, here: &str) -> Option<String> {
    let newest = files_with_prefix(path, CLOSED)
        .pop()
        .filter(|_| !path.exists())?;
    Some(format!(
        "It was exported and closed, and is kept as {}. Use the store into which the export was imported: with a copy of the \
         closed one, callers would get today's quota twice.\nTo create an empty store here, without keys and with today's whole \
         quota:\n  scoregate store init --data-dir {here}",
        quoted(&newest)
    ))
}

/// Additional commands if the store file itself is missing.
fn missing(path: &Path, here: &str) -> Vec<String> {
    let mut replaced = files_with_prefix(path, ASIDE);
    replaced.retain(|other| backup_kind(other).is_some());
    let mut lines = vec![format!(
        "If it was moved away, move it back to {}.",
        quoted(path)
    )];
    if let Some(newest) = replaced.last() {
        lines.push("The newest replaced store can be restored, too:".into());
        lines.push(format!(
            "  scoregate store restore {} --data-dir {here}",
            quoted(newest)
        ));
    }
    lines.push("To create an empty store, without keys and with today's whole quota:".into());
    lines.push(format!("  scoregate store init --data-dir {here}"));
    lines
}

/// A path quoted for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+:@,".contains(c))
    {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
