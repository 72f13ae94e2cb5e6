//! Why statements failed. The operation and the store are added later: callers see a [`StoreError`].

use super::rows::BadRecord;
use crate::{OwnerRefusal, StoreError, TransferError};

/// The result of running statements.
pub type Done<T> = Result<T, Fault>;

/// Why statements failed, or why a change was refused. The transaction is rolled back.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// An SQLite error: disk, lock or file.
    #[error(transparent)]
    File(#[from] rusqlite::Error),
    /// An error of the database or the connection.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// A file system error.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
    /// A record that no version of this program would have written.
    #[error("{0}")]
    Record(String),
    /// The change was refused.
    #[error(transparent)]
    Refused(#[from] StoreError),
}

impl From<BadRecord> for Fault {
    fn from(bad: BadRecord) -> Self {
        Self::Record(bad.0)
    }
}

impl From<OwnerRefusal> for Fault {
    fn from(refusal: OwnerRefusal) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<TransferError> for Fault {
    fn from(error: TransferError) -> Self {
        if let TransferError::File(error) = error {
            return Self::Disk(error);
        }
        Self::Refused(error.into())
    }
}
