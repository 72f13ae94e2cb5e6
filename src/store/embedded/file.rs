//! The file: made, checked, upgraded and opened. Everything that happens before the first question.
//!
//! A file that is refused is left as it was: nothing is written before the checks are through. Not for: what the
//! tables hold (`schema`).

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::fault::Fault;
use super::schema;
use crate::store::StoreError;

/// The file's name in the data directory.
pub(super) const FILE_NAME: &str = "scoregate.db";

const OPENING: &str = "open its file";
/// How long another process may hold the lock before we give up. The command line holds it for a moment.
const PATIENCE: Duration = Duration::from_secs(5);
/// A reader that lingers lets the log grow; after that it is cut back to this.
const LOG_BYTES: i64 = 64 << 20;

/// The file with its two connections.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) writer: Connection,
    pub(super) reader: Connection,
}

/// Opens the store in this directory.
pub(super) fn open(directory: &Path) -> Result<Opened, StoreError> {
    let path = directory.join(FILE_NAME);
    match open_steps(directory, &path, schema::STEPS) {
        Ok((writer, reader)) => Ok(Opened { path, writer, reader }),
        Err(fault) => Err(fault.told(OPENING, &path)),
    }
}

pub(super) fn open_steps(
    directory: &Path,
    path: &Path,
    steps: &[&str],
) -> Result<(Connection, Connection), Fault> {
    make(directory, path)?;
    let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&writer, path, steps)?;
    write_ahead(&writer)?;
    upgrade(&mut writer, path, steps)?;
    // The file takes its room on the disk now, so that its log can be emptied even when the disk is full.
    writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok((writer, reader))
}

/// Makes what is missing, for its owner alone. SQLite gives its log the mode of the file.
fn make(directory: &Path, path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    match new_private_file(path) {
        Ok(file) => {
            file.sync_all()?;
            File::open(directory)?.sync_all()
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn new_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Undo records of a savepoint stay in memory: a full temporary directory must not fail a lease.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Refuses what is not ours, newer than we are, or damaged.
fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Result<(), Fault> {
    // Until the checks are through, closing must not copy the log into the file either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    let found = version(connection)?;
    let known = format_of(steps);
    let path = path.display().to_string();
    if found > known {
        return Err(StoreError::Newer { path, found, known }.into());
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == 0 && tables > 0 {
        return Err(Fault::Record("it holds the tables of another program".into()));
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(Fault::Record(verdict));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Every commit reaches the disk before it counts, and readers never wait for it.
fn write_ahead(connection: &Connection) -> Result<(), Fault> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Disk(io::Error::other(
            "this file system offers no shared memory, which the log needs",
        )));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    Ok(())
}

/// Takes the steps that the file has not taken, all or none, after a copy of an existing file.
fn upgrade(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), Fault> {
    let known = format_of(steps);
    let found = version(connection)?;
    if found == known {
        return Ok(());
    }
    if found > 0 {
        back_up(connection, path, found)?;
    }
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have upgraded it while we copied.
    let found = usize::try_from(version(&change)?).unwrap_or(usize::MAX);
    for step in steps.iter().skip(found) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "user_version", known)?;
    Ok(change.commit()?)
}

/// Leaves a whole copy beside the file, under its final name only once it is on the disk.
fn back_up(connection: &Connection, path: &Path, found: u32) -> Result<(), Fault> {
    let (half, whole) = (beside(path, ".bak.half"), beside(path, &format!(".v{found}.bak")));
    match std::fs::remove_file(&half) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    new_private_file(&half)?;
    let mut copy = Connection::open(&half)?;
    rusqlite::backup::Backup::new(connection, &mut copy)?.run_to_completion(i32::MAX, PATIENCE, None)?;
    copy.close().map_err(|(_, error)| error)?;
    File::open(&half)?.sync_all()?;
    std::fs::rename(&half, &whole)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())?;
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    // It is signed: what is negative was not written by us, and is as foreign as what is newer.
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(u32::try_from(found).unwrap_or(u32::MAX))
}

fn format_of(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}
