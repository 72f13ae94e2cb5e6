//! The directory of the disk mirror: names of its files, writing and reading them, and files left by a killed
//! process.
//!
//! Files are named by the SHA-256 of the record's name, so that nothing in a name reaches the file system:
//! `<stem>.header_path`, and `<stem>.<sum of its content>`. Which records are removed is decided in `record_slots`.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::durable_file::{if_found, new_private_file, remove};

use scoregate_base::keys::Digest;

use super::names::{FileStem, sum_of};
use super::record_header::{MAX_HEADER_BYTES, RecordHeader};
use super::record_slots::RecordSlot;
use super::{MirrorRecord, RecordFlaw};

const HEADER_SUFFIX: &str = "slip";
const UNFINISHED_SUFFIX: &str = "half";

/// The kind of a file, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MirrorFileKind {
    /// The header of this record.
    Header(FileStem),
    /// A content of this record.
    Content(FileStem),
    /// A file that was being written.
    Unfinished,
    /// Not ours: never touched.
    Foreign,
}

impl MirrorFileKind {
    pub(super) fn of(file_name: &OsStr) -> Self {
        let Some((stem, extension)) = file_name.to_str().and_then(|name| name.split_once('.'))
        else {
            return Self::Foreign;
        };
        match extension {
            _ if !is_sum(stem) => Self::Foreign,
            HEADER_SUFFIX => Self::Header(FileStem(stem.into())),
            UNFINISHED_SUFFIX => Self::Unfinished,
            sum if is_sum(sum) => Self::Content(FileStem(stem.into())),
            _ => Self::Foreign,
        }
    }
}

fn is_sum(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[derive(Debug)]
pub(super) struct MirrorDirectory(PathBuf);

impl MirrorDirectory {
    /// Creates it if necessary, accessible to its owner only.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
    }

    pub(super) fn header_path(&self, stem: &FileStem) -> PathBuf {
        self.0.join(format!("{}.{HEADER_SUFFIX}", stem.0))
    }

    pub(super) fn content(&self, stem: &FileStem, content: Digest) -> PathBuf {
        self.0.join(format!("{}.{content}", stem.0))
    }

    /// The existing files.
    pub(super) fn list(&self) -> io::Result<Vec<(PathBuf, MirrorFileKind)>> {
        let entries = fs::read_dir(&self.0)?;
        entries
            .map(|entry| entry.map(|entry| (entry.path(), MirrorFileKind::of(&entry.file_name()))))
            .collect()
    }

    /// Writes a file completely or not at all.
    ///
    /// Nothing is synced: after a power failure the file may be damaged or missing, which its checksum shows. That
    /// costs the documents of the last half minute, which came from a backend that was available then; syncs would
    /// cost a disk that the ledger uses too.
    pub(super) fn write(&self, stem: &FileStem, to: &Path, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.0.join(format!("{}.{UNFINISHED_SUFFIX}", stem.0));
        let new = remove(&unfinished).and_then(|()| new_private_file(&unfinished));
        let done = new
            .and_then(|mut new| new.write_all(bytes))
            .and_then(|()| fs::rename(&unfinished, to));
        if done.is_err() {
            drop(remove(&unfinished)); // the error is reported already, and the next start removes the file
        }
        done
    }

    /// The slot of a record, as its header states.
    pub(super) fn slot(&self, stem: &FileStem) -> Result<RecordSlot, RecordFlaw> {
        let bytes = read(&self.header_path(stem), 0..=MAX_HEADER_BYTES)?;
        Ok(parse_header(stem, &bytes)?.slot(bytes.len() as u64))
    }

    /// The record, checked completely.
    pub(super) fn record(&self, stem: &FileStem) -> Result<MirrorRecord, RecordFlaw> {
        let bytes = read(&self.header_path(stem), 0..=MAX_HEADER_BYTES)?;
        let header = parse_header(stem, &bytes)?;
        let content = read(
            &self.content(stem, header.content),
            header.length..=header.length,
        )?;
        if sum_of(&content) != header.content {
            return Err(RecordFlaw::Torn);
        }
        Ok(MirrorRecord {
            name: header.name.into(),
            label: header.label.into(),
            content: content.into(),
        })
    }
}

/// Decodes the header if it belongs to this record.
fn parse_header<'a>(stem: &FileStem, bytes: &'a [u8]) -> Result<RecordHeader<'a>, RecordFlaw> {
    let header = RecordHeader::read(bytes)?;
    if FileStem::of(header.name) == *stem {
        Ok(header)
    } else {
        Err(RecordFlaw::Misplaced)
    }
}

/// Removes a worthless file.
pub(super) fn discard(path: &Path) {
    if let Err(error) = remove(path) {
        tracing::warn!(%error, path = %path.display(), "file of the disk mirror cannot be removed");
    }
}

/// Whether a file exists with this length.
pub(super) fn is_file_of_length(path: &Path, length: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == length)
}

/// Reads a regular file if its size is in range. Anything else is not opened: a pipe would block.
fn read(path: &Path, size: RangeInclusive<u64>) -> Result<Vec<u8>, RecordFlaw> {
    let found = if_found(fs::symlink_metadata(path)).map_err(RecordFlaw::Unreadable)?;
    let found = found.ok_or(RecordFlaw::Missing)?;
    if !found.is_file() {
        return Err(RecordFlaw::Unreadable(io::Error::other(
            "it is not a regular file",
        )));
    }
    if !size.contains(&found.len()) {
        return Err(RecordFlaw::Size(found.len()));
    }
    fs::read(path).map_err(RecordFlaw::Unreadable)
}
