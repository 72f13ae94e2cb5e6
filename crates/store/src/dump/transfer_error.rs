//! Why an export or an import failed.

use crate::StoreError;

/// Why a transfer between a file and a database failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be read or written.
    #[error("the file: {0}")]
    File(#[from] std::io::Error),
    /// The content of the file is wrong.
    #[error("the file cannot be imported: {0}")]
    Unfit(String),
    /// The database is in use.
    #[error(
        "the database holds {0} applications; import into a schema without any, such as a new one (store.schema)"
    )]
    InUse(u64),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why an export cannot be written or read.
#[derive(Debug)]
pub(crate) enum DumpFault {
    /// An error of the file system.
    Disk(std::io::Error),
    /// A line that no version of this program would have written.
    Record(String),
}

impl From<DumpFault> for TransferError {
    fn from(fault: DumpFault) -> Self {
        match fault {
            DumpFault::Disk(error) => Self::File(error),
            DumpFault::Record(reason) => Self::Unfit(reason),
        }
    }
}

impl From<std::io::Error> for DumpFault {
    fn from(error: std::io::Error) -> Self {
        Self::Disk(error)
    }
}
