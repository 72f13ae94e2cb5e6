//! The names of a record's files: SHA-256 sums, so that nothing a record's name contains reaches the file system.

use sha2::{Digest as _, Sha256};

use scoregate_base::keys::Digest;

/// The SHA-256 of a content or a name.
pub(super) fn sum_of(bytes: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(bytes).into())
}

/// The common part of a record's file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileStem(pub(super) String);

impl FileStem {
    /// The stem of the record with this name.
    pub(super) fn of(name: &str) -> Self {
        Self(sum_of(name.as_bytes()).to_string())
    }
}
