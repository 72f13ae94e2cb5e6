//! Reads an export and verifies it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::TransferError;
use super::lines::{DumpHeader, DumpLine, FORMAT, RecordCounts, VERSION};
use scoregate_base::json;
use scoregate_base::keys::Digest;

/// Maximum length of a line; ours have a few hundred bytes.
const LONGEST: u64 = 1 << 20;

/// An export, line by line. Its records may be used once the last one was read: only then is the export verified.
pub(crate) struct DumpReader {
    file: BufReader<File>,
    counts: RecordCounts,
    hash: Sha256,
    line: u64,
    /// The last line was read and matches the others.
    is_complete: bool,
}

impl DumpReader {
    /// Opens an export and reads its first line.
    pub(crate) fn open(path: &Path) -> Result<Self, TransferError> {
        let file = BufReader::new(File::open(path)?);
        let mut reader = Self {
            file,
            counts: RecordCounts::default(),
            hash: Sha256::new(),
            line: 0,
            is_complete: false,
        };
        let text = reader.next_text()?;
        let head: DumpHeader = json::read(&text).map_err(|bad| reader.wrong(&bad))?;
        if head.format != FORMAT || head.version != VERSION {
            let reason = format!(
                "version {} is unknown; this program reads version {VERSION}",
                head.version
            );
            return Err(reader.wrong(&reason));
        }
        reader.hash.update(&text);
        Ok(reader)
    }

    /// The next record; `None` after the last one, if the export is complete.
    pub(crate) fn next(&mut self) -> Result<Option<DumpLine>, TransferError> {
        if self.is_complete {
            return Ok(None);
        }
        let text = self.next_text()?;
        let line: DumpLine = json::read(&text).map_err(|bad| self.wrong(&bad))?;
        if let DumpLine::End(end) = line {
            let sha256 = Digest::from_bytes(self.hash.clone().finalize().into()).to_string();
            let is_over = self.file.fill_buf()?.is_empty();
            self.is_complete = (end.counts, end.sha256) == (self.counts, sha256) && is_over;
            return if self.is_complete {
                Ok(None)
            } else {
                Err(self.wrong(&"it does not match the lines before it"))
            };
        }
        line.verify().map_err(|reason| self.wrong(&reason))?;
        self.counts.count(&line);
        self.hash.update(&text);
        Ok(Some(line))
    }

    /// The next rows, up to `most`, by the kinds of their lines; none after the last one.
    pub(crate) fn rows(
        &mut self,
        most: usize,
    ) -> Result<HashMap<String, Vec<Value>>, TransferError> {
        let mut rows: HashMap<String, Vec<Value>> = HashMap::new();
        for _ in 0..most {
            let Some(line) = self.next()? else { break };
            let (kind, row) = line.row();
            rows.entry(kind).or_default().push(row.into());
        }
        Ok(rows)
    }

    /// Number of records read so far.
    pub(crate) const fn counts(&self) -> RecordCounts {
        self.counts
    }

    /// An error in the last line that was read.
    pub(crate) fn wrong(&self, reason: &dyn std::fmt::Display) -> TransferError {
        TransferError::Unfit(format!("line {}: {reason}", self.line))
    }

    fn next_text(&mut self) -> Result<Vec<u8>, TransferError> {
        let mut text = Vec::new();
        self.line += 1;
        std::io::Read::take(&mut self.file, LONGEST).read_until(b'\n', &mut text)?;
        if text.ends_with(b"\n") {
            return Ok(text);
        }
        Err(TransferError::Unfit(format!(
            "it is truncated in line {}",
            self.line
        )))
    }
}
