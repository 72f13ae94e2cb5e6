//! Whether a file is a store of ours, and whole: what is asked of it before anything is believed.
//!
//! Not for: single records; whatever cannot be read of them is named where they are read (`records`).

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::Connection;

use super::beside::{LOG, beside};
use super::fault::{StoreFault, is_damage};
use crate::store::StoreError;

/// Files up to this size are checked whole at the start: on an ordinary machine that takes 0.2 s.
const CHECKED_WHOLE: i64 = 96 << 20;

/// Refuses a file that is not ours, or newer than these steps, or without the tables of its format.
pub(super) fn is_ours(connection: &Connection, path: &Path, steps: &[&str]) -> Result<u32, StoreFault> {
    let (found, known) = (version(connection)?, format_of(steps));
    if found > known {
        let path = path.display().to_string();
        return Err(StoreError::Newer { path, found, known }.into());
    }
    if is_cut(connection, path)? {
        return Err(StoreFault::Record("its last page is cut".into()));
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (found, tables) {
        (0, 0) => return Err(StoreFault::Record("it holds nothing, not even empty tables".into())),
        (0, _) => return Err(StoreFault::Record("it holds the tables of another program".into())),
        _ => {}
    }
    let taken = usize::try_from(found).unwrap_or(usize::MAX);
    let model = Connection::open_in_memory()?;
    for step in steps.iter().take(taken) {
        model.execute_batch(step)?;
    }
    let has = shape(connection)?;
    // An operator's own columns and indexes are no harm.
    match shape(&model)?.difference(&has).next() {
        Some(missing) => Err(StoreFault::Record(format!("its {missing} is missing or changed"))),
        None => Ok(found),
    }
}

/// Whether a part of a page is missing at the end. With a log beside it that may be a page on its way from there, which
/// a crash cut off.
pub(super) fn is_cut(connection: &Connection, path: &Path) -> Result<bool, StoreFault> {
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    Ok(size(&beside(path, LOG)) == 0 && !size(path).is_multiple_of(u64::from(page.max(1))))
}

/// Columns and indexes, each in words.
fn shape(connection: &Connection) -> Result<BTreeSet<String>, StoreFault> {
    let mut parts = connection.prepare(
        "SELECT format('column %s.%s (%s)', t.name, c.name, c.type || c.\"notnull\" || c.pk)
         FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'
         UNION ALL
         SELECT format('index %s on %s (%s)', i.name, c.name, c.seqno || i.\"unique\")
         FROM sqlite_schema t, pragma_index_list(t.name) i, pragma_index_info(i.name) c
         WHERE t.type = 'table' AND i.origin = 'c'",
    )?;
    let parts = parts.query_map([], |row| row.get(0))?;
    Ok(parts.collect::<Result<_, _>>()?)
}

/// The check before the store is used: of all of it, if it is small. The applications and keys of a large one are read
/// next anyway, which finds pages that are broken and rows that are out of order; [`whole`] looks at the rest while we
/// serve already. That is mostly the ledger of days that are over, and a page of it that is broken fails its reader and
/// never reads as "nothing granted".
pub(super) fn at_start(connection: &Connection) -> Result<(), StoreFault> {
    if is_small(connection)? { whole(connection) } else { Ok(()) }
}

/// Whether [`at_start`] looks at it.
pub(super) fn is_small(connection: &Connection) -> Result<bool, StoreFault> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages.saturating_mul(size) <= CHECKED_WHOLE)
}

/// The check of all of it: pages and their order, but not every index against its table, which takes several times as
/// long.
pub(super) fn whole(connection: &Connection) -> Result<(), StoreFault> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(StoreFault::Record(verdict)) }
}

/// Everything SQLite can find: pages, order, indexes against their tables.
pub(super) fn findings(connection: &Connection) -> Result<Vec<String>, StoreFault> {
    let mut findings = Vec::new();
    let mut check = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = check.query([])?;
    loop {
        let finding: String = match rows.next() {
            Ok(Some(row)) => row.get(0)?,
            Ok(None) => break,
            // Some damage ends the check itself.
            Err(error) if is_damage(&error) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        // With several findings in one tree they come as lines of one text.
        findings.extend(finding.lines().filter(|line| *line != "ok").map(str::to_owned));
    }
    Ok(findings)
}

/// The format of a file: how many steps it has taken.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    // It is signed: what is negative was not written by us, and is as foreign as what is newer.
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(u32::try_from(found).unwrap_or(u32::MAX))
}

/// The format that these steps lead to.
pub(super) fn format_of(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}
