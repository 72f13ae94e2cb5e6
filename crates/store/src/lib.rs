//! Durable state in a file or a database: applications, keys, and the ledger of granted units.
//!
//! Each call is asynchronous, makes one decision, and names the units and the node, so that a local file and a shared
//! database can both implement it. `Ok` means that the change is durable. Limits are decided in `limits`. The hot path
//! makes no calls here.

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/servers/requirements.rs"]
mod requirements;

mod applications;
mod audit_detail;
#[cfg(test)]
mod conformance;
mod database_status;
mod description;
mod dump;
mod durable_file;
mod embedded;
mod evidence;
mod feed;
mod keyed_request;
mod ledger;
mod local;
mod mail_queue;
pub mod maintenance;
mod nodes;
mod notices;
mod owner_refusal;
mod owners;
mod postgres;
mod requests;
#[cfg(any(test, feature = "lab"))]
pub mod sample;
mod shared_documents;
mod sql;
mod statements;
mod status;
mod store_error;
mod stored;
mod transfer_error;
mod window_rows;

pub use applications::{
    ApplicationPage, Attachment, AuditQuery, AuditRecord, ChangeKind, KeyAllowance, KeyUse,
    LeakReport, Ownership, StoreChange, StoredApplication, StoredKey,
};
pub use database_status::{DatabaseStatus, ExchangeCounts, HotTable, TableRows};
pub use description::Description;
pub use dump::RowCounts;
pub use durable_file::FileReplacement;
pub use evidence::{DayRecord, EvidenceQuery, HourRecord};
pub use feed::{ChangedApplications, FeedPosition};
pub use keyed_request::KeyedRequest;
pub use ledger::{
    AssumedTerms, HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply, LedgerReport,
    OwedUnits, ReportOutcome,
};
pub use local::{
    CopiedReading, FileFlaw, LocalFile, Mirror, MirrorError, MirrorRecord, OwedRecords,
};
pub use mail_queue::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailLane, MailOutcome, NewMail,
    NewNotice, OPERATOR,
};
pub use nodes::{NodeList, NodeStatus};
pub use notices::{
    DueNotice, NOTICES, NoticeQuery, NoticeRow, NoticeSubject, NoticeTier, OwnerNotice,
    notice_kinds, notice_words,
};
pub use owner_refusal::OwnerRefusal;
pub use owners::{
    LinkAllowance, MAX_WEBHOOKS, NewSignInLink, OwnerChange, OwnerChangeKind, OwnerQuery,
    OwnerSession, SignIn, SignInOutcome, StoredOwner, StoredWebhook, UsableLink, WebhookChange,
};
pub use postgres::{
    BadDatabaseFile, BadDatabaseUrl, CONNECTIONS_PER_GATEWAY, ClientCertificateFiles,
    ConnectionFault, DatabaseAddress, DatabaseConfig, DatabaseReport, DatabaseSettings,
    OpenFailure, SeenTimelines, TablesChange, TablesWork, connection_limit,
};
pub use requests::{
    OutcomeCounts, REQUEST_DAYS_KEPT, REQUEST_DAYS_OPEN, RequestList, RequestOutcome, RequestQuery,
    RequestTotal, UsageList, UsageTotal, first_of_month,
};
pub use shared_documents::{
    AgreedRefresh, ClaimState, EngineClock, Publication, PublishedDocument, SharedDocumentState,
    SharedDocuments,
};
pub use sql::{ApplicationPages, Store, formats};
pub use statements::{BadName, RoleName, SchemaName};
pub use status::{
    DAY_MINUTES, IncidentState, MessageSubject, NewStatusMessage, StatusDay, StatusHistory,
    StatusMessage, StatusMinute, minute_of,
};
pub use store_error::{StoreError, StoreFuture, StoreResult};
pub use transfer_error::TransferError;
