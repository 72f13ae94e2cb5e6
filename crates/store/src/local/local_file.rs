//! The file with the grace shares that a gateway holds, the units that it owes, the states of databases, and a copy of
//! the keys, with which it can start while the database is unreachable.
//!
//! Every change is durable when the call returns. Each row has a checksum. A damaged file is rejected, because an
//! unknown number of units was spent, and an older database would not be recognized.
//!
//! Shares are continued only from the original file. A copy of the data directory or a restored backup may lack units that were
//! spent later, and the holder of the shares may still be running on another machine. So the file contains its
//! identity: the boot id of the machine, and the device, inode and creation time of the file. A copy does not have the
//! same identity. A file may also be overwritten in place. So after each commit, the modification time is set back by
//! an hour. If it no longer matches the change time, which cannot be set, the file was overwritten. For this reason,
//! commits write to the file itself and not to a write-ahead log.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::{Serialize, de::DeserializeOwned};

use super::sqlite_errors::is_unusable;
use crate::{
    HeldGraceShare, OwedUnits,
    durable_file::{
        HALF, if_found, new_private_file, remove_database, sync_directory, with_suffix,
    },
};

/// Identifies the file, so that it is not mistaken for a store.
const APPLICATION_ID: i32 = 0x5347_4c4f;
/// The format of the file.
const FORMAT: i32 = 1;
/// Lock timeout. Commands hold the lock only briefly.
const PATIENCE: Duration = Duration::from_secs(5);
/// How far the modification time is set back, and the tolerance when it is compared, in seconds.
const SET_BACK: i64 = 3_600;
const TOLERANCE: i64 = 5;
/// File with the boot id of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Two tables with the same columns, so that the small one can be checked without the large one.
const TABLES: &str = "
CREATE TABLE promises ( -- kinds: file, share, owed, timeline, data set, copy
    kind  TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL, -- JSON
    sum   INTEGER NOT NULL, -- CRC-32 of the kind, the key and the value
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE applications ( -- copies of the applications with the digests of their keys; the kind is the number of a copy
    kind  TEXT    NOT NULL,
    key   TEXT    NOT NULL,
    value TEXT    NOT NULL,
    sum   INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;";

/// The open file.
#[derive(Debug)]
pub struct LocalFile {
    // Dropped first, because closing any handle to the file releases the locks that SQLite holds on it.
    connection: Mutex<Connection>,
    file: File,
    path: PathBuf,
    /// Whether the file is the original. Only then are its shares continued.
    is_original: bool,
}

/// Grace records for the next process that uses a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwedRecords {
    /// Shares that the next process of the holder may continue.
    pub shares: Vec<HeldGraceShare>,
    /// Units to charge: the newest entry for each process, application and day.
    pub owed: Vec<OwedUnits>,
}

impl LocalFile {
    /// Name of the file in the data directory.
    pub const NAME: &str = "local.db";

    /// Opens the file in this directory, and creates it if it is missing, accessible to its owner only. Shares are
    /// removed unless the file is the original. An error of kind `InvalidData` states the remedy.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = directory.join(Self::NAME);
        if if_found(fs::symlink_metadata(&path))?.is_none() {
            create(&path)?;
        }
        let file = File::options().read(true).write(true).open(&path)?;
        // Checked before SQLite opens the file, because opening it rolls back a change that a crash interrupted.
        let is_untouched = is_untouched(&file)?;
        let mut local = Self::checked(path, file)?;
        let own = identity(&local.file);
        let found: Vec<LocalRow<String>> = local.read("promises", "file")?;
        let is_original = own.is_some() && found.first().map(|row| &row.value) == own.as_ref();
        let kept = if is_untouched && is_original {
            mark(&local.file)
        } else {
            local.become_original(own.as_deref())
        };
        local.is_original = kept.is_ok();
        if let Err(error) = kept {
            tracing::error!(%error, "cannot write local.db; grace shares of the previous process are not used");
        }
        Ok(local)
    }

    /// Opens the file in this directory for a command, while a server may be using it; `None` if it does not exist.
    pub fn open_existing(directory: &Path) -> io::Result<Option<Self>> {
        let path = directory.join(Self::NAME);
        let found = if_found(File::open(&path))?;
        found.map(|file| Self::checked(path, file)).transpose()
    }

    /// Path of the file, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Shares and owed units of earlier processes.
    pub fn grace(&self) -> io::Result<OwedRecords> {
        let mut records = OwedRecords::default();
        self.visit("promises", "share", |row| records.shares.push(row.value))?;
        self.visit("promises", "owed", |row| records.owed.push(row.value))?;
        if !self.is_original {
            records.shares.clear();
        }
        Ok(records)
    }

    /// Replaces all shares and owed units.
    pub fn replace_grace(&self, records: &OwedRecords) -> io::Result<()> {
        self.change(|change| {
            change.clear("share")?;
            change.clear("owed")?;
            for held in &records.shares {
                change.put_share(held)?;
            }
            records.owed.iter().try_for_each(|one| change.put_owed(one))
        })
    }

    /// Adds owed units. They may be spent once this returns.
    pub fn add_owed(&self, owed: &[OwedUnits]) -> io::Result<()> {
        self.change(|change| owed.iter().try_for_each(|one| change.put_owed(one)))
    }

    /// Opens the file, and checks the table `promises`, which is small.
    fn checked(path: PathBuf, file: File) -> io::Result<Self> {
        let connection = Connection::open(&path).map_err(io::Error::other)?;
        let set_up = set_up(&connection);
        let local = Self {
            connection: Mutex::new(connection),
            file,
            path,
            is_original: false,
        };
        match set_up.map_err(|error| local.failed(error))? {
            FORMAT => local.check("promises").map(|()| local),
            other => Err(local.damaged(&format!(
                "it has format {other}, and this program supports format {FORMAT}"
            ))),
        }
    }

    /// Makes this file the original.
    fn become_original(&self, own: Option<&str>) -> io::Result<()> {
        self.change(|change| {
            change.clear("share")?;
            change.clear("file")?;
            own.map_or(Ok(()), |own| change.put("promises", "file", "", &own))
        })
    }

    /// The rows of a kind, in the order of their keys.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        table: &str,
        kind: &str,
    ) -> io::Result<Vec<LocalRow<T>>> {
        let mut rows = Vec::new();
        self.visit(table, kind, |row| rows.push(row))?;
        Ok(rows)
    }

    /// Passes the rows of a kind to `visit`. Checks all rows, because a damaged row may be of this kind.
    pub(crate) fn visit<T: DeserializeOwned>(
        &self,
        table: &str,
        kind: &str,
        mut visit: impl FnMut(LocalRow<T>),
    ) -> io::Result<()> {
        let select = format!("SELECT kind, key, value, sum FROM {table} ORDER BY kind, key");
        let connection = self.connection.lock();
        let failed = |error| self.failed(error);
        let mut select = connection.prepare_cached(&select).map_err(failed)?;
        let mut rows = select.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let (found, key, value, sum): (String, String, String, u32) = row
                .try_into()
                .map_err(|_| self.damaged("a row has an unexpected form"))?;
            let is_intact = sum_of(&found, &key, &value) == sum;
            if is_intact && found != kind {
                continue;
            }
            let read = serde_json::from_str(&value).ok().filter(|_| is_intact);
            let value =
                read.ok_or_else(|| self.damaged(&format!("checksum mismatch in {found} {key}")))?;
            visit(LocalRow { key, value });
        }
        Ok(())
    }

    /// Checks the structure of a table.
    pub(crate) fn check(&self, table: &str) -> io::Result<()> {
        let connection = self.connection.lock();
        let verdict = quick_check(&connection, table).map_err(|error| self.failed(error))?;
        if verdict == "ok" {
            Ok(())
        } else {
            Err(self.damaged(&verdict))
        }
    }

    /// Makes a change durable.
    pub(crate) fn change(
        &self,
        work: impl FnOnce(&LocalChange<'_>) -> rusqlite::Result<()>,
    ) -> io::Result<()> {
        let mut connection: MutexGuard<'_, Connection> = self.connection.lock();
        commit(&mut connection, work).map_err(|error| self.failed(error))?;
        // The connection is still locked, so that no other change intervenes.
        mark(&self.file)
    }

    fn failed(&self, error: rusqlite::Error) -> io::Error {
        if is_unusable(&error) {
            self.damaged(&error.to_string())
        } else {
            io::Error::other(error)
        }
    }

    /// The error for a damaged file, with the remedy.
    pub(crate) fn damaged(&self, reason: &str) -> io::Error {
        let path = self.path.display();
        let text = format!(
            "{path} is damaged: {reason}. It contains units that were delivered on grace and are not charged yet, this gateway's \
             share of the grace, the states of databases, and the copy of the keys. To start without them, move the file away. \
             These units are then never charged, and an older database is not recognized until the current one has been used"
        );
        io::Error::new(ErrorKind::InvalidData, text)
    }
}

