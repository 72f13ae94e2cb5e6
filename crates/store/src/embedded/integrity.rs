//! Checks that a file is a complete store of this program before it is used. Individual records are checked when they
//! are read (`records`).

use std::{collections::BTreeSet, path::Path};

use rusqlite::{Connection, OptionalExtension as _};

use super::schema;
use crate::{
    StoreError,
    durable_file::{LOG, with_suffix},
    local::is_damage,
    statements::{Done, Fault},
};

/// Files up to this size are checked completely at startup. That takes 0.2 s on an ordinary machine.
const CHECKED_WHOLE: i64 = 96 << 20;

/// Rejects a file that is not a store, has a format newer than the last of these steps, or lacks tables of its format.
pub fn is_ours(connection: &Connection, path: &Path, steps: &[&str]) -> Done<u32> {
    let found = version(connection)?;
    let known = format_of(steps);
    if found > known {
        let path = path.display().to_string();
        return Err(StoreError::Newer { path, found, known }.into());
    }
    if is_cut(connection, path)? {
        return Err(Fault::Record("its last page is truncated".into()));
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (found, tables) {
        (0, 0) => return Err(Fault::Record("it is empty, without any tables".into())),
        (0, _) => {
            return Err(Fault::Record(
                "it contains tables of another program".into(),
            ));
        }
        _ => {}
    }
    let taken = usize::try_from(found).unwrap_or(usize::MAX);
    let model = Connection::open_in_memory()?;
    for step in steps.iter().take(taken) {
        model.execute_batch(&schema::statements(step))?;
    }
    let has = shape(connection)?;
    // Columns and indexes that an operator added are allowed.
    match shape(&model)?.difference(&has).next() {
        Some(missing) => Err(Fault::Record(format!(
            "its {missing} is missing or changed"
        ))),
        None => Ok(found),
    }
}

/// Whether the last page is incomplete. If a log exists, the result is `false`, because a crash may have interrupted a write from
/// the log to the file.
pub fn is_cut(connection: &Connection, path: &Path) -> Done<bool> {
    let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(size(&with_suffix(path, LOG)) == 0 && !size(path).is_multiple_of(u64::from(page.max(1))))
}

/// The size of a file, 0 if it cannot be read.
pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

/// Columns and indexes, described in words.
fn shape(connection: &Connection) -> Done<BTreeSet<String>> {
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

/// The check before the store is used. A small file is checked completely. In a large file, a table is checked only if a missing
/// row would make the gateway refuse a caller or grant units twice. The other tables are mostly the audit trail and requests. Every backup is checked completely, and reading a broken page fails.
pub fn at_start(connection: &Connection) -> Done<()> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    if pages.saturating_mul(size) <= CHECKED_WHOLE {
        whole(connection)?;
    }
    of_grants_and_keys(connection)
}

/// Checks all pages and their order, but does not compare every index with its table, which would take several times as
/// long.
pub fn whole(connection: &Connection) -> Done<()> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" {
        Ok(())
    } else {
        Err(Fault::Record(verdict))
    }
}

/// Damage in the tables of grants and keys. Only a complete check of a table finds rows that are out of order, which a
/// lookup may miss. For keys this would take seconds, because their digests have an index. Instead, each key is looked
/// up by its application. The comparison of `shown` makes SQLite read the table instead of that index.
const FAULTS: &str = "
SELECT t.name || ': ' || c.integrity_check AS fault FROM sqlite_schema t, pragma_integrity_check(t.name) c
WHERE t.name IN ('applications', 'ledger_days', 'owners') AND c.integrity_check <> 'ok'
UNION ALL SELECT 'keys: ' || quick_check FROM pragma_quick_check('keys') WHERE quick_check <> 'ok'
UNION ALL SELECT 'keys: a row is not found by its key' WHERE EXISTS (
    SELECT 1 FROM keys k WHERE k.shown >= '' AND NOT EXISTS (
        SELECT 1 FROM keys f WHERE f.application = k.application AND +f.digest = k.digest))";

/// Checks the tables of grants and keys, because a damaged table may lack rows. Checking a million keys takes 0.8 s.
pub fn of_grants_and_keys(connection: &Connection) -> Done<()> {
    let mut check = connection.prepare(FAULTS)?;
    let fault: Option<String> = check.query_row([], |row| row.get(0)).optional()?;
    fault.map_or(Ok(()), |fault| Err(Fault::Record(fault)))
}

/// All damage that SQLite can find: pages, order, and indexes that do not match their tables.
pub fn findings(connection: &Connection) -> Done<Vec<String>> {
    let mut findings = Vec::new();
    let mut check = connection.prepare("PRAGMA integrity_check(100)")?;
    let mut rows = check.query([])?;
    loop {
        let finding: String = match rows.next() {
            Ok(Some(row)) => row.get(0)?,
            Ok(None) => break,
            // Some damage stops the check itself.
            Err(error) if is_damage(&error) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        // Several findings in one tree are separate lines of the same text.
        findings.extend(
            finding
                .lines()
                .filter(|line| *line != "ok")
                .map(str::to_owned),
        );
    }
    Ok(findings)
}

/// The format of a file: the number of applied steps.
pub fn version(connection: &Connection) -> rusqlite::Result<u32> {
    // Signed: no version of this program writes a negative number, so it is rejected like a newer format.
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(u32::try_from(found).unwrap_or(u32::MAX))
}

/// The format after these steps.
pub fn format_of(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}
