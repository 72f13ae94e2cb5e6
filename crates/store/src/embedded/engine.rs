//! The engine: each call of a trait is work for the thread that writes or the one that reads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::fault::OpenFile;
use super::tables::done;
use super::worker::{self, StoreWorker};
use super::{file, ledger};
use crate::{
    DocumentSharing, LedgerExchange, LedgerExchangeReply, NodeList, NodeRegistry, NodeStatus,
    StoreFuture, StoreHealth, StoreResult,
};

/// The store in one file. Dropping it completes queued work, then stops its threads; the drop waits for that.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the writer closes the file last, which removes the write-ahead log.
    pub(crate) reader: StoreWorker,
    pub(crate) writer: StoreWorker,
    commits: Arc<AtomicU64>,
    /// This process, once it reported itself.
    node: Mutex<Option<NodeStatus>>,
    file: OpenFile,
}

impl Embedded {
    /// The file's name in its directory.
    pub const FILE_NAME: &str = file::FILE_NAME;

    /// Opens the store in this directory; creates both, accessible to their owner only, if they are missing.
    ///
    /// Checks the file first (the time grows with its size; of a large file only the tables of keys and grants are checked), and
    /// migrates an older format after a backup. Blocks until that is done. A rejected file is left as it
    /// was.
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

    /// Number of committed transactions since it was opened; each contains one command or many.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(crate) fn exchange_reports(
        &self,
        exchange: LedgerExchange,
    ) -> StoreFuture<'_, LedgerExchangeReply> {
        self.writer.run("exchange ledger reports", move |file| {
            done(ledger::exchange(file, &exchange))
        })
    }
}

/// One process uses a file, so its status is in memory.
impl NodeRegistry for Embedded {
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()> {
        *self.node.lock() = Some(status);
        Box::pin(async { Ok(()) })
    }

    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()> {
        self.node.lock().take_if(|status| status.node == node);
        Box::pin(async { Ok(()) })
    }

    fn nodes(&self) -> StoreFuture<'_, NodeList> {
        let nodes = self.node.lock().iter().cloned().collect();
        Box::pin(async { Ok(NodeList { nodes, clock: None }) })
    }
}

impl DocumentSharing for Embedded {}

impl StoreHealth for Embedded {
    fn damage(&self) -> Option<String> {
        self.file.damage()
    }

    fn missing_or_replaced(&self) -> Option<String> {
        self.file.missing_or_replaced()
    }
}
