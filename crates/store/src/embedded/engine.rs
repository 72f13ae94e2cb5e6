//! The engine: each call of a trait is work for the thread that writes or the one that reads.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::deferred_check::DeferredCheck;
use super::fault::OpenFile;
use super::worker::{self, StoreWorker};
use super::{
    changes, closed_applications, feed, file, grace_shares, ledger, mail_queue, owner_tables, records,
    request_tables, status_tables, usage_tables,
};
use crate::daily_totals::{REQUESTS, USAGE};
use crate::{
    ApplicationPage, AuditQuery, AuditRecord, ChangeFeed, ChangeKind, ChangedApplications, ClaimedMail,
    DocumentSharing, FeedPosition, HeldGraceShare, KeyStore, KeyUse, Ledger, LedgerExchange,
    LedgerExchangeReply, MailAttempt, MailBacklog, MailClaim, MailQueue, NewMail, NewNotice, NewSignInLink,
    NewStatusMessage, NodeList, NodeRegistry, NodeStatus, OwnerChange, OwnerChangeKind, OwnerQuery,
    OwnerSession, OwnerStore, RequestList, RequestQuery, RequestStore, RequestTotal, SignIn, SignInOutcome,
    StatusHistory, StatusMessage, StatusMinute, StatusStore, StoreChange, StoreError, StoreFuture,
    StoreHealth, StoredApplication, StoredOwner, UsableLink, UsageList, UsageQuery, UsageStore, UsageTotal,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest, OwnerId};
use scoregate_base::limits::{GraceClaim, GraceShare};
/// The store in one file. Dropping it completes queued work, then stops its threads; the drop waits for that.
#[derive(Debug)]
pub struct Embedded {
    // Dropped in this order: the check ends first; the writer closes the file last, which removes the write-ahead
    // log.
    check: Arc<DeferredCheck>,
    reader: StoreWorker,
    pub(super) writer: StoreWorker,
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
    fn page(&self, after: Option<ApplicationId>, most: usize, day: Day) -> StoreFuture<'_, ApplicationPage> {
        let work = move |file: &rusqlite::Connection| records::page(file, after, most, day);
        Box::pin(self.reader.run("read a page of applications", work))
    }

    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>> {
        let work = move |file: &rusqlite::Connection| records::application(file, id, day);
        Box::pin(self.reader.run("read an application", work))
    }

    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage> {
        let work = move |file: &rusqlite::Connection| records::applications(file, &ids, day);
        Box::pin(self.reader.run("read applications", work))
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        let closes = matches!(change.what, ChangeKind::Close);
        let work = move |file: &rusqlite::Connection| changes::make(file, &change);
        Box::pin(self.writer.run_erasing(closes, "apply a change", work))
    }

    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        let check = Arc::clone(&self.check);
        let work = move |file: &rusqlite::Connection| {
            // The server has run for a while; an earlier check would only slow down the start.
            check.begin();
            changes::used(file, &keys)
        };
        Box::pin(self.writer.run("record key uses", work))
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        let work = move |file: &rusqlite::Connection| records::audit(file, query);
        Box::pin(self.reader.run("read the audit trail", work))
    }
}

impl Ledger for Embedded {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(self.reader.run("read the current day", ledger::day))
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        let work = move |file: &rusqlite::Connection| ledger::exchange(file, &exchange);
        Box::pin(self.writer.run("exchange ledger reports", work))
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        let work = move |file: &rusqlite::Connection| grace_shares::claim(file, &claim);
        Box::pin(self.writer.run("register for grace", work))
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| grace_shares::give_back(file, &share);
        Box::pin(self.writer.run("return grace", work))
    }

    /// None: there is only one node.
    fn recalled(&self, _: u64) -> StoreFuture<'_, Vec<ApplicationId>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Records of the ledger are deleted with other writes. Personal data is among the rest, such as expired links.
    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        let work = |file: &rusqlite::Connection| {
            Ok(usage_tables::merge(file, &USAGE)?
                + usage_tables::merge(file, &REQUESTS)?
                + status_tables::delete_outdated(file)?
                + owner_tables::delete_expired(file)?
                + closed_applications::delete_outdated(file)?)
        };
        Box::pin(self.writer.run_erasing(true, "merge usage", work))
    }
}

impl UsageStore for Embedded {
    fn record_usage(&self, node: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| usage_tables::record(file, node, &totals);
        Box::pin(self.writer.run("record usage", work))
    }

    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, UsageList> {
        let work = move |file: &rusqlite::Connection| usage_tables::read(file, &query);
        Box::pin(self.reader.run("read usage", work))
    }
}

