//! The traits for durable state: applications, keys, and the ledger of granted units.
//!
//! Calls carry one decision each, are asynchronous, and name units and node, so that a file on this machine and a
//! server for many machines can both implement them. `Ok` means durable. Nothing is decided here (see `limits`), and
//! no request of the hot path comes here.

mod applications;
mod audit_detail;
#[cfg(test)]
mod conformance;
mod database_status;
mod disk_mirror;
mod dump;
mod durable_file;
mod embedded;
mod feed;
mod ledger;
mod local_copy;
mod mail_queue;
mod nodes;
mod owed;
mod owners;
mod postgres;
mod requests;
mod shared_documents;
mod status;
mod usage;
mod website;

use std::future::Future;
use std::pin::Pin;

use futures_util::{Stream, stream};

use crate::clock::{Day, Wall};
use crate::keys::{ApplicationId, Digest, OwnerId};
use crate::limits::{GraceClaim, GraceShare};

pub use applications::{
    ApplicationPage, AuditQuery, AuditRecord, ChangeKind, KeyAllowance, KeyUse, OwnLimits, Ownership,
    StoreChange, StoredApplication, StoredKey,
};
pub use database_status::{DatabaseStatus, ExchangeCounts, HotTable, TableRows};
pub use disk_mirror::{Mirror, MirrorContents, MirrorError, MirrorRecord, RecordFlaw, RejectedRecord};
pub use dump::{RecordCounts, TransferError};
pub use embedded::{Embedded, maintenance};
pub use feed::{ChangedApplications, FeedPosition};
pub use ledger::{
    AssumedTerms, HeldGraceShare, LedgerExchange, LedgerExchangeReply, LedgerReport, OwedUnits, ReportOutcome,
};
pub use local_copy::{
    CopiedReading, LocalCopy, LocalCopyFlaw, LocalCopyLog, NewLocalCopy, VerifiedLocalCopy,
};
pub use mail_queue::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailOutcome, NewMail, NewNotice,
};
pub use nodes::{NodeList, NodeStatus};
pub use owed::{OwedFile, OwedLog, OwedRecords};
pub use owners::{
    LinkAllowance, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerRefusal, OwnerSession,
    SignIn, SignInOutcome, StoredOwner, UsableLink,
};
pub use postgres::{
    BadDatabaseFile, BadDatabaseUrl, BadName, CONNECTIONS_PER_GATEWAY, ClientCertificateFiles,
    DatabaseAddress, DatabaseConfig, DatabaseExport, DatabaseReport, DatabaseSettings, OpenFailure,
    PostgresStore, RoleName, SchemaName, SeenTimelines, TablesChange, TablesWork, connection_limit,
};
pub use requests::{
    OutcomeCounts, REQUEST_DAYS_KEPT, RequestList, RequestOutcome, RequestQuery, RequestTotal,
};
pub use shared_documents::{
    AgreedRefresh, ClaimState, DocumentSharing, EngineClock, Publication, PublishedDocument,
    SharedDocumentState, SharedDocuments,
};
pub use status::{
    DAY_MINUTES, IncidentState, MessageSubject, NewStatusMessage, StatusDay, StatusHistory, StatusMessage,
    StatusMinute, minute_of,
};
pub use usage::{USAGE_DAYS_OPEN, UsageList, UsageQuery, UsageTotal};
pub use website::{BadWebsite, check_website};

/// Applications in a page of all, unless an engine has pages of its own.
const ALL_PAGE: usize = 10_000;

/// The reply to a store call, to be awaited.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// All applications in pages. After an error there are no more.
pub type ApplicationPages<'a> = Pin<Box<dyn Stream<Item = Result<ApplicationPage, StoreError>> + Send + 'a>>;

/// Why a store call failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The application does not exist.
    #[error("there is no application {0}; `scoregate keys list` lists all")]
    UnknownApplication(ApplicationId),
    /// The application has no such key.
    #[error("application {0} has no such key; `scoregate keys show {0}` lists its keys")]
    UnknownKey(ApplicationId),
    /// The service has no such incident.
    #[error("there is no incident {0}; `scoregate status list` lists them")]
    UnknownIncident(u64),
    /// The account of an owner does not allow it.
    #[error(transparent)]
    Owner(#[from] OwnerRefusal),
    /// Nothing is added to a resolved incident.
    #[error("incident {0} is already resolved; open a new one")]
    IncidentResolved(u64),
    /// An application or key with this identity exists.
    #[error("{0} already exists")]
    Exists(&'static str),
    /// The store cannot be reached or written. Nothing counts as done; after a disk failure in the last moment a
    /// crash may still bring it back.
    #[error("the store cannot {doing}: {reason}")]
    Unavailable {
        /// The operation.
        doing: &'static str,
        /// The cause.
        reason: String,
    },
    /// The store's content is damaged.
    #[error("the store at {path} is damaged: {reason}. Run `scoregate store check` to see what is readable")]
    Damaged {
        /// Its location.
        path: String,
        /// The problem.
        reason: String,
    },
    /// The store was written by a newer version of the program.
    #[error(
        "the store at {path} has format {found}; this program supports formats up to {known}. \
         Run the newer version again, or import the backup that it made beside the file before the upgrade"
    )]
    Newer {
        /// Its location.
        path: String,
        /// Its format.
        found: u32,
        /// The newest known format.
        known: u32,
    },
}

