//! The archive's file: created, checked and opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::{Trouble, suites};

/// The application id in the file's header: "sgRn".
const APPLICATION_ID: i32 = 0x7367_526E;
/// The version of the layout below, and of what rows may contain. It is raised with every addition that an older program
/// would read as damage.
pub const FORMAT: i32 = 1;
/// Lock timeout: another import holds the lock for one batch.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Page cache in KiB. A refresh reads each page once…
const CACHE_KIB: i64 = 4_096;
/// …and an import changes pages all over the index of ids, which are random.
const CACHE_OF_IMPORT_KIB: i64 = 65_536;
/// The log is truncated to this size after a reader has lingered.
const LOG_BYTES: i64 = 64 << 20;

/// Runs are stored by model and time, so that a day of a model is contiguous. A day's runs are aggregated in `day`,
/// which is all that a refresh reads; `unsummed` lists days whose aggregate is outdated. Both are numbered by
/// `day_number`. `last_import` is when runs were last aggregated; no row before the first import. The id of a withdrawn run
/// is not used again.
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
    CREATE TABLE last_import (only INTEGER PRIMARY KEY CHECK (only = 1), at_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE withdrawn (
        id TEXT PRIMARY KEY,
        at_ms INTEGER NOT NULL,
        actor TEXT NOT NULL,
        reason TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER withdrawn_run BEFORE INSERT ON run
        WHEN EXISTS (SELECT 1 FROM withdrawn WHERE id = NEW.id) BEGIN SELECT RAISE(IGNORE); END;
    CREATE TABLE audit (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        at_ms INTEGER NOT NULL,
        actor TEXT NOT NULL,
        action TEXT NOT NULL,
        run TEXT NOT NULL,
        reason TEXT NOT NULL,
        before TEXT
    ) STRICT;
    CREATE TRIGGER audit_update BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
    CREATE TRIGGER audit_delete BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
    CREATE TABLE incident_record (
        incident TEXT NOT NULL,
        revision INTEGER NOT NULL,
        model TEXT NOT NULL,
        kind TEXT NOT NULL,
        severity TEXT NOT NULL,
        opened_ms INTEGER NOT NULL,
        resolved_ms INTEGER,
        baseline REAL,
        mean REAL,
        lowest REAL,
        recorded_ms INTEGER NOT NULL,
        last_run TEXT NOT NULL,
        last_run_ms INTEGER NOT NULL,
        retracted_by TEXT,
        reason TEXT,
        method TEXT,
        UNIQUE (incident, revision)
    ) STRICT;
    CREATE INDEX incident_record_of ON incident_record (model, opened_ms);
    CREATE TRIGGER incident_record_update BEFORE UPDATE ON incident_record
        BEGIN SELECT RAISE(ABORT, 'records of incidents are append-only'); END;
    CREATE TRIGGER incident_record_delete BEFORE DELETE ON incident_record
        BEGIN SELECT RAISE(ABORT, 'records of incidents are append-only'); END;
    CREATE TABLE incident_scan (
        model TEXT PRIMARY KEY,
        round_ms INTEGER,
        hour_ms INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
";

/// Opens the file; creates it if it is missing. A foreign or newer file is left as it was.
pub(super) fn open(path: &Path, summed_by: &str) -> Result<Connection, Trouble> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(32);
    if is_empty(&connection)? {
        make(&mut connection, summed_by)?;
    }
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let format = number("user_version")?;
    if number("application_id")? != APPLICATION_ID {
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
    // An acknowledged batch is synced.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    Ok(connection)
}

/// Enlarges the page cache for an import.
pub(super) fn make_room(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "cache_size", -CACHE_OF_IMPORT_KIB)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Several processes may find the same file missing: one of them creates it.
fn make(connection: &mut Connection, summed_by: &str) -> rusqlite::Result<()> {
    connection.pragma_update(None, "page_size", 16_384)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(LAYOUT)?;
        transaction.execute("INSERT INTO summed_by (method) VALUES (?1)", [summed_by])?;
        suites::add(&transaction)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    transaction.commit()
}
