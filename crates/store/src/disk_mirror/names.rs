//! The names of a record's files: SHA-256 sums, so that nothing a record's name contains reaches the file system.

use std::fmt;

use sha2::{Digest as _, Sha256};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sha256Sum(pub(super) [u8; 32]);

impl Sha256Sum {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Sha256Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The common part of a record's file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FileStem(pub(super) String);

impl FileStem {
    /// The stem of the record with this name.
    pub(super) fn of(name: &str) -> Self {
        Self(Sha256Sum::of(name.as_bytes()).to_string())
    }
}