/// A row without its kind.
#[derive(Debug)]
pub struct LocalRow<T> {
    pub key: String,
    pub value: T,
}

/// An uncommitted change to rows.
pub struct LocalChange<'c>(Transaction<'c>);

impl LocalChange<'_> {
    /// Writes a row, replacing an existing row with the same key.
    pub fn put(
        &self,
        table: &str,
        kind: &str,
        key: &str,
        value: &impl Serialize,
    ) -> rusqlite::Result<()> {
        let value = serde_json::to_string(value)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
        let sum = sum_of(kind, key, &value);
        self.0
            .prepare_cached(&format!(
                "INSERT OR REPLACE INTO {table} VALUES (?1, ?2, ?3, ?4)"
            ))?
            .execute(params![kind, key, value, sum])
            .map(drop)
    }

    /// Removes all rows of a kind from the table `promises`.
    pub fn clear(&self, kind: &str) -> rusqlite::Result<()> {
        self.0
            .prepare_cached("DELETE FROM promises WHERE kind = ?1")?
            .execute([kind])
            .map(drop)
    }

    /// Removes up to `most` applications of all copies except this one. Returns the number of removed applications.
    pub fn remove_other_copies(&self, kind: &str, most: i64) -> rusqlite::Result<usize> {
        self.0.execute(
            "DELETE FROM applications WHERE (kind, key) IN
                 (SELECT kind, key FROM applications WHERE kind <> ?1 LIMIT ?2)",
            params![kind, most],
        )
    }

    fn put_share(&self, held: &HeldGraceShare) -> rusqlite::Result<()> {
        self.put("promises", "share", &held.day.to_string(), held)
    }

    fn put_owed(&self, units: &OwedUnits) -> rusqlite::Result<()> {
        let OwedUnits {
            node,
            application,
            day,
            ..
        } = units;
        let key = format!("{node:016x} {application} {day}");
        self.put("promises", "owed", &key, units)
    }
}

