//! Records and their flaws. Data only.

use std::io;
use std::path::PathBuf;

use bytes::Bytes;

/// A record: bytes under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorRecord {
    /// Its name; any text.
    pub name: String,
    /// A short text of its owner about the content.
    pub label: String,
    /// The bytes.
    pub content: Bytes,
}

/// All records.
#[derive(Debug, Default)]
pub struct MirrorContents {
    /// The records, newest first.
    pub records: Vec<MirrorRecord>,
    /// Damaged and unreadable ones.
    pub refused: Vec<RejectedRecord>,
}

/// A rejected record.
#[derive(Debug, thiserror::Error)]
#[error("{}: {flaw}", file.display())]
pub struct RejectedRecord {
    /// Its header file.
    pub file: PathBuf,
    /// The flaw.
    #[source]
    pub flaw: RecordFlaw,
}

/// A flaw of a record's files.
#[derive(Debug, thiserror::Error)]
pub enum RecordFlaw {
    /// It cannot be read. It is left as it is.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A file has an impossible size.
    #[error("unexpected size: {0} bytes")]
    Size(u64),
    /// A checksum does not match.
    #[error("checksum mismatch")]
    Torn,
    /// Written by another version of the program.
    #[error("unknown format {0}")]
    Version(u8),
    /// Stored under the name of another record.
    #[error("it is stored under the name of another record")]
    Misplaced,
    /// A file is missing.
    #[error("a file is missing")]
    Missing,
}

impl RecordFlaw {
    /// Whether it will not go away.
    pub(super) const fn is_permanent(&self) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Size(_) | Self::Torn | Self::Version(_) | Self::Misplaced | Self::Missing => true,
        }
    }
}

/// Why a record was not written. The record that had its name is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Larger than a quarter of the capacity, or its name and label are too long.
    #[error("{name} needs {bytes} bytes of the disk mirror, and the limit is {most}")]
    TooLarge {
        /// The record's name.
        name: String,
        /// Its size, or that of its header.
        bytes: u64,
        /// The maximum.
        most: u64,
    },
    /// The file system failed.
    #[error("{} cannot be {verb}: {source}", path.display())]
    Disk {
        /// The operation.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}
