//! Errors inside the engine, before the operation and the file are known. Callers see a [`StoreError`].

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::paths::recovery_steps;
use crate::durable_file::{LOG, with_suffix};
use crate::local::is_damage;
use crate::sql::rows::BadRecord;
use crate::{StoreError, TransferError};

/// The result of an operation on a file.
pub(crate) type FileResult<T> = Result<T, StoreFault>;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreFault {
    /// An error of SQLite: disk, lock, file.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// An error of the file system.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
    /// A record that no version of this program would have written.
    #[error("{0}")]
    Record(String),
    /// The operation was carried out and the reply is an error.
    #[error(transparent)]
    Refused(#[from] StoreError),
}

impl StoreFault {
    /// Converts the error while serving: damage is remembered and logged.
    pub(super) fn into_error_while_serving(
        self,
        doing: &'static str,
        file: &OpenFile,
    ) -> StoreError {
        let is_damage = match &self {
            Self::Sql(error) => is_damage(error),
            Self::Disk(_) | Self::Record(_) | Self::Refused(_) => false,
        };
        let error = self.into_error(doing, &file.path);
        if is_damage {
            file.report_damage(&error);
        }
        error
    }

    /// Converts the error.
    pub(super) fn into_error(self, doing: &'static str, path: &Path) -> StoreError {
        match self {
            Self::Sql(error) if !is_damage(&error) => StoreError::Unavailable {
                doing,
                reason: error.to_string(),
            },
            Self::Disk(error) => StoreError::Unavailable {
                doing,
                reason: format!("{}: {error}", path.display()),
            },
            damage @ (Self::Sql(_) | Self::Record(_)) => StoreError::Damaged {
                path: path.display().to_string(),
                reason: damage.to_string(),
            },
            Self::Refused(error) => error,
        }
    }
}

/// The open file, and what was found to be wrong with it.
#[derive(Clone, Debug)]
pub(super) struct OpenFile {
    pub(super) path: Arc<Path>,
    /// Identity of the opened files: the store and its log.
    opened: [Option<FileIdentity>; 2],
    damage: Arc<OnceLock<String>>,
}

/// Device and inode of a file.
type FileIdentity = (u64, u64);

impl OpenFile {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            opened: identities(path),
            damage: Arc::default(),
        }
    }

    /// Why nothing written to the open file would be found at the next start: the file under its name, or its log, is
    /// missing or is another one. `None` while both are in place.
    pub(super) fn missing_or_replaced(&self) -> Option<String> {
        for ((opened, found), suffix) in self
            .opened
            .iter()
            .zip(identities(&self.path))
            .zip(["", LOG])
        {
            let what = match (opened, found) {
                (None, _) => continue,
                (Some(opened), Some(found)) if *opened == found => continue,
                (Some(_), Some(_)) => "was replaced by another file",
                (Some(_), None) => "is missing",
            };
            let path = with_suffix(&self.path, suffix);
            return Some(format!(
                "{} {what} while the server was running",
                path.display()
            ));
        }
        None
    }

    /// Remembers damage, and logs it with the remedy. Once: every lease would meet it again.
    pub(super) fn report_damage(&self, damaged: &StoreError) {
        if self.damage.set(damaged.to_string()).is_ok() {
            let recovery_steps = recovery_steps(damaged).unwrap_or_default();
            tracing::error!("{damaged}\n{recovery_steps}");
        }
    }

    /// Known damage of the file.
    pub(super) fn damage(&self) -> Option<String> {
        self.damage.get().cloned()
    }
}

fn identities(path: &Path) -> [Option<FileIdentity>; 2] {
    ["", LOG].map(|suffix| {
        let found = std::fs::metadata(with_suffix(path, suffix)).ok()?;
        Some((found.dev(), found.ino()))
    })
}

/// Whether an error is a conflict with an existing record.
pub(super) fn is_conflict(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

impl From<BadRecord> for StoreFault {
    fn from(bad: BadRecord) -> Self {
        Self::Record(bad.0)
    }
}

impl From<TransferError> for StoreFault {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::File(error) => Self::Disk(error),
            TransferError::Unfit(reason) => Self::Record(reason),
            TransferError::Store(error) => Self::Refused(error),
            other @ (TransferError::Unreadable(_)
            | TransferError::InUse(_)
            | TransferError::Newer(_)
            | TransferError::LiveGateways(_)
            | TransferError::LostRevocations { .. }
            | TransferError::ClockBehind(_)) => Self::Record(other.to_string()),
        }
    }
}
