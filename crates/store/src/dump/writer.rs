//! Writes an export. Without its last line it is incomplete.

use std::collections::HashSet;
use std::io::{self, Write};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::TransferError;
use super::lines::{DumpEnd, DumpHeader, DumpLine, FORMAT, RecordCounts, VERSION};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

/// An export in progress.
pub(crate) struct DumpWriter<'o> {
    out: &'o mut dyn Write,
    counts: RecordCounts,
    hash: Sha256,
    /// Applications written so far: records of others are not.
    owners: HashSet<String>,
}

impl<'o> DumpWriter<'o> {
    /// Begins an export.
    pub(crate) fn begin(out: &'o mut dyn Write, now: Wall) -> io::Result<Self> {
        let mut writer = Self {
            out,
            counts: RecordCounts::default(),
            hash: Sha256::new(),
            owners: HashSet::new(),
        };
        writer.write(&DumpHeader {
            format: FORMAT.into(),
            version: VERSION,
            made_at: now.rfc3339(),
        })?;
        Ok(writer)
    }

    /// Writes a record. Those of an application that was not written are rejected.
    pub(crate) fn push(&mut self, line: &DumpLine) -> Result<(), TransferError> {
        if let Some(owner) = line.owner().filter(|owner| !self.owners.contains(*owner)) {
            return Err(TransferError::Unfit(format!(
                "application {owner} is missing or unreadable"
            )));
        }
        if let DumpLine::Application(application) = line {
            self.owners.insert(application.id.clone());
        }
        self.counts.count(line);
        Ok(self.write(line)?)
    }

    /// Completes the export, and returns the number of its records.
    pub(crate) fn finish(self) -> io::Result<RecordCounts> {
        let sha256 = Digest::from_bytes(self.hash.finalize().into()).to_string();
        self.out.write_all(&text(&DumpLine::End(DumpEnd {
            counts: self.counts,
            sha256,
        }))?)?;
        self.out.flush()?;
        Ok(self.counts)
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let text = text(line)?;
        self.hash.update(&text);
        self.out.write_all(&text)
    }
}

fn text(line: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}
