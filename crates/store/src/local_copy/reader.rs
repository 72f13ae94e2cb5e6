//! Verifies a local copy, then reads it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _};

use super::line::{CopyLine, FORMAT, VERSION, checked, contains_end, ends_write};
use super::{CopiedReading, LocalCopy};
use crate::durable_file::if_found;
use crate::{ApplicationPage, FeedPosition};
use scoregate_base::clock::Wall;

/// Maximum length of a line. An application with a thousand keys needs a hundredth of it.
const LONGEST: u64 = 16 << 20;
/// Number of applications per page.
const PAGE: usize = 10_000;

/// A copy whose checksums are right.
#[derive(Debug)]
pub struct VerifiedLocalCopy {
    file: BufReader<File>,
    reading: CopiedReading,
    /// Number of lines up to the end of the last complete write.
    lines: u64,
}

/// Why a copy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalCopyFlaw {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Disk(#[from] io::Error),
    /// It was not written to its end, or was changed.
    #[error("it is damaged in line {0}")]
    Damaged(u64),
    /// It was written by another version of the program.
    #[error("its format is unknown to this release")]
    Unknown,
}

impl LocalCopy {
    /// Opens and verifies the copy; `None` without one. Reads the whole file.
    pub fn open(&self) -> Result<Option<VerifiedLocalCopy>, LocalCopyFlaw> {
        let Some(file) = if_found(File::open(self.path()))? else {
            return Ok(None);
        };
        let mut file = BufReader::new(file);
        let (reading, lines) = verify(&mut file)?;
        file.rewind()?;
        Ok(Some(VerifiedLocalCopy {
            file,
            reading,
            lines,
        }))
    }
}

impl VerifiedLocalCopy {
    /// Up to where it is complete.
    pub const fn reading(&self) -> &CopiedReading {
        &self.reading
    }

    /// Passes all applications to `apply`, in pages. One that was changed is passed again as changed.
    pub fn read(mut self, mut apply: impl FnMut(&ApplicationPage)) -> Result<(), LocalCopyFlaw> {
        let mut page = ApplicationPage::default();
        let mut text = Vec::new();
        for number in 0..self.lines {
            next_line(&mut self.file, &mut text)?;
            let line = checked(&text).and_then(|(_, json)| serde_json::from_slice(json).ok());
            match line.ok_or(LocalCopyFlaw::Damaged(number))? {
                CopyLine::Application(copied) => {
                    page.applications
                        .push(copied.into_stored().ok_or(LocalCopyFlaw::Damaged(number))?);
                }
                CopyLine::Begin { .. } | CopyLine::Read { .. } => {}
            }
            if page.applications.len() >= PAGE {
                apply(&page);
                page.applications.clear();
            }
        }
        apply(&page);
        Ok(())
    }
}

/// Finds the end of the last complete write. Lines after it belong to a write that a crash interrupted. A complete write
/// after a wrong line means damage.
fn verify(file: &mut BufReader<File>) -> Result<(CopiedReading, u64), LocalCopyFlaw> {
    let mut text = Vec::new();
    let mut complete = None;
    let mut number = 0;
    let mut is_whole = true;
    while next_line(file, &mut text)? {
        match checked(&text) {
            Some((found, json)) if is_whole && found == number => {
                if number == 0 {
                    check_format(json)?;
                }
                number += 1;
                if ends_write(json) {
                    complete = Some((reading(json).ok_or(LocalCopyFlaw::Damaged(found))?, number));
                }
            }
            Some(_) | None if contains_end(&text) => return Err(LocalCopyFlaw::Damaged(number)),
            Some(_) | None => is_whole = false,
        }
    }
    complete.ok_or(LocalCopyFlaw::Damaged(number))
}

fn check_format(json: &[u8]) -> Result<(), LocalCopyFlaw> {
    match serde_json::from_slice(json) {
        Ok(CopyLine::Begin { format, version }) if format == FORMAT && version == VERSION => Ok(()),
        Ok(_) | Err(_) => Err(LocalCopyFlaw::Unknown),
    }
}

fn reading(json: &[u8]) -> Option<CopiedReading> {
    match serde_json::from_slice(json).ok()? {
        CopyLine::Read { source, number, at } => Some(CopiedReading {
            position: FeedPosition { source, number },
            at: Wall::from_millis(at),
        }),
        CopyLine::Begin { .. } | CopyLine::Application(_) => None,
    }
}

/// Reads a line with its line break. Returns `false` at the end of the file.
fn next_line(file: &mut BufReader<File>, text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    Ok(file.by_ref().take(LONGEST).read_until(b'\n', text)? > 0)
}
