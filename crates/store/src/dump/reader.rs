//! Reads an export and verifies it.

use std::{
    collections::HashMap,
    fmt::Display,
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{
    RowCounts,
    format::{DumpEnd, DumpHeader, END, FORMAT, VERSION},
    tables::{DumpColumn, DumpTable, TABLES},
};
use crate::TransferError;
use scoregate_base::{json, keys::Digest};

/// Maximum length of a line. Exported lines have a few hundred bytes.
const LONGEST: u64 = 1 << 20;

/// Rows by table.
pub type RowsByTable = HashMap<&'static str, Vec<Value>>;

/// An export, line by line. Its rows may be used only after the last line was read, which verifies the export.
pub struct DumpReader {
    file: BufReader<File>,
    columns: Vec<Vec<DumpColumn>>,
    counts: RowCounts,
    hash: Sha256,
    line: u64,
    /// Whether the last line was read and matches the others.
    is_complete: bool,
}

impl DumpReader {
    /// Opens an export and reads its first line.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        let file = BufReader::new(File::open(path)?);
        let mut reader = Self {
            file,
            columns: TABLES.iter().map(DumpTable::columns).collect(),
            counts: RowCounts::default(),
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

    /// The next rows, up to `most`. Empty after the last row, if the export is complete.
    pub(super) fn rows(&mut self, most: usize) -> Result<RowsByTable, TransferError> {
        let mut rows = RowsByTable::new();
        for _ in 0..most {
            if self.is_complete {
                break;
            }
            let text = self.next_text()?;
            let line: Map<String, Value> = json::read(&text).map_err(|bad| self.wrong(&bad))?;
            let is_one = line.len() == 1;
            let first = line.into_iter().next().filter(|_| is_one);
            let (name, content) = first.ok_or_else(|| self.wrong(&"it is not one row"))?;
            if name == END {
                self.complete(content)?;
                continue;
            }
            let table = self.check(&name, &content)?;
            rows.entry(table).or_default().push(content);
            self.counts.count(table);
            self.hash.update(&text);
        }
        Ok(rows)
    }

    /// Number of rows read so far.
    pub(super) fn counts(self) -> RowCounts {
        self.counts
    }

    /// The table of a row; an error if the row does not match it.
    fn check(&self, name: &str, row: &Value) -> Result<&'static str, TransferError> {
        let known = TABLES.iter().zip(&self.columns);
        let Some((table, columns)) = known.into_iter().find(|(table, _)| table.name == name) else {
            return Err(self.wrong(&format!("the table {name} is unknown")));
        };
        let row = row
            .as_object()
            .ok_or_else(|| self.wrong(&"it is not a row"))?;
        let checked = table.check(columns, row);
        checked.map_err(|reason| self.wrong(&reason))?;
        Ok(table.name)
    }

    /// Compares the last line with the others.
    fn complete(&mut self, end: Value) -> Result<(), TransferError> {
        let end: DumpEnd = serde_json::from_value(end).map_err(|bad| self.wrong(&bad))?;
        let sha256 = Digest::from_bytes(self.hash.clone().finalize().into()).to_string();
        let is_over = self.file.fill_buf()?.is_empty();
        self.is_complete = end.rows == self.counts && end.sha256 == sha256 && is_over;
        if self.is_complete {
            Ok(())
        } else {
            Err(self.wrong(&"it does not match the lines before it"))
        }
    }

    /// An error about the last line that was read.
    fn wrong(&self, reason: &dyn Display) -> TransferError {
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
