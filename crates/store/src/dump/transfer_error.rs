//! Why an export or an import failed.

use crate::StoreError;

/// Why an export was not written, read or imported. Nothing was changed.
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
    /// The tables may have columns that this program does not know.
    #[error(
        "the tables have format {0}, which is newer than this release; export with the newer release"
    )]
    Newer(i32),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}
