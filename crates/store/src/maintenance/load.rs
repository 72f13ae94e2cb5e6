//! Builds a new store from a backup or an export, next to its final path. `import` decides whether it may replace a
//! store.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{maintenance_error::MaintenanceError, read_only, seal};
use crate::{
    StoreError,
    dump::{self, DumpReader},
    durable_file::remove_database,
    embedded::{
        file, integrity,
        paths::{BACKUP_BEGINS, backup_kind},
    },
    sql::END_SIGN_INS,
    statements::{Done, Fault, FileConnection, Tables, done, schema::STEPS},
};

/// Builds a store at `to` from `from`, in this program's format. An error describes the problem with `from`.
pub fn new_store(from: &Path, to: &Path) -> Done<FileConnection> {
    match backup_kind(from) {
        Some(BACKUP_BEGINS) => {
            // A copy of a store that was made with other tools has no checksum.
            if seal::is_intact(from)? == Some(false) {
                return Err(Fault::Record("it does not match its checksum".into()));
            }
            read_only::at(from, |backup| {
                let backup = backup.lock();
                integrity::is_ours(&backup, from, STEPS)?;
                remove_database(to)?;
                file::copy(&backup, to)
            })?;
            let mut store = file::connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            file::write_ahead(&store)?;
            file::take_steps(&mut store, STEPS)?;
            store.execute_batch(&END_SIGN_INS.replace("{schema}.", ""))?;
            Ok(FileConnection::new(store))
        }
        Some(_) => lines(from, file::make_at(to, STEPS)?),
        None => Err(unknown()),
    }
}

/// The error for a file that another program wrote.
pub fn unknown() -> Fault {
    Fault::Record("it is neither a backup nor an export of a store".into())
}

/// Loads an export into a store in memory.
pub fn in_memory(from: &Path) -> Done<FileConnection> {
    let mut store = Connection::open_in_memory()?;
    file::take_steps(&mut store, STEPS)?;
    lines(from, store)
}

/// The error for a backup or an export that cannot be used: the file is damaged, or the operation `work` failed at
/// `path`.
pub fn unusable(fault: Fault, from: &Path, work: &'static str, path: &Path) -> MaintenanceError {
    let error = fault.into_error(work, path);
    if let StoreError::Damaged { reason, .. } = error {
        return MaintenanceError::Unfit {
            path: from.to_owned(),
            reason,
        };
    }
    error.into()
}

/// If a store never had a current day, the newest day with granted units becomes the current day.
pub const OPEN_NEWEST_DAY: &str = "
UPDATE calendar SET day = max(day, coalesce((SELECT max(day) FROM ledger_days WHERE date(day) = day), day))
WHERE day = '1970-01-01'";

/// Whether an error is a conflict with an existing record.
fn is_conflict(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation)
}

/// Writes all lines of an export into the store in one transaction.
fn lines(from: &Path, store: Connection) -> Done<FileConnection> {
    let file = FileConnection::new(store);
    let store = file.lock();
    let all = store.unchecked_transaction()?;
    match done(dump::fill(Tables::File(&file), DumpReader::open(from)?)) {
        Err(Fault::File(error)) if is_conflict(&error) => {
            return Err(Fault::Record(error.to_string()));
        }
        filled => filled?,
    };
    // An export does not contain the calendar.
    all.execute(OPEN_NEWEST_DAY, [])?;
    all.commit()?;
    drop(store);
    Ok(file)
}
