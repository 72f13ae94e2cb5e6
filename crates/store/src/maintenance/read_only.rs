//! Reads a file without side effects.

use std::{fs, os::unix::ffi::OsStrExt as _, path::Path, time::SystemTime};

use data_encoding::HEXLOWER;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    durable_file::{LOG, with_suffix},
    embedded::file::connect,
    statements::{Done, Fault, FileConnection},
};

/// Runs `work` on a read-only connection. `work` may run twice. If there is no write-ahead log, the file is opened as
/// immutable, so that not even an empty log is created next to it. If another process opened the file in the meantime,
/// the result of this run is discarded.
pub fn at<T>(path: &Path, mut work: impl FnMut(&FileConnection) -> Done<T>) -> Done<T> {
    if fs::metadata(path)?.len() == 0 {
        return Err(Fault::Record("it is empty".into()));
    }
    let before = state(path);
    if !before.has_log {
        let outcome = open(Path::new(&address(path))).and_then(|connection| work(&connection));
        if state(path) == before {
            return outcome;
        }
    }
    work(&open(path)?)
}

/// Attaches a file to a connection, as the schema `old`. The file must have no writers.
pub fn attach(connection: &Connection, path: &Path) -> Done<()> {
    connection.execute("ATTACH ?1 AS old", [address(path)])?;
    Ok(())
}

/// Detaches the file.
pub fn detach(connection: &Connection) -> Done<()> {
    // Do not checkpoint the write-ahead log of the file.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.execute("DETACH old", [])?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// The state of a file, which shows whether another process opened it in the meantime.
#[derive(PartialEq)]
struct FileFingerprint {
    has_log: bool,
    bytes: u64,
    written: Option<SystemTime>,
}

fn state(path: &Path) -> FileFingerprint {
    let found = fs::metadata(path);
    FileFingerprint {
        has_log: with_suffix(path, LOG).exists(),
        bytes: found.as_ref().map_or(0, fs::Metadata::len),
        written: found.and_then(|found| found.modified()).ok(),
    }
}

fn open(path: &Path) -> Done<FileConnection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(FileConnection::new(connection))
}

/// The URI of the file: immutable if there is no write-ahead log, otherwise read-only.
fn address(path: &Path) -> String {
    let mut address = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            address.push(char::from(*byte));
        } else {
            address.push('%');
            address.push_str(&HEXLOWER.encode(&[*byte]));
        }
    }
    let access = if state(path).has_log {
        "mode=ro"
    } else {
        "immutable=1"
    };
    format!("{address}?{access}")
}
