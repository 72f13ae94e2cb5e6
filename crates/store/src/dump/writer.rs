//! Writes an export. It is incomplete until its last line is written.

use std::{
    fmt::Display,
    io::{self, Write},
};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    RowCounts,
    format::{DumpEnd, DumpHeader, END, FORMAT, VERSION},
    tables::{DumpColumn, DumpTable},
};
use crate::{TransferError, statements::SqlRow};
use scoregate_base::{clock::Wall, keys::Digest};

/// An export in progress.
pub struct DumpWriter<'o> {
    out: &'o mut dyn Write,
    counts: RowCounts,
    hash: Sha256,
}

impl<'o> DumpWriter<'o> {
    /// Begins an export.
    pub fn new(out: &'o mut dyn Write, now: Wall) -> io::Result<Self> {
        let mut writer = Self {
            out,
            counts: RowCounts::default(),
            hash: Sha256::new(),
        };
        writer.write(&DumpHeader {
            format: FORMAT.into(),
            version: VERSION,
            made_at: now.rfc3339(),
        })?;
        Ok(writer)
    }

    /// Writes a row. The column `line` is a JSON object.
    pub fn push(
        &mut self,
        table: &DumpTable,
        columns: &[DumpColumn],
        row: &SqlRow<'_>,
    ) -> Result<(), TransferError> {
        let unreadable =
            |reason: &dyn Display| TransferError::Unreadable(format!("{}: {reason}", table.name));
        let row = row.text("line").map_err(|bad| unreadable(&bad.0))?;
        let row: Map<String, Value> =
            serde_json::from_str(&row).map_err(|error| unreadable(&error))?;
        table.check(columns, &row).map_err(|reason| {
            let key = columns.iter().take(table.key);
            let key: Vec<String> = key
                .filter_map(|column| Some(row.get(column.name)?.to_string()))
                .collect();
            TransferError::Unreadable(format!("{} {}: {reason}", table.name, key.join(" ")))
        })?;
        self.counts.count(table.name);
        Ok(self.write(&json!({ table.name: row }))?)
    }

    /// Completes the export, and returns the number of its rows.
    pub fn finish(mut self) -> io::Result<RowCounts> {
        let sha256 = Digest::from_bytes(self.hash.clone().finalize().into()).to_string();
        let rows = self.counts.clone();
        self.write(&json!({ END: DumpEnd { rows, sha256 } }))?;
        self.out.flush()?;
        Ok(self.counts)
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.out.write_all(&text)
    }
}
