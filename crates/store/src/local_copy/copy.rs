//! The file of a copy, and the point up to which a copy is complete.

use std::path::{Path, PathBuf};

use crate::FeedPosition;
use scoregate_base::clock::Wall;

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
