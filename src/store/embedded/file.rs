//! The file: made, checked, upgraded and opened. Everything that happens before the first question.
//!
//! A file that is refused is left as it was: nothing is written before the checks are through. A file under its own
//! name is whole: a new one is made complete under another name first, so one that is empty was emptied, and is refused
//! like one that is damaged; taking it for new would hand out the day's quota again. Not for: what the tables hold
//! (`schema`).

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::beside::{HALF, beside, mark, new_private_file, remove, remove_database, sync_directory, traces};
use super::fault::StoreFault;
use super::maintenance::swap;
use super::{schema, sound};
use crate::store::StoreError;

/// The file's name in the data directory.
pub(super) const FILE_NAME: &str = "scoregate.db";

const OPENING: &str = "open its file";
/// How long another process may hold the lock before we give up. The command line holds it for a moment.
const PATIENCE: Duration = Duration::from_secs(5);
/// A reader that lingers lets the log grow; after that it is cut back to this.
const LOG_BYTES: i64 = 64 << 20;
/// The log is copied into the file each time it has grown by so many pages. A page that a thousand imported keys have
/// changed meanwhile is copied once.
const LOG_PAGES: i64 = 4_000;
/// Pages of the file that the writer keeps in memory, in KiB: keys come in no order, so that an import changes pages all
/// over the file.
const CACHE_KIB: i64 = 16_384;

/// The file with its two connections.
pub(super) struct OpenedStore {
    pub(super) path: PathBuf,
    pub(super) writer: Connection,
    pub(super) reader: Connection,
    /// Whether it was too large to be checked whole.
    pub(super) is_large: bool,
}

/// Opens the store in this directory.
pub(super) fn open(directory: &Path) -> Result<OpenedStore, StoreError> {
    let path = directory.join(FILE_NAME);
    let opened = open_steps(directory, &path, schema::STEPS).and_then(|(writer, reader)| {
        let is_large = !sound::is_small(&reader)?;
        Ok((writer, reader, is_large))
    });
    match opened {
        Ok((writer, reader, is_large)) => Ok(OpenedStore { path, writer, reader, is_large }),
        Err(fault) => Err(fault.told(OPENING, &path)),
    }
}

pub(super) fn open_steps(
    directory: &Path,
    path: &Path,
    steps: &[&str],
) -> Result<(Connection, Connection), StoreFault> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    swap::finish(path)?;
    make(path, steps)?;
    let mut writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    check(&writer, path, steps)?;
    write_ahead(&writer)?;
    upgrade(&mut writer, path, steps)?;
    mark(path)?;
    // The file takes its room on the disk now, so that its log can be emptied even when the disk is full.
    writer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    let reader = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    Ok((writer, reader))
}

/// Makes the file where there is none, and none ever was.
fn make(path: &Path, steps: &[&str]) -> Result<(), StoreFault> {
    match fs::metadata(path) {
        Ok(found) if found.len() == 0 => return Err(StoreFault::Record("it is empty".into())),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Err(_) => {}
    }
    // A start without keys would turn every caller away, and forget what was granted today.
    if let Some(gone) = gone(path) {
        return Err(gone);
    }
    make_new(path, steps)
}

/// Makes an empty store under this name, where there is no file.
pub(super) fn make_new(path: &Path, steps: &[&str]) -> Result<(), StoreFault> {
    let half = beside(path, HALF);
    make_at(&half, steps)?.close().map_err(|(_, error)| error)?;
    File::open(&half)?.sync_all()?;
    fs::rename(&half, path)?;
    Ok(sync_directory(path)?)
}

/// What is wrong where the file is missing and something shows that there was one; `None` if there never was.
pub(super) fn gone(path: &Path) -> Option<StoreFault> {
    let traces = traces(path);
    let trace = traces.first()?.file_name().unwrap_or_default().display();
    Some(StoreFault::Record(format!("the file is missing, but `{trace}` shows that there was one")))
}

/// A new store under this name, in place of what lies there. Closing the connection leaves it as one file.
pub(super) fn make_at(path: &Path, steps: &[&str]) -> Result<Connection, StoreFault> {
    remove_database(path)?;
    new_private_file(path)?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    write_ahead(&connection)?;
    take_steps(&mut connection, steps)?;
    Ok(connection)
}

pub(super) fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Undo records of a savepoint stay in memory: a full temporary directory must not fail a lease.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Refuses what is not ours, newer than we are, or damaged.
fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Result<(), StoreFault> {
    // Until the checks are through, closing must not copy the log into the file either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    sound::is_ours(connection, path, steps)?;
    sound::at_start(connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Every commit reaches the disk before it counts, and readers never wait for it.
pub(super) fn write_ahead(connection: &Connection) -> Result<(), StoreFault> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreFault::Disk(io::Error::other(
            "this file system offers no shared memory, which the log needs",
        )));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", LOG_PAGES, |_| Ok(()))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(())
}

/// Takes the steps that the file has not taken, all or none, after a copy of an existing file.
fn upgrade(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), StoreFault> {
    let found = sound::version(connection)?;
    if found == sound::format_of(steps) {
        return Ok(());
    }
    back_up(connection, path, found)?;
    take_steps(connection, steps)
}

/// Takes the steps that the file has not taken, all or none.
pub(super) fn take_steps(connection: &mut Connection, steps: &[&str]) -> Result<(), StoreFault> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have upgraded it meanwhile.
    let found = usize::try_from(sound::version(&change)?).unwrap_or(usize::MAX);
    for step in steps.iter().skip(found) {
        change.execute_batch(step)?;
    }
    change.pragma_update(None, "user_version", sound::format_of(steps))?;
    Ok(change.commit()?)
}

/// Leaves a whole copy beside the file, under its final name only once it is on the disk.
fn back_up(connection: &Connection, path: &Path, found: u32) -> Result<(), StoreFault> {
    let (half, whole) = (beside(path, ".bak.half"), beside(path, &format!(".v{found}.bak")));
    remove(&half)?;
    copy(connection, &half)?;
    fs::rename(&half, &whole)?;
    Ok(sync_directory(&whole)?)
}

/// Copies what the connection sees at this moment into a new file, and has that on the disk. One step is one snapshot:
/// a writer goes on meanwhile, and what it writes is not in the copy.
pub(super) fn copy(connection: &Connection, to: &Path) -> Result<(), StoreFault> {
    new_private_file(to)?;
    let mut copy = Connection::open(to)?;
    rusqlite::backup::Backup::new(connection, &mut copy)?.run_to_completion(i32::MAX, PATIENCE, None)?;
    copy.close().map_err(|(_, error)| error)?;
    Ok(File::open(to)?.sync_all()?)
}
