//! The local copy of applications and key digests of a shared store: a file in the data directory from which a gateway
//! starts while the database is unreachable.
//!
//! The file is written as a whole once, then changes are appended. Each line contains its number and a checksum; a line
//! that states up to where the copy is complete ends each write. So a write that a crash interrupted is ignored, and
//! other damage makes the copy unusable. The copy contains neither keys nor quotas.

mod line;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};

use super::FeedPosition;
use crate::clock::Wall;

pub use reader::{LocalCopyFlaw, VerifiedLocalCopy};
pub use writer::{LocalCopyLog, NewLocalCopy};

/// The copy in a data directory.
#[derive(Clone, Debug)]
pub struct LocalCopy(PathBuf);

/// The point up to which a copy is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedReading {
    /// Every change up to this position is in the copy.
    pub position: FeedPosition,
    /// When the store was read.
    pub at: Wall,
}

impl LocalCopy {
    /// The file's name in the data directory.
    pub const NAME: &str = "scoregate.keys";

    /// The copy of this data directory, whether it exists or not.
    pub fn of(directory: &Path) -> Self {
        Self(directory.join(Self::NAME))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