impl RequestStore for Embedded {
    fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| request_tables::record(file, node, &totals);
        Box::pin(self.writer.run("record requests", work))
    }

    fn requests(&self, query: RequestQuery) -> StoreFuture<'_, RequestList> {
        let work = move |file: &rusqlite::Connection| request_tables::read(file, &query);
        Box::pin(self.reader.run("read requests", work))
    }
}

impl StatusStore for Embedded {
    fn record_minutes(&self, minutes: Vec<StatusMinute>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| status_tables::record(file, &minutes);
        Box::pin(self.writer.run("record the status", work))
    }

    fn status_history(&self, first: u64, end: u64) -> StoreFuture<'_, StatusHistory> {
        let work = move |file: &rusqlite::Connection| status_tables::history(file, first, end);
        Box::pin(self.reader.run("read the history of the status page", work))
    }

    fn post_status(&self, new: NewStatusMessage) -> StoreFuture<'_, StatusMessage> {
        let work = move |file: &rusqlite::Connection| status_tables::post(file, &new);
        Box::pin(self.writer.run("post a status message", work))
    }

    fn status_messages(&self, limit: usize) -> StoreFuture<'_, Vec<StatusMessage>> {
        let work = move |file: &rusqlite::Connection| status_tables::messages(file, limit);
        Box::pin(self.reader.run("read status messages", work))
    }
}

impl OwnerStore for Embedded {
    fn send_link(&self, link: NewSignInLink, mail: NewMail) -> StoreFuture<'_, bool> {
        let work = move |file: &rusqlite::Connection| owner_tables::send_link(file, &link, &mail);
        Box::pin(self.writer.run("store a link", work))
    }

    fn usable_link(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<UsableLink>> {
        let work = move |file: &rusqlite::Connection| owner_tables::usable_link(file, digest, now);
        Box::pin(self.reader.run("read a link", work))
    }

    fn sign_in(&self, sign_in: SignIn) -> StoreFuture<'_, SignInOutcome> {
        let work = move |file: &rusqlite::Connection| owner_tables::sign_in(file, &sign_in);
        Box::pin(self.writer.run("sign in an owner", work))
    }

    fn session(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<OwnerSession>> {
        let work = move |file: &rusqlite::Connection| owner_tables::session(file, digest, now);
        Box::pin(self.reader.run("read a session", work))
    }

    fn end_session(&self, digest: Digest) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| owner_tables::end_session(file, digest);
        Box::pin(self.writer.run("end a session", work))
    }

    fn end_sessions(&self, owner: OwnerId) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| owner_tables::end_sessions(file, owner);
        Box::pin(self.writer.run("end the sessions of an owner", work))
    }

    fn owners(&self, query: OwnerQuery) -> StoreFuture<'_, Vec<StoredOwner>> {
        let work = move |file: &rusqlite::Connection| owner_tables::owners(file, &query);
        Box::pin(self.reader.run("read owners", work))
    }

    fn owner(&self, id: OwnerId) -> StoreFuture<'_, Option<StoredOwner>> {
        let work = move |file: &rusqlite::Connection| owner_tables::owner(file, id);
        Box::pin(self.reader.run("read an owner", work))
    }

    fn change_owner(&self, change: OwnerChange) -> StoreFuture<'_, StoredOwner> {
        let deletes = matches!(change.what, OwnerChangeKind::Delete { .. });
        let work = move |file: &rusqlite::Connection| owner_tables::change(file, &change);
        Box::pin(self.writer.run_erasing(deletes, "change an owner", work))
    }
}

impl MailQueue for Embedded {
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| mail_queue::add(file, &mails);
        Box::pin(self.writer.run("queue mail", work))
    }

    fn queue_notice(&self, notice: NewNotice) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| mail_queue::add_notice(file, &notice);
        Box::pin(self.writer.run("queue mail", work))
    }

    fn claim_mail(&self, claim: MailClaim) -> StoreFuture<'_, Vec<ClaimedMail>> {
        let work = move |file: &rusqlite::Connection| mail_queue::claim(file, &claim);
        Box::pin(self.writer.run("claim mail", work))
    }

    fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreFuture<'_, ()> {
        let work = move |file: &rusqlite::Connection| mail_queue::record(file, &attempts);
        Box::pin(self.writer.run("record the results of sent mail", work))
    }

    fn mail_backlog(&self) -> StoreFuture<'_, MailBacklog> {
        Box::pin(self.reader.run("read the state of the mail queue", mail_queue::backlog))
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

impl ChangeFeed for Embedded {
    fn position(&self) -> StoreFuture<'_, FeedPosition> {
        Box::pin(self.reader.run("read the change feed", feed::position))
    }

    fn changed_after(&self, after: FeedPosition, limit: usize) -> StoreFuture<'_, ChangedApplications> {
        let work = move |file: &rusqlite::Connection| feed::changed(file, &after, limit);
        Box::pin(self.reader.run("read the change feed", work))
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
