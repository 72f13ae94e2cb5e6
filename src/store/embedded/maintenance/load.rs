//! Builds a new store from a backup or an export, beside its final path. Whether it may replace a store is decided in
//! `import`.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use sha2::{Digest as _, Sha256};

use super::super::fault::StoreFault;
use super::super::paths::{BACKUP_BEGINS, backup_kind, remove_database};
use super::super::{file, integrity, schema};
use super::dump_lines::{DumpHeader, DumpLine, FORMAT, RecordCounts, VERSION};
use super::read_only;
use crate::json;
use crate::keys::Digest;

/// Maximum length of a line; ours have a few hundred bytes.
const LONGEST: u64 = 1 << 20;

/// Builds a store at `to` from `from`, in this program's format. Fails with what is wrong with `from`.
pub(super) fn new_store(from: &Path, to: &Path) -> Result<Connection, StoreFault> {
    match backup_kind(from) {
        Some(BACKUP_BEGINS) => {
            read_only::at(from, |backup| {
                integrity::is_ours(backup, from, schema::STEPS)?;
                remove_database(to)?;
                file::copy(backup, to)
            })?;
            let mut store = file::connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            file::write_ahead(&store)?;
            file::take_steps(&mut store, schema::STEPS)?;
            Ok(store)
        }
        Some(_) => {
            let store = file::make_at(to, schema::STEPS)?;
            let all = store.unchecked_transaction()?;
            lines(from, &all)?;
            all.commit()?;
            Ok(store)
        }
        None => Err(StoreFault::Record("it is neither a backup nor an export of a store".into())),
    }
}

/// Writes every line into the store, and verifies them against the last one.
fn lines(from: &Path, store: &Connection) -> Result<(), StoreFault> {
    let mut file = BufReader::new(File::open(from)?);
    let (mut counts, mut hash, mut number) = (RecordCounts::default(), Sha256::new(), 0u64);
    let mut text = Vec::new();
    loop {
        text.clear();
        number += 1;
        std::io::Read::take(&mut file, LONGEST).read_until(b'\n', &mut text)?;
        if !text.ends_with(b"\n") {
            return Err(StoreFault::Record(format!("it is truncated in line {number}")));
        }
        let wrong = |reason: &dyn std::fmt::Display| StoreFault::Record(format!("line {number}: {reason}"));
        if number == 1 {
            let head: DumpHeader = json::read(&text).map_err(|bad| wrong(&bad))?;
            if head.format != FORMAT || head.version != VERSION {
                let found = head.version;
                return Err(wrong(&format!("version {found} is unknown; this program supports {VERSION}")));
            }
        } else {
            let line: DumpLine = json::read(&text).map_err(|bad| wrong(&bad))?;
            if let DumpLine::End(end) = line {
                let sha256 = Digest::from_bytes(hash.finalize().into()).to_string();
                let is_over = file.fill_buf()?.is_empty();
                let is_whole = (end.counts, end.sha256) == (counts, sha256) && is_over;
                return if is_whole { Ok(()) } else { Err(wrong(&"it does not match the lines before it")) };
            }
            counts.count(&line);
            line.insert(store).map_err(|fault| match fault {
                StoreFault::Record(reason) => wrong(&reason),
                other @ (StoreFault::Sql(_)
                | StoreFault::Disk(_)
                | StoreFault::Disorder
                | StoreFault::Refused(_)) => other,
            })?;
        }
        hash.update(&text);
    }
}
