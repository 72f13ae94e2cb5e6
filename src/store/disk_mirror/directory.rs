//! The shelf's directory: what its files are called, how one is written and read, what a killed process left there.
//!
//! A jar's files are named by the SHA-256 of its name, so that nothing a name says reaches the file system:
//! `<stem>.slip`, and `<stem>.<sum of its content>`. Not for: deciding who goes (`places`).

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::names::{FileStem, Sha256Sum};
use super::record_header::{LONGEST, RecordHeader};
use super::record_slots::RecordSlot;
use super::{MirrorRecord, RecordFlaw};

const SLIP: &str = "slip";
const HALF: &str = "half";

/// What a file is, by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MirrorFileKind {
    /// The slip of this jar.
    Slip(FileStem),
    /// A content of this jar.
    Content(FileStem),
    /// A file that was being made.
    Half,
    /// Not of our making: never touched.
    Foreign,
}

impl MirrorFileKind {
    pub(super) fn of(file_name: &OsStr) -> Self {
        let Some((stem, ending)) = file_name.to_str().and_then(|name| name.split_once('.')) else {
            return Self::Foreign;
        };
        match ending {
            _ if !is_sum(stem) => Self::Foreign,
            SLIP => Self::Slip(FileStem(stem.into())),
            HALF => Self::Half,
            sum if is_sum(sum) => Self::Content(FileStem(stem.into())),
            _ => Self::Foreign,
        }
    }
}

fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The directory.
#[derive(Debug)]
pub(super) struct MirrorDirectory(PathBuf);

impl MirrorDirectory {
    /// Makes it, for its owner alone, if there is none.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        Ok(Self(path.to_owned()))
    }

    pub(super) fn slip(&self, stem: &FileStem) -> PathBuf {
        self.0.join(format!("{}.{SLIP}", stem.0))
    }

    pub(super) fn content(&self, stem: &FileStem, content: Sha256Sum) -> PathBuf {
        self.0.join(format!("{}.{content}", stem.0))
    }

    /// The files that are there.
    pub(super) fn list(&self) -> io::Result<Vec<(PathBuf, MirrorFileKind)>> {
        let entries = fs::read_dir(&self.0)?;
        entries
            .map(|entry| entry.map(|entry| (entry.path(), MirrorFileKind::of(&entry.file_name()))))
            .collect()
    }

    /// Puts a file in its place, whole or not at all.
    ///
    /// Nothing is synced: after a power cut the file may be torn or gone, which its checksum tells. That costs the
    /// documents of the last half minute, which came from a backend that answered then; syncs would cost a disk that
    /// the ledger shares.
    pub(super) fn write(&self, stem: &FileStem, to: &Path, bytes: &[u8]) -> io::Result<()> {
        let half = self.0.join(format!("{}.{HALF}", stem.0));
        let done = write_new(&half, bytes).and_then(|()| fs::rename(&half, to));
        if done.is_err() {
            drop(remove(&half)); // what is wrong is told already, and the next start removes it
        }
        done
    }

    /// The place that a jar takes, as its slip says.
    pub(super) fn place(&self, stem: &FileStem) -> Result<RecordSlot, RecordFlaw> {
        let bytes = read(&self.slip(stem), 0..=LONGEST)?;
        Ok(slip_in(stem, &bytes)?.place(bytes.len() as u64))
    }

    /// The jar, whole and sound.
    pub(super) fn jar(&self, stem: &FileStem) -> Result<MirrorRecord, RecordFlaw> {
        let bytes = read(&self.slip(stem), 0..=LONGEST)?;
        let slip = slip_in(stem, &bytes)?;
        let content = read(&self.content(stem, slip.content), slip.length..=slip.length)?;
        if Sha256Sum::of(&content) != slip.content {
            return Err(RecordFlaw::Torn);
        }
        Ok(MirrorRecord { name: slip.name.into(), label: slip.label.into(), content: content.into() })
    }
}

/// What the slip of this jar says, if it is the slip of this jar.
fn slip_in<'a>(stem: &FileStem, bytes: &'a [u8]) -> Result<RecordHeader<'a>, RecordFlaw> {
    let slip = RecordHeader::read(bytes)?;
    if FileStem::of(slip.name) == *stem { Ok(slip) } else { Err(RecordFlaw::Misplaced) }
}

/// Nothing that is there is written to or followed, whatever it is.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    remove(path)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

/// Removes a file that is worth nothing.
pub(super) fn discard(path: &Path) {
    if let Err(error) = remove(path) {
        tracing::warn!(%error, path = %path.display(), "file of the disk mirror cannot be removed");
    }
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a file is there and has so many bytes.
pub(super) fn is_there(path: &Path, length: u64) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == length)
}

/// Reads a file if its size is one of these. Anything but a file is not opened: a pipe would never answer.
fn read(path: &Path, size: RangeInclusive<u64>) -> Result<Vec<u8>, RecordFlaw> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(RecordFlaw::Missing),
        found => found.map_err(RecordFlaw::Unreadable)?,
    };
    if !found.is_file() {
        return Err(RecordFlaw::Unreadable(io::Error::other("it is no file")));
    }
    if !size.contains(&found.len()) {
        return Err(RecordFlaw::Size(found.len()));
    }
    fs::read(path).map_err(RecordFlaw::Unreadable)
}
