//! `scoregate store export`: the rows of a store as lines.

use std::{
    io::{self, Write},
    path::Path,
};

use super::{
    maintenance_error::{MaintenanceError, MaintenanceResult},
    read_only,
};
use crate::{
    dump::{self, RowCounts},
    statements::{Fault, Tables, done},
};
use scoregate_base::clock::Wall;

/// Exports a store file. Output without its last line is incomplete.
pub fn export(path: &Path, out: &mut dyn Write, now: Wall) -> MaintenanceResult<RowCounts> {
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path.to_owned()));
    }
    let mut begun = false;
    let exported = read_only::at(path, |file| {
        if std::mem::replace(&mut begun, true) {
            return Err(Fault::Disk(io::Error::other(
                "a server opened it in the meantime; export it again",
            )));
        }
        // One snapshot: a server may keep writing.
        let store = file.lock();
        let _snapshot = store.unchecked_transaction()?;
        done(dump::export(Tables::File(file), out, now))
    });
    exported.map_err(|fault| fault.into_error("be exported", path).into())
}
