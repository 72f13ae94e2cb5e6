//! What stands on the shelf, and what can be wrong with it. Values only.
//!
//! Not for: files (`directory`).

use std::io;
use std::path::PathBuf;

use bytes::Bytes;

/// What stands on the shelf: bytes under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorRecord {
    /// What it is known by; any text.
    pub name: String,
    /// What its owner has to know of the content; some small text.
    pub label: String,
    /// The bytes.
    pub content: Bytes,
}

/// Everything on the shelf.
#[derive(Debug, Default)]
pub struct MirrorContents {
    /// The jars, what was put down last before the others.
    pub jars: Vec<MirrorRecord>,
    /// What was not sound, or could not be read.
    pub refused: Vec<RejectedRecord>,
}

/// A jar that is none.
#[derive(Debug, thiserror::Error)]
#[error("{}: {flaw}", file.display())]
pub struct RejectedRecord {
    /// Its slip.
    pub file: PathBuf,
    /// What is wrong with it.
    #[source]
    pub flaw: RecordFlaw,
}

/// What can be wrong with a jar's files.
#[derive(Debug, thiserror::Error)]
pub enum RecordFlaw {
    /// The disk does not give it. It is left as it is.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A file has a size that it cannot have.
    #[error("{0} bytes are not its size")]
    Size(u64),
    /// A checksum does not fit.
    #[error("checksum mismatch")]
    Torn,
    /// Another version of the program wrote it.
    #[error("unknown format {0}")]
    Version(u8),
    /// It lies under the name of another.
    #[error("it is stored under the name of another record")]
    Misplaced,
    /// A file of it is not there.
    #[error("a file is missing")]
    Missing,
}

impl RecordFlaw {
    /// Whether it will be as bad the next time.
    pub(super) const fn is_lasting(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Size(_) | Self::Torn | Self::Version(_) | Self::Misplaced | Self::Missing => true,
        }
    }
}

/// Why something was not put on the shelf. What stood there under that name stands there still.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// It is more than a quarter of the shelf, or its name and label are too long.
    #[error("{name} needs {bytes} bytes of the disk mirror, and the limit is {most}")]
    TooLarge {
        /// The jar's name.
        name: String,
        /// What it takes, or its slip.
        bytes: u64,
        /// What it may take.
        most: u64,
    },
    /// The file system refuses.
    #[error("{} cannot be {verb}: {source}", path.display())]
    Disk {
        /// What was to be done.
        verb: &'static str,
        /// With which file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}
