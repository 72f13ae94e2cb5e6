//! Builds a new store from a backup or an export, beside its final path. Whether it may replace a store is decided in
//! `import`.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::maintenance_error::MaintenanceError;
use super::{read_only, seal};
use crate::StoreError;
use crate::dump::{self, DumpReader};
use crate::durable_file::remove_database;
use crate::embedded::fault::{FileResult, StoreFault, is_conflict};
use crate::embedded::paths::{BACKUP_BEGINS, backup_kind};
use crate::embedded::tables::done;
use crate::embedded::{file, integrity};
use crate::sql::schema::STEPS;
use crate::sql::sign_in::END_SIGN_INS;

/// Builds a store at `to` from `from`, in this program's format. Fails with what is wrong with `from`.
pub(super) fn new_store(from: &Path, to: &Path) -> FileResult<Connection> {
    match backup_kind(from) {
        Some(BACKUP_BEGINS) => {
            // A copy of a store made in another way has no checksum.
            if seal::is_intact(from)? == Some(false) {
                return Err(StoreFault::Record("it does not match its checksum".into()));
            }
            read_only::at(from, |backup| {
                integrity::is_ours(backup, from, STEPS)?;
                remove_database(to)?;
                file::copy(backup, to)
            })?;
            let mut store = file::connect(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            file::write_ahead(&store)?;
            file::take_steps(&mut store, STEPS)?;
            store.execute_batch(&END_SIGN_INS.replace("{schema}.", ""))?;
            Ok(store)
        }
        Some(_) => {
            let store = file::make_at(to, STEPS)?;
            lines(from, &store)?;
            Ok(store)
        }
        None => Err(unknown()),
    }
}

/// The error for a file of another program.
pub(super) fn unknown() -> StoreFault {
    StoreFault::Record("it is neither a backup nor an export of a store".into())
}

/// An export as a store in memory.
pub(super) fn in_memory(from: &Path) -> FileResult<Connection> {
    let mut store = Connection::open_in_memory()?;
    file::take_steps(&mut store, STEPS)?;
    lines(from, &store)?;
    Ok(store)
}

/// Why a backup or an export cannot be used: it is damaged, or this could not be done at a path.
pub(super) fn unusable(
    fault: StoreFault,
    from: &Path,
    work: &'static str,
    path: &Path,
) -> MaintenanceError {
    let error = fault.into_error(work, path);
    if let StoreError::Damaged { reason, .. } = error {
        return MaintenanceError::Unfit {
            path: from.to_owned(),
            reason,
        };
    }
    error.into()
}

/// Writes every line into the store, all or none.
fn lines(from: &Path, store: &Connection) -> FileResult<()> {
    let all = store.unchecked_transaction()?;
    let filled = done(dump::fill(&*all, DumpReader::open(from)?));
    if let Err(StoreFault::Sql(error)) = &filled
        && is_conflict(error)
    {
        return Err(StoreFault::Record(error.to_string()));
    }
    filled?;
    Ok(all.commit()?)
}
