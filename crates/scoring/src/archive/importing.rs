//! Imports in progress. Days are aggregated only while no import is running, so that no score is computed from a part
//! of one.
//!
//! An import holds a shared lock on a file beside the archive. The kernel releases it when the process ends, also if
//! it is killed. Days are aggregated under the exclusive lock: by the last import that ends, and after a killed one by
//! a server. SQLite's own locks end with each transaction.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use scoregate_base::clock::Wall;

use super::file::PATIENCE;
use super::writing::{self, begin};
use super::{Archive, ArchiveError, Trouble};

/// Appended to the archive's path, like `-wal`.
const SUFFIX: &str = "-import";

/// A running import. Runs count after [`Archive::end_import`]; if this is dropped, a server completes the import.
#[derive(Debug)]
pub struct RunningImport {
    _lock: File,
}

/// The effect of the end of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportEnd {
    /// All stored runs count.
    Counted,
    /// Another import is running; all stored runs count when it ends.
    AnotherIsRunning,
}

impl Archive {
    /// Begins an import. Waits while days are aggregated, which takes seconds.
    pub fn begin_import(&self) -> Result<RunningImport, ArchiveError> {
        self.locking(|file| file.lock_shared().map(|()| RunningImport { _lock: file }))
    }

    /// Ends an import: aggregates every day with new runs, unless another import is running.
    pub fn end_import(&self, import: RunningImport, now: Wall) -> Result<ImportEnd, ArchiveError> {
        let lock = {
            let inside = &mut *self.inside();
            // Imports that end at the same time do this one after another, so that the last one gets the lock.
            let _turn = begin(&mut inside.connection).map_err(|error| self.to_error(error))?;
            drop(import);
            self.exclusive()?
        };
        let Some(_lock) = lock else {
            return Ok(ImportEnd::AnotherIsRunning);
        };
        self.sum_up(now)?;
        Ok(ImportEnd::Counted)
    }

    /// Aggregates the days that a killed import has left, unless an import is running; returns their number. Days that
    /// no refresh at `now` or later reads are left to the next import. Cheap if there are none.
    pub(crate) fn complete_imports(&self, now: Wall) -> Result<usize, ArchiveError> {
        let connection = &mut self.inside().connection;
        if !writing::has_unsummed(connection, now).map_err(|error| self.to_error(error))? {
            return Ok(0);
        }
        let is_free = |connection: &mut Connection| match begin(connection) {
            Ok(_turn) => self.exclusive(),
            // An import is storing a batch.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(None),
            Err(error) => Err(self.to_error(error)),
        };
        connection
            .busy_timeout(Duration::ZERO)
            .map_err(|error| self.to_error(error))?;
        let lock = is_free(connection);
        connection
            .busy_timeout(PATIENCE)
            .map_err(|error| self.to_error(error))?;
        let Some(_lock) = lock? else { return Ok(0) };
        writing::sum_window(connection, now).map_err(|trouble| self.to_error(trouble))
    }

    fn exclusive(&self) -> Result<Option<File>, ArchiveError> {
        self.locking(|file| match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    fn locking<T>(&self, lock: impl FnOnce(File) -> io::Result<T>) -> Result<T, ArchiveError> {
        let mut path = self.path.clone().into_os_string();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        lock_file(&path)
            .and_then(lock)
            .map_err(|error| ArchiveError {
                path,
                trouble: Trouble::Lock(error),
            })
    }
}

/// Opens the file to lock. An existing one may belong to another user, so it is only read. It is never deleted: a
/// process could hold the lock of a deleted file. A new one must not be a link: root would give away what it refers to.
fn lock_file(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => new_lock_file(path),
        opened => opened,
    }
}

fn new_lock_file(path: &Path) -> io::Result<File> {
    let file = match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        // Another import has created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return File::open(path),
        created => created?,
    };
    // Root may run the import, and the server locks the file as the owner of the directory. Others cannot give files away.
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let owner = std::fs::metadata(directory.unwrap_or(Path::new(".")))?;
    drop(fchown(&file, Some(owner.uid()), Some(owner.gid())));
    Ok(file)
}
