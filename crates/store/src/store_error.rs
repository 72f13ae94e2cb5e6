//! Errors and futures of store calls.

use std::pin::Pin;

use super::{OwnerRefusal, TransferError};
use scoregate_base::keys::ApplicationId;

/// The result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// The future of a store call.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = StoreResult<T>> + Send + 'a>>;

/// Why a store call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The application does not exist.
    #[error("there is no application {0}; `scoregate keys list` lists all")]
    UnknownApplication(ApplicationId),
    /// The application has no such key.
    #[error("application {0} has no such key; `scoregate keys show {0}` lists its keys")]
    UnknownKey(ApplicationId),
    /// The service has no such incident.
    #[error("there is no incident {0}; `scoregate status list` lists them")]
    UnknownIncident(u64),
    /// The account of the owner does not allow the change.
    #[error(transparent)]
    Owner(#[from] OwnerRefusal),
    /// The incident is resolved, so nothing can be added to it.
    #[error("incident {0} is already resolved; open a new one")]
    IncidentResolved(u64),
    /// An export, an import or a restore failed. Nothing was changed.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// An application or key with this identity already exists.
    #[error("{0} already exists")]
    Exists(&'static str),
    /// The store cannot be reached or written. The change counts as not made. After a disk failure during the commit, the change
    /// may reappear after a crash.
    #[error("the store cannot {doing}: {reason}")]
    Unavailable {
        /// The operation.
        doing: &'static str,
        /// The cause.
        reason: String,
    },
    /// The store's content is damaged.
    #[error(
        "the store at {path} is damaged: {reason}. Run `scoregate store check` to see what is readable"
    )]
    Damaged {
        /// Location of the store.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The store was written by a newer version of the program.
    #[error(
        "the store at {path} has format {found}; this program supports formats up to {known}. \
         Run the newer version again, or restore the backup that it made next to the file before the upgrade"
    )]
    Newer {
        /// Location of the store.
        path: String,
        /// Format of the store.
        found: u32,
        /// The newest format that this program supports.
        known: u32,
    },
}

impl StoreError {
    /// Whether the store failed, as opposed to an invalid request.
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Damaged { .. } | Self::Newer { .. } => true,
            Self::UnknownApplication(_)
            | Self::UnknownKey(_)
            | Self::UnknownIncident(_)
            | Self::Owner(_)
            | Self::Transfer(_)
            | Self::IncidentResolved(_)
            | Self::Exists(_) => false,
        }
    }
}