impl StoreError {
    /// Whether the store failed, as opposed to an invalid request.
    pub const fn is_failure(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::Damaged { .. } | Self::Newer { .. } => true,
            Self::UnknownApplication(_)
            | Self::UnknownKey(_)
            | Self::UnknownIncident(_)
            | Self::Owner(_)
            | Self::IncidentResolved(_)
            | Self::Exists(_) => false,
        }
    }
}

/// Applications, keys and the audit trail. Times have millisecond resolution.
pub trait KeyStore: Send + Sync + 'static {
    /// Up to `limit` applications after `after`, with the units granted for `day`.
    fn page(&self, after: Option<ApplicationId>, limit: usize, day: Day) -> StoreFuture<'_, ApplicationPage>;

    /// All applications, ordered by id, with the units granted for `day`.
    fn all(&self, day: Day) -> ApplicationPages<'_> {
        Box::pin(stream::try_unfold(Some(None), move |next| async move {
            let Some(after) = next else { return Ok(None) };
            let page = self.page(after, ALL_PAGE, day).await?;
            let next = page.next.map(Some);
            Ok(Some((page, next)))
        }))
    }

    /// One application, with the units granted for `day`. Fails if its record is unreadable; unreadable keys are left
    /// out.
    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>>;

    /// These applications, with the units granted for `day`, as in a page. Unknown ones are left out.
    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage>;

    /// Makes a change and its audit record durable, both or neither, and returns the application as changed
    /// (`granted` for the day of the change). If its record is unreadable, a change that adds no key is made all the
    /// same, and the returned application contains revoked keys only: no other key is in force.
    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication>;

    /// Records uses of keys. Unknown keys, and uses older than the recorded ones, are ignored.
    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()>;

    /// Audit records, newest first.
    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>>;
}

/// The ledger of daily units. Its rules are in `limits::day_ledger`.
pub trait Ledger: Send + Sync + 'static {
    /// The current day; none before the first exchange. Earlier days are closed.
    fn day(&self) -> StoreFuture<'_, Option<Day>>;

    /// Applies reports of a node, durably, before it returns. A failed exchange may have been applied; it can be
    /// repeated.
    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply>;

    /// Registers for a share of a day's grace, or confirms the one that is held. `None` if no share is free, or if the one that
    /// is held must not be used any more. A failed claim may have been applied; it can be repeated.
    fn claim_grace(&self, _claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns a share on which nothing is owed.
    fn return_grace(&self, _share: HeldGraceShare) -> StoreFuture<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Applications of which other nodes need the shares of minutes that this node has.
    fn recalled(&self, node: u64) -> StoreFuture<'_, Vec<ApplicationId>>;

    /// Connects as far as requests of callers need it, unless that is done. Returns why a store that answers refuses this
    /// gateway; an error if it does not answer.
    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Deletes a batch of outdated records, merges usage and requests of days that are closed, and returns the number of changed records.
    /// Some engines delete some records with other writes.
    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }
}

/// Changes to applications and keys, by whichever gateway or command, in commit order.
pub trait ChangeFeed: Send + Sync + 'static {
    /// The position of the newest change. Taken before the first page of applications is read, it misses nothing.
    fn position(&self) -> StoreFuture<'_, FeedPosition>;

    /// Up to `limit` applications that changed after a position.
    fn changed_after(&self, after: FeedPosition, limit: usize) -> StoreFuture<'_, ChangedApplications>;

    /// Waits for a hint that something was changed elsewhere. Hints may be lost, and some engines give none.
    fn changed(&self) -> StoreFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

/// Units delivered per application and day, for reports. The rules are in `usage`.
pub trait UsageStore: Send + Sync + 'static {
    /// Stores totals of a node durably, at most one for each application and day. A total that is lower than the stored
    /// one changes nothing, nor does one of a day that is no longer open for reports.
    fn record_usage(&self, node: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()>;

    /// Usage added up over all nodes.
    fn usage(&self, query: UsageQuery) -> StoreFuture<'_, UsageList>;
}

/// Requests per application, day, endpoint and outcome, for reports. The rules are in `requests`.
pub trait RequestStore: Send + Sync + 'static {
    /// Stores totals of a node durably, at most one for each application, day, endpoint and outcome. A total that is lower than
    /// the stored one changes nothing, nor does one of a day that is no longer open for reports.
    fn record_requests(&self, node: u64, totals: Vec<RequestTotal>) -> StoreFuture<'_, ()>;

    /// Requests of an application added up over all nodes.
    fn requests(&self, query: RequestQuery) -> StoreFuture<'_, RequestList>;
}

