//! The engine on one file: SQLite beside the gateway, with durable commits and nothing else to run.
//!
//! One thread writes and one reads, each with a connection of its own, so that no worker of the runtime ever waits
//! for a disk and no reader waits for a writer. An operator may look into the file with `sqlite3` while we run, and a
//! second process may write to it. Not for: several machines; the file belongs on a local disk.

mod beside;
mod changes;
mod deferred_check;
mod fault;
mod file;
mod ledger;
pub mod maintenance;
mod records;
mod schema;
mod sound;
#[cfg(test)]
mod tests;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    ApplicationPage, AuditQuery, AuditRecord, KeyUse, LeaseReply, LeaseRequest, LeaseReturn, OwedUnits,
    Store, StoreChange, StoreError, StoreFuture, StoredApplication,
};
use crate::clock::{Day, Wall};
use crate::keys::ApplicationId;
use deferred_check::DeferredCheck;
use fault::OpenFile;
use worker::StoreWorker;

/// The store in one file. Dropping it finishes what is queued, then stops its threads; the drop waits for that.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the check ends first; the writer closes the file last, and so leaves it without a write-ahead log.
    check: Arc<DeferredCheck>,
    reader: StoreWorker,
    writer: StoreWorker,
    commits: Arc<AtomicU64>,
    file: OpenFile,
}

impl Embedded {
    /// The file's name in its directory.
    pub const FILE_NAME: &str = file::FILE_NAME;

    /// Opens the store in this directory; makes both, for their owner alone, if they are missing.
    ///
    /// Checks the file first (the time grows with its size; of a large one a part is checked afterwards, and what is
    /// found then is said in the log) and upgrades one of an older format, after a backup. Blocks until that is done:
    /// call it before the runtime has work. A file that is refused is left as it was.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let opened = file::open(directory)?;
        let file = OpenFile::new(&opened.path);
        let commits = Arc::new(AtomicU64::new(0));
        let (counted, written) = (Arc::clone(&commits), file.clone());
        Ok(Self {
            check: Arc::new(DeferredCheck::new(opened.is_large.then(|| file.clone()))),
            reader: StoreWorker::start("store-reader", &file, opened.reader, worker::one_by_one)?,
            writer: StoreWorker::start("store-writer", &file, opened.writer, move |connection, queue| {
                worker::in_groups(connection, &written, queue, &counted);
            })?,
            commits,
            file,
        })
    }

    /// How many transactions were committed since it was opened; each stands for one command or for many.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

impl Store for Embedded {
    fn page(&self, after: Option<ApplicationId>, most: usize, day: Day) -> StoreFuture<'_, ApplicationPage> {
        let work = move |file: &rusqlite::Connection| records::page(file, after, most, day);
        Box::pin(self.reader.ask("read a page of applications", work))
    }

    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>> {
        let work = move |file: &rusqlite::Connection| records::application(file, id, day);
        Box::pin(self.reader.ask("read an application", work))
    }

    fn newest_day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(self.reader.ask("read the newest day", ledger::newest_day))
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        let work = move |file: &rusqlite::Connection| changes::make(file, &change);
        Box::pin(self.writer.ask("make a change", work))
    }

    fn used(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        let check = Arc::clone(&self.check);
        let work = move |file: &rusqlite::Connection| {
            // Whoever says this has started some time ago; until then the check would only slow the start down.
            check.begin();
            changes::used(file, &keys)
        };
        Box::pin(self.writer.ask("remember when keys were used", work))
    }

    fn audit(&self, ask: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        let work = move |file: &rusqlite::Connection| records::audit(file, ask);
        Box::pin(self.reader.ask("read the audit trail", work))
    }

    fn damage(&self) -> Option<String> {
        self.file.damage()
    }

    fn misplaced(&self) -> Option<String> {
        self.file.misplaced()
    }

    fn lease(&self, ask: LeaseRequest) -> StoreFuture<'_, LeaseReply> {
        let work = move |file: &rusqlite::Connection| ledger::lease(file, &ask);
        Box::pin(self.writer.ask("grant a lease", work))
    }

    fn charge(&self, owed: Vec<OwedUnits>, at: Wall) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| ledger::charge(file, &owed, at);
        Box::pin(self.writer.ask("charge units", work))
    }

    fn give_back(&self, units: Vec<LeaseReturn>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| ledger::give_back(file, &units);
        Box::pin(self.writer.ask("take units back", work))
    }
}
