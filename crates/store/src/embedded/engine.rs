//! The engine: one thread that writes and one that reads.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;

use super::{
    fault::OpenFile,
    file,
    worker::{self, StoreWorker},
};
use crate::{NodeStatus, StoreResult};

/// The reader and the writer thread. Dropping the engine completes the queued work and stops the threads; the drop
/// waits for that.
#[derive(Debug)]
pub struct FileEngine {
    // Dropped in this order: the writer closes the file last, which removes the write-ahead log.
    reader: StoreWorker,
    writer: StoreWorker,
    commits: Arc<AtomicU64>,
    /// The status of this process, once it has reported. Only one process uses a file, so the status is kept in memory.
    pub node: Mutex<Option<NodeStatus>>,
    file: OpenFile,
}

impl FileEngine {
    pub const FILE_NAME: &str = file::FILE_NAME;

    /// Opens the store in this directory.
    pub fn open(directory: &Path) -> StoreResult<Self> {
        let opened = file::open(directory)?;
        let file = OpenFile::new(&opened.path);
        let commits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&commits);
        let written = file.clone();
        Ok(Self {
            reader: StoreWorker::start("store-reader", &file, opened.reader, worker::one_by_one)?,
            writer: StoreWorker::start(
                "store-writer",
                &file,
                opened.writer,
                move |connection, queue| {
                    worker::in_groups(connection, &written, queue, &counted);
                },
            )?,
            commits,
            node: Mutex::default(),
            file,
        })
    }

    /// The reader thread for work that only reads, otherwise the writer thread.
    pub fn worker(&self, only_reads: bool) -> &StoreWorker {
        if only_reads {
            &self.reader
        } else {
            &self.writer
        }
    }

    /// Number of committed transactions since the file was opened. Each contains one or more commands.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub fn damage(&self) -> Option<String> {
        self.file.damage()
    }

    pub fn missing_or_replaced(&self) -> Option<String> {
        self.file.missing_or_replaced()
    }
}
