//! The engine: each call of a trait is work for the thread that writes or the one that reads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::deferred_check::DeferredCheck;
use super::fault::OpenFile;
use super::tables::done;
use super::worker::{self, StoreWorker};
use super::{file, ledger, records};
use crate::sql::{audit, changes, grace_shares, leaks, limits_until, outdated};
use crate::{
    ApplicationPage, AuditQuery, AuditRecord, ChangeKind, DocumentSharing, HeldGraceShare,
    KeyStore, KeyUse, Ledger, LedgerExchange, LedgerExchangeReply, NodeList, NodeRegistry,
    NodeStatus, StoreChange, StoreFuture, StoreHealth, StoreResult, StoredApplication,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest};
use scoregate_base::limits::{GraceClaim, GraceShare};

/// The store in one file. Dropping it completes queued work, then stops its threads; the drop waits for that.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the check ends first; the writer closes the file last, which removes the write-ahead
    // log.
    check: Arc<DeferredCheck>,
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
    /// Checks the file first (the time grows with its size; a part of a large file is checked later, and findings are
    /// logged), and migrates an older format after a backup. Blocks until that is done. A rejected file is left as it
    /// was.
    pub fn open(directory: &Path) -> StoreResult<Self> {
        let opened = file::open(directory)?;
        let file = OpenFile::new(&opened.path);
        let commits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&commits);
        let written = file.clone();
        Ok(Self {
            check: Arc::new(DeferredCheck::new(opened.is_large.then(|| file.clone()))),
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
}

impl KeyStore for Embedded {
    fn page(
        &self,
        after: Option<ApplicationId>,
        most: usize,
        day: Day,
    ) -> StoreFuture<'_, ApplicationPage> {
        self.reader.run("read a page of applications", move |file| {
            records::page(file, after, most, day)
        })
    }

    fn application(
        &self,
        id: ApplicationId,
        day: Day,
    ) -> StoreFuture<'_, Option<StoredApplication>> {
        self.reader.run("read an application", move |file| {
            records::application(file, id, day)
        })
    }

    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage> {
        self.reader.run("read applications", move |file| {
            records::applications(file, &ids, day)
        })
    }

    fn find_keys(&self, digests: Vec<Digest>) -> StoreFuture<'_, Vec<(Digest, ApplicationId)>> {
        self.reader.run("find keys", move |file| {
            done(leaks::find_keys(file, &digests))
        })
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        let closes = matches!(change.what, ChangeKind::Close);
        self.writer
            .run_erasing(closes, "apply a change", move |file| {
                done(changes::make(file, &change))
            })
    }

    fn due_limits(&self, now: Wall) -> StoreFuture<'_, Vec<ApplicationId>> {
        self.reader.run("read limits that end", move |file| {
            done(limits_until::due(file, now))
        })
    }

    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        let check = Arc::clone(&self.check);
        self.writer.run("record key uses", move |file| {
            // The server has run for a while; an earlier check would only slow down the start.
            check.begin();
            records::used(file, &keys)
        })
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        self.reader.run("read the audit trail", move |file| {
            done(audit::records(file, query))
        })
    }
}

impl Ledger for Embedded {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        self.reader.run("read the current day", ledger::day)
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        self.writer.run("exchange ledger reports", move |file| {
            ledger::exchange(file, &exchange)
        })
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        self.writer.run("register for grace", move |file| {
            done(grace_shares::claim(file, &claim))
        })
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        self.writer.run("return grace", move |file| {
            done(grace_shares::give_back(file, &share))
        })
    }

    /// Records of the ledger are deleted with other writes. Personal data is among the rest, such as expired links.
    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        self.writer
            .run_erasing(true, "merge usage", |file| done(outdated::delete(file)))
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
