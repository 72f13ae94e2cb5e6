//! Replaces one store with another, in steps that a crash may interrupt at any point.
//!
//! Before the first step, the new store is complete, checked, and located next to the old one. The first step is decisive.
//! Before it, a starting process finds the old store. After it, a starting process finds no store file and completes
//! the remaining steps. A store is never next to another store's write-ahead log, because SQLite would apply that log.
//! `import` builds the new store.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::paths::{ASIDE, NEXT, files_with_prefix};
use crate::durable_file::{INDEX, LOG, if_found, remove_database, sync_directory, with_suffix};
use scoregate_base::clock::Wall;

/// The timestamp that identifies the files of one swap.
pub fn instant(now: Wall) -> String {
    now.rfc3339().replace(':', "")
}

/// The path of the new store.
pub fn next(path: &Path, instant: &str) -> PathBuf {
    with_suffix(path, &format!("{NEXT}{instant}"))
}

/// The path to which the old store will be moved.
pub fn aside(path: &Path, instant: &str) -> PathBuf {
    with_suffix(path, &format!("{ASIDE}{instant}"))
}

/// The steps: renames in order.
pub fn steps(path: &Path, instant: &str) -> [(PathBuf, PathBuf); 4] {
    let next = next(path, instant);
    let aside = aside(path, instant);
    [
        (path.to_owned(), aside.clone()),
        (with_suffix(path, LOG), with_suffix(&aside, LOG)),
        (with_suffix(path, INDEX), with_suffix(&aside, INDEX)),
        (next, path.to_owned()),
    ]
}

/// Performs a step, unless it is already done.
pub fn rename_if_present(step: &(PathBuf, PathBuf)) -> io::Result<()> {
    let (from, to) = step;
    if_found(fs::rename(from, to))?;
    sync_directory(to)
}

/// Performs all steps.
pub fn run(path: &Path, instant: &str) -> io::Result<()> {
    steps(path, instant).iter().try_for_each(rename_if_present)
}

/// Renames a store and its log.
pub fn rename(path: &Path, to: &Path) -> io::Result<()> {
    ["", LOG, INDEX]
        .map(|suffix| (with_suffix(path, suffix), with_suffix(to, suffix)))
        .iter()
        .try_for_each(rename_if_present)
}

/// Moves the log files of a missing store, because a new store must not be next to another store's write-ahead log.
pub fn move_log_aside(path: &Path, instant: &str) -> io::Result<()> {
    let [_, log, index, _] = steps(path, instant);
    [log, index].iter().try_for_each(rename_if_present)
}

/// Completes an interrupted swap before the store is opened, or removes the files of a swap that has not begun.
pub fn finish(path: &Path) -> io::Result<()> {
    let pending = files_with_prefix(path, NEXT);
    let head = with_suffix(path, NEXT);
    if fs::symlink_metadata(path).is_err()
        && let Some(newest) = pending.last()
    {
        let newest = newest.to_string_lossy();
        let head = head.to_string_lossy();
        let instant = newest.strip_prefix(&*head).unwrap_or_default();
        return run(path, instant);
    }
    // The new store was checked against a store that has changed since then. The operator has to import it again.
    pending
        .iter()
        .try_for_each(|leftover| remove_database(leftover))
}
