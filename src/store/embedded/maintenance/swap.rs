//! One store takes the place of another, in steps that a crash may cut anywhere.
//!
//! The new one lies whole and checked beside the old one before the first step. The first step decides: until it is
//! done a start finds the old store, and from then on it finds none under the store's name and does the rest of the
//! steps itself. At no point does a store lie beside a log that is not its own: SQLite would write that into it.
//! Not for: making the new one (`import`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::beside::{ASIDE, INDEX, LOG, NEXT, beside, remove_database, sync_directory, that_go_on};
use crate::clock::Wall;

/// What tells the files of one swap from those of others.
pub(super) fn instant(now: Wall) -> String {
    now.rfc3339().replace(':', "")
}

/// Where the new store has to lie.
pub(super) fn next(path: &Path, instant: &str) -> PathBuf {
    beside(path, &format!("{NEXT}{instant}"))
}

/// Where the old one will lie.
pub(super) fn aside(path: &Path, instant: &str) -> PathBuf {
    beside(path, &format!("{ASIDE}{instant}"))
}

/// The steps: what is moved where, in order.
pub(in crate::store::embedded) fn steps(path: &Path, instant: &str) -> [(PathBuf, PathBuf); 4] {
    let (next, aside) = (next(path, instant), aside(path, instant));
    [
        (path.to_owned(), aside.clone()),
        (beside(path, LOG), beside(&aside, LOG)),
        (beside(path, INDEX), beside(&aside, INDEX)),
        (next, path.to_owned()),
    ]
}

/// Takes a step, if it was not taken before.
pub(in crate::store::embedded) fn take((from, to): &(PathBuf, PathBuf)) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    sync_directory(to)
}

/// Takes all steps.
pub(super) fn all(path: &Path, instant: &str) -> io::Result<()> {
    steps(path, instant).iter().try_for_each(take)
}

/// Puts aside what is left of a store whose file is missing: no new store may lie beside the log of another.
pub(super) fn put_aside(path: &Path, instant: &str) -> io::Result<()> {
    let [_, log, index, _] = steps(path, instant);
    [log, index].iter().try_for_each(take)
}

/// Finishes a swap that a crash cut off, before the store is opened; removes what is left of one that had not begun.
pub(in crate::store::embedded) fn finish(path: &Path) -> io::Result<()> {
    let waiting = that_go_on(path, NEXT);
    let head = beside(path, NEXT);
    if fs::symlink_metadata(path).is_err()
        && let Some(newest) = waiting.last()
    {
        let (newest, head) = (newest.to_string_lossy(), head.to_string_lossy());
        let instant = newest.strip_prefix(&*head).unwrap_or_default();
        return all(path, instant);
    }
    // It was checked against a store that has changed since: whoever wanted it imports it again.
    waiting.iter().try_for_each(|left| remove_database(left))
}
