//! Writes a local copy: as a whole, then change by change.

use std::fs::File;
use std::io::{self, Write as _};

use super::line::{CopyLine, FORMAT, VERSION};
use super::{CopiedReading, LocalCopy};
use crate::StoredApplication;
use crate::durable_file::{FileReplacement, HALF};

/// Bytes that may be appended to a copy that is smaller than this.
const MIN_APPENDED: u64 = 16 << 20;

/// A copy that is being written as a whole. The old one stays in place until it is finished.
#[derive(Debug)]
pub struct NewLocalCopy {
    replacement: FileReplacement,
    lines: u64,
    bytes: u64,
}

/// A whole copy to which changes are appended.
#[derive(Debug)]
pub struct LocalCopyLog {
    file: File,
    lines: u64,
    /// Bytes written as a whole, and appended since.
    bytes: [u64; 2],
}

impl NewLocalCopy {
    /// Begins a new copy.
    pub fn begin(copy: &LocalCopy) -> io::Result<Self> {
        let mut new = Self {
            replacement: FileReplacement::begin(copy.path(), HALF)?,
            lines: 0,
            bytes: 0,
        };
        new.write([CopyLine::Begin {
            format: FORMAT.into(),
            version: VERSION,
        }])?;
        Ok(new)
    }

    /// Writes applications.
    pub fn push(&mut self, applications: &[StoredApplication]) -> io::Result<()> {
        self.write(applications.iter().map(CopyLine::application))
    }

    /// Replaces the old copy by this one, which contains every change up to `reading`.
    pub fn finish(mut self, reading: &CopiedReading) -> io::Result<LocalCopyLog> {
        self.write([CopyLine::reading(reading)])?;
        let Self {
            replacement,
            lines,
            bytes,
        } = self;
        Ok(LocalCopyLog {
            file: replacement.finish()?,
            lines,
            bytes: [bytes, 0],
        })
    }

    fn write(&mut self, content: impl IntoIterator<Item = CopyLine>) -> io::Result<()> {
        let text = numbered(content, &mut self.lines)?;
        self.bytes += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.replacement.file().write_all(&text)
    }
}

impl LocalCopyLog {
    /// Appends changed applications, durably. With them the copy is complete up to `reading`. After a failure a new copy
    /// has to be written.
    pub fn append(
        &mut self,
        changed: &[StoredApplication],
        reading: &CopiedReading,
    ) -> io::Result<()> {
        let content = changed
            .iter()
            .map(CopyLine::application)
            .chain([CopyLine::reading(reading)]);
        let text = numbered(content, &mut self.lines)?;
        self.file.write_all(&text)?;
        let [_, appended] = &mut self.bytes;
        *appended += u64::try_from(text.len()).unwrap_or(u64::MAX);
        self.file.sync_data()
    }

    /// Whether a new copy would be much shorter.
    pub fn is_long(&self) -> bool {
        let [whole, appended] = self.bytes;
        appended > whole.max(MIN_APPENDED)
    }
}

fn numbered(content: impl IntoIterator<Item = CopyLine>, lines: &mut u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in content {
        line.write(*lines, &mut text)?;
        *lines += 1;
    }
    Ok(text)
}