/// Creates the file. It gets its final name when it is complete, so an empty file is a damaged one.
fn create(path: &Path) -> io::Result<()> {
    let half = with_suffix(path, HALF);
    remove_database(&half)?;
    let file = new_private_file(&half)?;
    create_tables(&half).map_err(io::Error::other)?;
    file.sync_all()?;
    fs::rename(&half, path)?;
    sync_directory(path)
}

fn create_tables(path: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

/// Sets up a connection. Returns the format of the file.
fn set_up(connection: &Connection) -> rusqlite::Result<i32> {
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update_and_check(None, "journal_mode", "TRUNCATE", |_| Ok(()))?;
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn quick_check(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    connection.query_row(&format!("PRAGMA quick_check({table})"), [], |row| {
        row.get(0)
    })
}

fn commit(
    connection: &mut Connection,
    work: impl FnOnce(&LocalChange<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let change = LocalChange(all);
    work(&change)?;
    change.0.commit()
}

fn sum_of(kind: &str, key: &str, value: &str) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for part in [kind, "\0", key, "\0", value] {
        sum.update(part.as_bytes());
    }
    sum.finalize()
}

/// Sets the modification time back.
fn mark(file: &File) -> io::Result<()> {
    let changed_at = u64::try_from(file.metadata()?.ctime() - SET_BACK).unwrap_or(0);
    file.set_modified(UNIX_EPOCH + Duration::from_secs(changed_at))
}

/// Whether this program made the last change to the file.
fn is_untouched(file: &File) -> io::Result<bool> {
    let times = file.metadata()?;
    Ok((times.ctime() - times.mtime() - SET_BACK).abs() <= TOLERANCE)
}

/// The identity of the file. A copy of the file has a different identity. `None` if the system does not provide
/// every part of the identity.
fn identity(file: &File) -> Option<String> {
    let boot = fs::read_to_string(BOOT).ok()?;
    let found = file.metadata().ok()?;
    let born = found
        .created()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?
        .as_nanos();
    Some(format!(
        "{} {} {} {born}",
        boot.trim(),
        found.dev(),
        found.ino()
    ))
}
