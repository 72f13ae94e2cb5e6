//! The disk mirror: a file with the last valid documents, so that a gateway can serve after a restart while the backend
//! is down.
//!
//! All of its content can be fetched again. So a power failure may lose the last commits, and a damaged file is
//! replaced with an empty one. Checksums detect damage that leaves the structure of the file intact. All calls block on
//! the disk.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::sqlite_errors::is_unusable;
use crate::durable_file::{if_found, new_private_file, remove_database};

/// Maximum number of records. All of them are read at startup.
const MAX_RECORDS: i64 = 4_096;
/// Identifies the file, so that it is not mistaken for a store.
const APPLICATION_ID: i32 = 0x5347_444f;
/// The format of the file. A file in another format is replaced.
const FORMAT: i32 = 1;

/// Contents have a separate table, because confirming a document changes only its label.
const TABLES: &str = "
CREATE TABLE documents (
    name  TEXT    NOT NULL PRIMARY KEY,
    label TEXT    NOT NULL,
    bytes INTEGER NOT NULL,
    turn  INTEGER NOT NULL, -- grows with every write; the record with the lowest turn is removed first
    sum   BLOB    NOT NULL  -- SHA-256 of the name, the label and the digest
) STRICT;
CREATE INDEX documents_by_turn ON documents (turn);
CREATE TABLE contents (
    name    TEXT NOT NULL PRIMARY KEY,
    digest  BLOB NOT NULL, -- SHA-256 of the content
    content BLOB NOT NULL
) STRICT;";

/// Number and total size of all records.
const TOTAL: &str = "SELECT count(*), coalesce(sum(bytes), 0) FROM documents";

/// Keeps the newest records that fit.
const EVICT: &str = "
DELETE FROM documents WHERE name IN (
    SELECT name FROM (
        SELECT name, sum(bytes) OVER newest AS bytes, row_number() OVER newest AS number
        FROM documents WINDOW newest AS (ORDER BY turn DESC)
    ) WHERE bytes > ?1 OR number > ?2
)";

/// A record: named bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorRecord {
    /// Name of the record, which may be any text.
    pub name: String,
    /// A short text about the content, set by the owner of the record.
    pub label: String,
    /// The bytes.
    pub content: Bytes,
}

/// Why records could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The record is larger than a quarter of the capacity. An existing record with this name is unchanged.
    #[error("{name} needs {bytes} bytes of the disk mirror, and the limit is {most}")]
    TooLarge {
        /// The record's name.
        name: String,
        /// Size of the record.
        bytes: u64,
        /// Maximum size.
        most: u64,
    },
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: FileFlaw,
    },
    /// The file was damaged and has been removed.
    #[error("{} was damaged and has been removed: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        source: FileFlaw,
    },
}

/// The disk mirror. Operations are serialized.
#[derive(Debug)]
pub struct Mirror {
    path: PathBuf,
    max_bytes: u64,
    /// `None` until the file is first used, and after damage was found.
    connection: Mutex<Option<Connection>>,
}

impl Mirror {
    /// Name of the file in the data directory.
    pub const NAME: &str = "documents.db";

    /// The mirror in this directory. The first call creates the file if it is missing, accessible to its owner only.
    pub fn new(directory: &Path, max_bytes: u64) -> Self {
        Self {
            path: directory.join(Self::NAME),
            max_bytes,
            connection: Mutex::default(),
        }
    }

    /// All records, newest first. A record with a wrong checksum means that the file is damaged.
    pub fn all(&self) -> Result<Vec<MirrorRecord>, MirrorError> {
        self.run(|connection| read_all(connection))
    }

    /// Writes records, replacing existing records with the same names, and deletes the records named in `removed`, in
    /// one transaction. If the mirror is full, the oldest records are removed. Returns the errors.
    pub fn write(&self, records: &[MirrorRecord], removed: &[String]) -> Vec<MirrorError> {
        // A quarter of the capacity, so that no record evicts all others.
        let most = self.max_bytes / 4;
        let (fitting, large): (Vec<_>, Vec<_>) =
            records.iter().partition(|record| size(record) <= most);
        let mut failed: Vec<MirrorError> = large
            .into_iter()
            .map(|record| MirrorError::TooLarge {
                name: record.name.clone(),
                bytes: size(record),
                most,
            })
            .collect();
        let written = self.run(|connection| {
            let change = connection.transaction()?;
            removed.iter().try_for_each(|name| remove(&change, name))?;
            fitting.iter().try_for_each(|record| put(&change, record))?;
            evict(&change, self.max_bytes)?;
            Ok(change.commit()?)
        });
        failed.extend(written.err());
        failed
    }

    /// Size of all records in bytes.
    pub fn bytes(&self) -> Result<u64, MirrorError> {
        self.run(|connection| {
            let bytes: i64 = connection.query_row(TOTAL, [], |row| row.get(1))?;
            Ok(bytes.cast_unsigned())
        })
    }

