//! Converts statement errors to file errors, and tracks damage to the open file.

use std::{
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Arc, OnceLock},
};

use super::paths::recovery_steps;
use crate::{
    StoreError, TransferError,
    durable_file::{LOG, with_suffix},
    local::is_damage,
    statements::Fault,
};

impl Fault {
    /// Converts an error that occurred while serving. Damage is remembered and logged.
    pub(super) fn into_error_while_serving(
        self,
        doing: &'static str,
        file: &OpenFile,
    ) -> StoreError {
        let is_damage = matches!(&self, Self::File(error) if is_damage(error));
        let error = self.into_error(doing, &file.path);
        if is_damage {
            file.report_damage(&error);
        }
        error
    }

    /// Converts the error.
    pub(crate) fn into_error(self, doing: &'static str, path: &Path) -> StoreError {
        let reason = match self {
            Self::File(error) if !is_damage(&error) => {
                let reason = error.to_string();
                return StoreError::Unavailable { doing, reason };
            }
            Self::Disk(error) => {
                let reason = format!("{}: {error}", path.display());
                return StoreError::Unavailable { doing, reason };
            }
            Self::Refused(StoreError::Transfer(TransferError::Unfit(reason))) => reason,
            Self::Refused(StoreError::Transfer(error)) => error.to_string(),
            Self::Refused(error) => return error,
            damage @ (Self::File(_) | Self::Record(_) | Self::Database(_)) => damage.to_string(),
        };
        let path = path.display().to_string();
        StoreError::Damaged { path, reason }
    }
}

/// The open file, and its known damage.
#[derive(Clone, Debug)]
pub struct OpenFile {
    pub path: Arc<Path>,
    /// Identity of the opened files: the store and its write-ahead log.
    opened: [Option<FileIdentity>; 2],
    damage: Arc<OnceLock<String>>,
}

/// Device and inode of a file.
type FileIdentity = (u64, u64);

impl OpenFile {
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            opened: identities(path),
            damage: Arc::default(),
        }
    }

    /// Why data written to the open file would not be found at the next start: the store file or its log is missing or
    /// was replaced. `None` while both are in place.
    pub fn missing_or_replaced(&self) -> Option<String> {
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

    /// Remembers damage, and logs it with the recovery steps. Logs it only once, because every lease would report it
    /// again.
    pub fn report_damage(&self, damaged: &StoreError) {
        if self.damage.set(damaged.to_string()).is_ok() {
            let recovery_steps = recovery_steps(damaged).unwrap_or_default();
            tracing::error!("{damaged}\n{recovery_steps}");
        }
    }

    /// Known damage to the file.
    pub fn damage(&self) -> Option<String> {
        self.damage.get().cloned()
    }
}

fn identities(path: &Path) -> [Option<FileIdentity>; 2] {
    ["", LOG].map(|suffix| {
        let found = std::fs::metadata(with_suffix(path, suffix)).ok()?;
        Some((found.dev(), found.ino()))
    })
}
