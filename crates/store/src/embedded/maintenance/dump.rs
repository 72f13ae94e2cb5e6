//! `scoregate store export`: everything in a store, as lines; of a damaged file, everything readable.

use std::io::{self, Write};
use std::path::Path;

use rusqlite::Connection;

use super::maintenance_error::{MaintenanceError, MaintenanceResult};
use super::read_only;
use super::walk::walk;
use crate::dump::{DumpWriter, RecordCounts, TABLES};
use crate::embedded::fault::{FileResult, StoreFault};
use crate::embedded::integrity;
use scoregate_base::clock::Wall;

/// Reported for a file whose last page is incomplete: the missing part reads as zeros.
pub(super) const CUT: &str = "the last page is truncated: records in it may be wrong";

/// The result of an export.
#[derive(Debug)]
pub struct ExportSummary {
    /// Number of records.
    pub counts: RecordCounts,
    /// Records that could not be read. Empty unless damage was accepted.
    pub left_out: Vec<String>,
}

/// Exports a store file. With `damaged`, unreadable records are left out and reported; otherwise they end the export.
/// Output without its last line is incomplete.
pub fn export(
    path: &Path,
    damaged: bool,
    out: &mut dyn Write,
    now: Wall,
) -> MaintenanceResult<ExportSummary> {
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path.to_owned()));
    }
    let mut begun = false;
    let done = read_only::with(path, damaged, |store| {
        if std::mem::replace(&mut begun, true) {
            return Err(StoreFault::Disk(io::Error::other(
                "a server opened it meanwhile: export it again",
            )));
        }
        // One snapshot: a server may keep writing.
        let snapshot = store.unchecked_transaction()?;
        let mut exported = write_all(&snapshot, damaged, out, now)?;
        if damaged && integrity::is_cut(&snapshot, path)? {
            exported.left_out.push(CUT.into());
        }
        Ok(exported)
    });
    done.map_err(|mut fault| {
        if let StoreFault::Record(reason) = &mut fault
            && !damaged
        {
            reason.push_str("; `--damaged` with the file's name leaves out what cannot be read");
        }
        fault.into_error("be exported", path).into()
    })
}

fn write_all(
    store: &Connection,
    damaged: bool,
    out: &mut dyn Write,
    now: Wall,
) -> FileResult<ExportSummary> {
    let mut writer = DumpWriter::begin(out, now)?;
    let mut left_out = Vec::new();
    for table in &TABLES {
        left_out.extend(walk(store, table, damaged, &mut |line| {
            Ok(writer.push(&line)?)
        })?);
    }
    Ok(ExportSummary {
        counts: writer.finish()?,
        left_out,
    })
}
