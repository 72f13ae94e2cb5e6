//! An open archive.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{
    archive_error::{ArchiveError, Trouble},
    file,
};

/// Benchmark runs on disk.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    /// If a panic leaves a transaction open, dropping the guard rolls it back.
    pub(super) connection: Mutex<Connection>,
}

impl Archive {
    /// Opens an archive, creating it if it is missing.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let connection = file::open(path).map_err(|trouble| ArchiveError {
            path: path.to_owned(),
            trouble,
        })?;
        Ok(Self {
            path: path.to_owned(),
            connection: Mutex::new(connection),
        })
    }

    /// Path of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on the open file, and adds the path to its error.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, ArchiveError> {
        work(&mut self.connection.lock()).map_err(|trouble| self.to_error(trouble))
    }

    /// Runs `work` in a transaction, which is committed unless there is an error.
    pub(super) fn transact<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, ArchiveError> {
        self.with(|connection| {
            let transaction = begin(connection)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    pub(super) fn to_error(&self, trouble: impl Into<Trouble>) -> ArchiveError {
        ArchiveError {
            path: self.path.clone(),
            trouble: trouble.into(),
        }
    }
}

/// Begins a write transaction.
pub fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}