/// The availability of the service by minute, and messages about its incidents. The rules are in `status`.
pub trait StatusStore: Send + Sync + 'static {
    /// Stores minutes as one gateway saw them. A minute is ready, or its data fresh, if any gateway stored that. Minutes that
    /// are no longer kept are ignored.
    fn record_minutes(&self, minutes: Vec<StatusMinute>) -> StoreFuture<'_, ()>;

    /// The minutes from `first` up to `end`, which is not included, added up by day.
    fn status_history(&self, first: u64, end: u64) -> StoreFuture<'_, StatusHistory>;

    /// Makes a message and its audit record durable, both or neither.
    fn post_status(&self, new: NewStatusMessage) -> StoreFuture<'_, StatusMessage>;

    /// The newest messages, up to `limit`, and all of incidents that are not resolved; newest first.
    fn status_messages(&self, limit: usize) -> StoreFuture<'_, Vec<StatusMessage>>;
}

/// Owners of applications, their links by e-mail and their sessions. Links and sessions that have expired do not exist.
pub trait OwnerStore: Send + Sync + 'static {
    /// Makes a link and its mail durable, both or neither. Returns `false` and stores nothing if the mailbox has had its
    /// allowance. Both cases run the same statements: the duration must not depend on the mailbox.
    fn send_link(&self, link: NewSignInLink, mail: NewMail) -> StoreFuture<'_, bool>;

    /// The link with this digest, unless it was used.
    fn usable_link(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<UsableLink>>;

    /// Uses a link: creates the owner if the mailbox is unknown, and a session. Of several uses at the same time one succeeds.
    fn sign_in(&self, sign_in: SignIn) -> StoreFuture<'_, SignInOutcome>;

    /// The session with this digest.
    fn session(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<OwnerSession>>;

    /// Ends a session, if it exists.
    fn end_session(&self, digest: Digest) -> StoreFuture<'_, ()>;

    /// Ends all sessions of an owner.
    fn end_sessions(&self, owner: OwnerId) -> StoreFuture<'_, ()>;

    /// Owners, ordered by id.
    fn owners(&self, query: OwnerQuery) -> StoreFuture<'_, Vec<StoredOwner>>;

    /// One owner.
    fn owner(&self, id: OwnerId) -> StoreFuture<'_, Option<StoredOwner>>;

    /// Makes a change and its audit record durable, both or neither. Returns the owner as changed, or as deleted.
    fn change_owner(&self, change: OwnerChange) -> StoreFuture<'_, StoredOwner>;
}

/// Mail to be sent. The rules are in `mail_queue`.
pub trait MailQueue: Send + Sync + 'static {
    /// Queues mails. A message id that is queued already is ignored.
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()>;

    /// Queues the first mails of an operator to owners, with the audit record for all of them, both or neither.
    fn queue_notice(&self, notice: NewNotice) -> StoreFuture<'_, ()>;

    /// Claims mails that are due, longest due first. No mail is claimed by two readers at the same time. Mails that have
    /// expired are claimed too, so that they are counted and removed.
    fn claim_mail(&self, claim: MailClaim) -> StoreFuture<'_, Vec<ClaimedMail>>;

    /// Records the results of attempts.
    fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreFuture<'_, ()>;

    /// The state of the queue.
    fn mail_backlog(&self) -> StoreFuture<'_, MailBacklog>;
}

/// The gateways that use the store, for information.
pub trait NodeRegistry: Send + Sync + 'static {
    /// Stores the status of a node. An engine with a clock of its own sets `last_seen_at` by it.
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()>;

    /// Removes a node that stops.
    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()>;

    /// The nodes. One that was not seen for a day may be left out.
    fn nodes(&self) -> StoreFuture<'_, NodeList>;
}

/// The health of an engine.
pub trait StoreHealth: Send + Sync + 'static {
    /// Damage of the store found while running. An operator has to repair it.
    fn damage(&self) -> Option<String>;

    /// Why nothing can be written durably, if that is known without an attempt: the store file was moved, deleted or
    /// replaced. May access the file system.
    fn missing_or_replaced(&self) -> Option<String>;

    /// The state of a shared database; `None` for an engine without one.
    fn database_status(&self) -> StoreFuture<'_, Option<DatabaseStatus>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Exchanges of the ledger with a shared database; none without one.
    fn exchange_counts(&self) -> ExchangeCounts {
        ExchangeCounts::default()
    }
}

/// A whole store.
pub trait Store:
    KeyStore
    + Ledger
    + ChangeFeed
    + UsageStore
    + RequestStore
    + StatusStore
    + OwnerStore
    + MailQueue
    + NodeRegistry
    + StoreHealth
    + DocumentSharing
{
}

impl<T> Store for T where
    T: KeyStore
        + Ledger
        + ChangeFeed
        + UsageStore
        + RequestStore
        + StatusStore
        + OwnerStore
        + MailQueue
        + NodeRegistry
        + StoreHealth
        + DocumentSharing
{
}