    /// Runs work on the file. A damaged file is removed, so that the next call creates an empty one.
    fn run<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, FileFlaw>,
    ) -> Result<T, MirrorError> {
        let mut connection = self.connection.lock();
        let opened = match &mut *connection {
            Some(connection) => Ok(connection),
            none => open(&self.path, self.max_bytes).map(|opened| none.insert(opened)),
        };
        let source = match opened.and_then(work) {
            Ok(done) => return Ok(done),
            Err(flaw) => flaw,
        };
        let path = self.path.clone();
        if !source.is_damage() {
            return Err(MirrorError::Disk { path, source });
        }
        // The connection is closed before the files are removed, because closing removes the log by its name.
        *connection = None;
        match remove_database(&self.path) {
            Ok(()) => Err(MirrorError::Damaged { path, source }),
            Err(error) => Err(MirrorError::Disk {
                path,
                source: error.into(),
            }),
        }
    }
}

/// A defect of the file.
#[derive(Debug, thiserror::Error)]
pub enum FileFlaw {
    /// An SQLite error.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// A file system error.
    #[error(transparent)]
    Disk(#[from] std::io::Error),
    /// The content differs from what was written.
    #[error("{0}")]
    Content(String),
}

impl FileFlaw {
    fn is_damage(&self) -> bool {
        match self {
            // A value of the wrong type is also damage, but is not reported as an SQLite error.
            Self::Sql(error) => error.sqlite_error().is_none() || is_unusable(error),
            Self::Content(_) => true,
            Self::Disk(_) => false,
        }
    }
}

fn open(path: &Path, max_bytes: u64) -> Result<Connection, FileFlaw> {
    if if_found(std::fs::metadata(path))?.is_none() {
        new_private_file(path)?;
    }
    let mut connection = Connection::open(path)?;
    connection.set_prepared_statement_cache_capacity(16);
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A power failure may lose commits, but does not damage the file.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", 0)?;
    let format: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (format, tables) {
        (FORMAT, _) => {}
        (0, 0) => {
            let create = connection.transaction()?;
            create.execute_batch(TABLES)?;
            create.pragma_update(None, "application_id", APPLICATION_ID)?;
            create.pragma_update(None, "user_version", FORMAT)?;
            create.commit()?;
        }
        _ => return Err(FileFlaw::Content(format!("unknown format {format}"))),
    }
    // The capacity may have been reduced since the last start. Freed space is returned to the file system.
    let change = connection.transaction()?;
    let evicted = evict(&change, max_bytes)?;
    change.commit()?;
    if evicted > 0 {
        connection.execute_batch("VACUUM")?;
    }
    Ok(connection)
}

fn read_all(connection: &Connection) -> Result<Vec<MirrorRecord>, FileFlaw> {
    let mut select = connection.prepare(
        "SELECT name, label, sum, digest, content FROM documents LEFT JOIN contents USING (name) ORDER BY turn DESC",
    )?;
    let mut rows = select.query([])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        let label: String = row.get(1)?;
        let sum: [u8; 32] = row.get(2)?;
        let digest: [u8; 32] = row.get(3)?;
        let content: Vec<u8> = row.get(4)?;
        if digest_of(&content) != digest || sum_of(&name, &label, &digest) != sum {
            return Err(FileFlaw::Content(format!("checksum mismatch in {name:?}")));
        }
        records.push(MirrorRecord {
            name,
            label,
            content: content.into(),
        });
    }
    Ok(records)
}

/// Writes a record. Its content is written only if it changed.
fn put(change: &Transaction<'_>, record: &MirrorRecord) -> Result<(), FileFlaw> {
    let MirrorRecord {
        name,
        label,
        content,
    } = record;
    let digest = digest_of(content);
    let found: Option<Vec<u8>> = change
        .prepare_cached("SELECT digest FROM contents WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()?;
    if found.as_deref() != Some(&digest) {
        change
            .prepare_cached("INSERT OR REPLACE INTO contents VALUES (?1, ?2, ?3)")?
            .execute(params![name, digest, &content[..]])?;
    }
    let sum = sum_of(name, label, &digest);
    change
        .prepare_cached(
            "INSERT OR REPLACE INTO documents
             VALUES (?1, ?2, ?3, (SELECT coalesce(max(turn), 0) + 1 FROM documents), ?4)",
        )?
        .execute(params![name, label, size(record).cast_signed(), sum])?;
    Ok(())
}

fn remove(change: &Transaction<'_>, name: &str) -> Result<(), FileFlaw> {
    for table in ["documents", "contents"] {
        let delete = format!("DELETE FROM {table} WHERE name = ?1");
        change.prepare_cached(&delete)?.execute([name])?;
    }
    Ok(())
}

/// Removes the oldest records that exceed the capacity, and returns their number.
fn evict(change: &Transaction<'_>, max_bytes: u64) -> Result<usize, FileFlaw> {
    let most_bytes = max_bytes.cast_signed();
    let (count, bytes): (i64, i64) =
        change.query_row(TOTAL, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if count <= MAX_RECORDS && bytes <= most_bytes {
        return Ok(0);
    }
    let evicted = change.execute(EVICT, [most_bytes, MAX_RECORDS])?;
    change.execute(
        "DELETE FROM contents WHERE name NOT IN (SELECT name FROM documents)",
        [],
    )?;
    Ok(evicted)
}

fn size(record: &MirrorRecord) -> u64 {
    (record.name.len() + record.label.len() + record.content.len()) as u64
}

fn digest_of(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}

fn sum_of(name: &str, label: &str, digest: &[u8]) -> [u8; 32] {
    let mut sum = Sha256::new();
    for part in [name.as_bytes(), &[0], label.as_bytes(), &[0], digest] {
        sum.update(part);
    }
    sum.finalize().into()
}
