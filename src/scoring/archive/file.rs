//! The archive's file: made, checked and opened.
//!
//! Not for: what is put into it (`mod.rs`).

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::ArchiveError;

/// Says in the file's head that it is an archive of ours: "sgRn".
const APPLICATION_ID: i32 = 0x7367_526E;
/// The layout below.
const FORMAT: i32 = 1;
/// How long another import may hold the lock before we give up: it holds it for one batch.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pages of the file that are kept in memory, in KiB. A refresh reads each once…
const CACHE_KIB: i64 = 4_096;
/// …and an import changes pages all over the index of identifiers, which come in no order.
const CACHE_OF_IMPORT_KIB: i64 = 65_536;
/// The log is cut back to this after a reader has lingered.
const LOG_BYTES: i64 = 64 << 20;

/// Runs stand by model and instant, so that a day of a model lies together. A day's runs are summed up in `day`, which is
/// all that a refresh reads; `unsummed` names the days whose sum is not current. Both are numbered by `day_number`.
const LAYOUT: &str = "
    CREATE TABLE model (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE description (
        number INTEGER PRIMARY KEY,
        model INTEGER NOT NULL,
        name TEXT NOT NULL,
        provider TEXT NOT NULL,
        price_input REAL,
        price_output REAL
    ) STRICT;
    CREATE INDEX description_of ON description (model, name);
    CREATE TABLE run (
        model INTEGER NOT NULL,
        at_ms INTEGER NOT NULL,
        id TEXT NOT NULL,
        suite INTEGER NOT NULL,
        description INTEGER NOT NULL,
        trials BLOB,
        failed_trials BLOB,
        failure INTEGER,
        detail TEXT,
        PRIMARY KEY (model, at_ms, id)
    ) STRICT, WITHOUT ROWID;
    CREATE UNIQUE INDEX run_id ON run (id);
    CREATE TABLE day (number INTEGER PRIMARY KEY, sum BLOB NOT NULL) STRICT;
    CREATE TABLE unsummed (number INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE summed_by (method TEXT NOT NULL) STRICT;
";

/// When runs were last summed up; no row before the first import. In a statement of its own, since archives of before are
/// without it.
const LAST_IMPORT: &str = "
    CREATE TABLE IF NOT EXISTS last_import (only INTEGER PRIMARY KEY CHECK (only = 1), at_ms INTEGER NOT NULL) STRICT;
";

/// Opens the file; makes it if it is missing. One that is not ours, or newer than we are, is left as it was.
pub(super) fn open(path: &Path, summed_by: &str) -> Result<Connection, ArchiveError> {
    let told = |error| ArchiveError::of(path, error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(told)?;
    connection.busy_timeout(PATIENCE).map_err(told)?;
    connection.set_prepared_statement_cache_capacity(32);
    if is_empty(&connection).map_err(told)? {
        make(&mut connection, summed_by).map_err(told)?;
    }
    check(&connection, path)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(told)?;
    if mode != "wal" {
        return Err(ArchiveError::Place { path: path.to_owned() });
    }
    connection.execute_batch(LAST_IMPORT).map_err(told)?;
    // A batch that was acknowledged is on the disk.
    connection.pragma_update(None, "synchronous", "FULL").map_err(told)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(told)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(())).map_err(told)?;
    Ok(connection)
}

/// Makes room in memory for an import.
pub(super) fn make_room(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CACHE_OF_IMPORT_KIB)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))
}

/// Several programs may begin with the same missing file: one of them makes it.
fn make(connection: &mut Connection, summed_by: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", 16_384)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(LAYOUT)?;
        transaction.execute("INSERT INTO summed_by (method) VALUES (?1)", [summed_by])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}

fn check(connection: &Connection, path: &Path) -> Result<(), ArchiveError> {
    let number = |name: &str| {
        let found: rusqlite::Result<i32> = connection.pragma_query_value(None, name, |row| row.get(0));
        found.map_err(|error| ArchiveError::of(path, error))
    };
    if number("application_id")? != APPLICATION_ID {
        return Err(ArchiveError::Foreign { path: path.to_owned() });
    }
    let found = number("user_version")?;
    if found > FORMAT {
        return Err(ArchiveError::Newer { path: path.to_owned(), found, known: FORMAT });
    }
    Ok(())
}
