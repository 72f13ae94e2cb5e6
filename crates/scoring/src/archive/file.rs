//! The file of the archive: created, checked and opened.

use std::{path::Path, time::Duration};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Trouble;
use crate::run::SuiteTable;

/// The application id in the file header: "sgRn".
const APPLICATION_ID: i32 = 0x7367_526E;
/// The version of the layout below and of the possible contents of rows. It is raised with every addition that an older
/// program would mistake for damage.
pub const FORMAT: i32 = 1;
/// Maximum wait for the lock of another writer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Page cache in KiB. A small cache is enough, because a refresh reads each page once.
const CACHE_KIB: i64 = 4_096;
/// Page cache during an import in KiB. Ids are random, so an import changes pages all over their index.
const CACHE_OF_IMPORT_KIB: i64 = 65_536;
/// Size to which the write-ahead log is truncated. While a reader is active, the log may exceed this size.
const LOG_BYTES: i64 = 64 << 20;

/// Runs are stored by model and time, so that the window of a model is contiguous. Times are in milliseconds. `state`
/// has one row: the text of the suite table and the date of the last import. A deleted run is kept with the reason, so
/// that it can be imported again. Incident revisions are stored as JSON.
const LAYOUT: &str = "
    CREATE TABLE run (
        id TEXT NOT NULL UNIQUE,
        model TEXT NOT NULL,
        at INTEGER NOT NULL,
        suite TEXT NOT NULL,
        trials BLOB,
        failures TEXT NOT NULL,
        detail TEXT,
        name TEXT NOT NULL,
        provider TEXT NOT NULL,
        price_input REAL,
        price_output REAL,
        PRIMARY KEY (model, at, id)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE state (suites TEXT NOT NULL, imported INTEGER) STRICT;
    CREATE TABLE deleted (
        id TEXT NOT NULL,
        at INTEGER NOT NULL,
        actor TEXT NOT NULL,
        reason TEXT NOT NULL,
        run TEXT NOT NULL
    ) STRICT;
    CREATE TABLE incident_record (
        incident TEXT NOT NULL,
        revision INTEGER NOT NULL,
        model TEXT NOT NULL,
        opened INTEGER NOT NULL,
        record TEXT NOT NULL,
        UNIQUE (incident, revision)
    ) STRICT;
    CREATE INDEX incident_record_of ON incident_record (model, opened);
    CREATE TABLE incident_scan (
        model TEXT PRIMARY KEY,
        round INTEGER,
        hour INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// Opens the file, creating it if it is missing. A foreign or newer file is left unchanged.
pub fn open(path: &Path) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(32);
    if is_empty(&connection)? {
        make(&mut connection)?;
    }
    let format = pragma(&connection, "user_version")?;
    if pragma(&connection, "application_id")? != APPLICATION_ID {
        return Err(Trouble::Foreign);
    }
    if format > FORMAT {
        return Err(Trouble::Newer {
            found: format,
            known: FORMAT,
        });
    }
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Trouble::Place);
    }
    // An acknowledged import is durable.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    Ok(connection)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Enlarges the page cache for an import.
pub fn make_room(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CACHE_OF_IMPORT_KIB)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Several processes may find the file missing. Only one of them creates it.
fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", 16_384)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(LAYOUT)?;
        let suites = SuiteTable::default().write();
        transaction.execute("INSERT INTO state (suites) VALUES (?1)", [suites])?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}
