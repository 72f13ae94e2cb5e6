//! The store file: created, checked, migrated and opened.
//!
//! A rejected file is left unchanged: nothing is written before all checks have passed. A file under its final name is
//! complete, because a new store is built under another name first. So an empty file must have been truncated, and is
//! rejected like a damaged one. Treating it as new would grant the day's quota again. `sql::schema` defines the tables.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use super::{
    integrity,
    paths::{mark, store_traces},
    schema, swap,
};
use crate::{
    StoreResult,
    durable_file::{
        HALF, LOG, if_found, new_private_file, remove, remove_database, sync_directory, with_suffix,
    },
    statements::{Done, Fault, schema::STEPS},
};

/// Name of the file in the data directory.
pub const FILE_NAME: &str = "scoregate.db";

const OPENING: &str = "open its file";
/// Lock timeout. Commands hold the lock only briefly.
const PATIENCE: Duration = Duration::from_secs(5);
/// Lock timeout of the checkpoint that empties the log. The writer's queue waits during this time.
const EMPTY_LOG_PATIENCE: Duration = Duration::from_millis(100);
/// The log grows while a reader is active. Afterwards it is truncated to this size.
const LOG_BYTES: i64 = 64 << 20;
/// Checkpoint interval in pages of the log. A larger interval saves copies: a page that is changed by a thousand
/// imported keys is copied once.
const LOG_PAGES: i64 = 4_000;
/// Page cache of the writer in KiB. Keys are random, so an import changes pages all over the file.
const CACHE_KIB: i64 = 16_384;

/// The file with its two connections.
pub struct OpenedStore {
    pub(super) path: PathBuf,
    pub(crate) writer: Connection,
    pub(super) reader: Connection,
}

/// Opens the store in this directory.
pub fn open(directory: &Path) -> StoreResult<OpenedStore> {
    let path = directory.join(FILE_NAME);
    let (writer, reader) =
        open_steps(directory, &path, STEPS).map_err(|fault| fault.into_error(OPENING, &path))?;
    Ok(OpenedStore {
        path,
        writer,
        reader,
    })
}

pub fn open_steps(directory: &Path, path: &Path, steps: &[&str]) -> Done<(Connection, Connection)> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    swap::finish(path)?;
    make(path, steps)?;
    let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&writer, path, steps)?;
    write_ahead(&writer)?;
    upgrade(&mut writer, path, steps)?;
    mark(path)?;
    // Allocates space in the file now, so that the log can be checkpointed even when the disk is full.
    writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok((writer, reader))
}

/// Creates the store file unless it exists. Fails if the file is empty, or if it is missing but existed before.
fn make(path: &Path, steps: &[&str]) -> Done<()> {
    match if_found(fs::metadata(path))? {
        Some(found) if found.len() == 0 => return Err(Fault::Record("it is empty".into())),
        Some(_) => return Ok(()),
        None => {}
    }
    // A start without keys would mean that all callers are refused and today's grants are lost.
    if let Some(fault) = missing(path) {
        return Err(fault);
    }
    make_new(path, steps)
}

/// Creates an empty store at this path, where no file exists.
pub fn make_new(path: &Path, steps: &[&str]) -> Done<()> {
    let half = with_suffix(path, HALF);
    close_new(make_at(&half, steps)?, &half)?;
    fs::rename(&half, path)?;
    Ok(sync_directory(path)?)
}

/// Closes a new store and syncs its file. Fails if its log remains, since only the store file is renamed afterwards.
pub fn close_new(store: Connection, path: &Path) -> Done<()> {
    let is_busy: bool = store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    store.close().map_err(|(_, error)| error)?;
    if is_busy || with_suffix(path, LOG).exists() {
        return Err(io::Error::other("its write-ahead log cannot be copied into it").into());
    }
    Ok(File::open(path)?.sync_all()?)
}

/// The error for a missing file if traces show that it existed before; `None` if it never did.
pub fn missing(path: &Path) -> Option<Fault> {
    let traces = store_traces(path);
    let trace = traces.first()?.file_name().unwrap_or_default().display();
    Some(Fault::Record(format!(
        "the file is missing, but `{trace}` shows that there was one"
    )))
}

/// Creates a store at this path, replacing an existing file.
pub fn make_at(path: &Path, steps: &[&str]) -> Done<Connection> {
    remove_database(path)?;
    // SQLite creates the log with the mode of the file.
    new_private_file(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    write_ahead(&connection)?;
    take_steps(&mut connection, steps)?;
    Ok(connection)
}

pub fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let access = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(path, access)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Otherwise a statement whose limit is a parameter is compiled again for each value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Savepoint journals stay in memory, so that a full temporary directory cannot make a lease fail.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Rejects a file that is not a store, is newer than this program, or is damaged.
fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Done<()> {
    // Until all checks have passed, closing must not checkpoint the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    integrity::is_ours(connection, path, steps)?;
    integrity::at_start(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Sets write-ahead logging. Every commit is synced before it counts, and readers never wait for it.
pub fn write_ahead(connection: &Connection) -> Done<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Disk(io::Error::other(
            "this file system does not support shared memory, which the write-ahead log requires",
        )));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // With this setting, deleted personal data is overwritten.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(())
}

/// Copies the log into the file and truncates it, because the log still contains deleted data. This is not possible
/// while another connection reads an older state. The next deletion of data tries again.
pub fn empty_log(writer: &Connection) {
    drop(writer.busy_timeout(EMPTY_LOG_PATIENCE));
    // The result may be `busy`. An error loses nothing, because the log is complete.
    drop(writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    drop(writer.busy_timeout(PATIENCE));
}

/// Applies all pending migration steps in one transaction, after copying an existing file.
fn upgrade(connection: &mut Connection, path: &Path, steps: &[&str]) -> Done<()> {
    let found = integrity::version(connection)?;
    if found == integrity::format_of(steps) {
        return Ok(());
    }
    back_up(connection, path, found)?;
    take_steps(connection, steps)
}

/// Applies all pending migration steps in one transaction.
pub fn take_steps(connection: &mut Connection, steps: &[&str]) -> Done<()> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have upgraded the file in the meantime.
    let found = usize::try_from(integrity::version(&change)?).unwrap_or(usize::MAX);
    for step in steps.iter().skip(found) {
        change.execute_batch(&schema::statements(step))?;
    }
    change.pragma_update(None, "user_version", integrity::format_of(steps))?;
    Ok(change.commit()?)
}

/// Writes a complete copy next to the file. It gets its final name once it is synced.
fn back_up(connection: &Connection, path: &Path, found: u32) -> Done<()> {
    let half = with_suffix(path, ".bak.half");
    let whole = with_suffix(path, &format!(".v{found}.bak"));
    remove(&half)?;
    copy(connection, &half)?;
    fs::rename(&half, &whole)?;
    Ok(sync_directory(&whole)?)
}

/// Copies a snapshot into a new file and syncs it. Writers can continue. Their changes are not in the copy.
pub fn copy(connection: &Connection, to: &Path) -> Done<()> {
    new_private_file(to)?;
    let mut copy = Connection::open(to)?;
    rusqlite::backup::Backup::new(connection, &mut copy)?.run_to_completion(
        i32::MAX,
        PATIENCE,
        None,
    )?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(File::open(to)?.sync_all()?)
}
