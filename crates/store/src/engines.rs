//! A whole store, for the parts of the program that pass it on, and the calls of both engines that differ only in how an
//! engine runs statements (`sql`). Others take the traits they use.

use super::embedded::{Embedded, done};
use super::postgres::{PostgresStore, SchemaClient};
use super::sql::schema::FORMAT;
use super::sql::tables::SqlTables as _;
use super::sql::{
    audit, changes, evidence, grace_shares, leaks, limits_until, mail_queue, notices, outdated,
    owners, records, request_totals, sign_in, status, webhooks,
};
use super::{
    ApplicationPage, ApplicationPages, AuditQuery, AuditRecord, ChangeFeed, ChangeKind,
    ChangedApplications, ClaimedMail, DayRecord, DocumentSharing, DueNotice, EvidenceQuery,
    EvidenceStore, FeedPosition, HeldGraceShare, HourRecord, KeyStore, KeyUse, KeyedRequest,
    Ledger, LedgerExchange, LedgerExchangeReply, MailAttempt, MailBacklog, MailClaim, MailQueue,
    NewMail, NewNotice, NewSignInLink, NewStatusMessage, NodeRegistry, NoticeQuery, NoticeStore,
    OwnerChange, OwnerChangeKind, OwnerQuery, OwnerSession, OwnerStore, RequestList, RequestQuery,
    RequestStore, RequestTotal, SignIn, SignInOutcome, StatusHistory, StatusMessage, StatusMinute,
    StatusStore, StoreChange, StoreFuture, StoreHealth, StoredApplication, StoredOwner,
    StoredWebhook, UsableLink, UsageList, dump,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest, OwnerId};
use scoregate_base::limits::{GraceClaim, GraceShare};

/// A whole store.
pub trait Store:
    KeyStore
    + Ledger
    + ChangeFeed
    + RequestStore
    + StatusStore
    + OwnerStore
    + MailQueue
    + NoticeStore
    + EvidenceStore
    + NodeRegistry
    + StoreHealth
    + DocumentSharing
{
}

impl Store for Embedded {}

impl Store for PostgresStore {}

/// The formats of a store in each of its forms, with their names.
pub fn formats() -> [(&'static str, String); 3] {
    [
        ("store file", FORMAT.to_string()),
        ("database", FORMAT.to_string()),
        ("export", dump::VERSION.to_string()),
    ]
}

/// Implements a trait for both engines. A call has its signature, the operation for error messages, the thread of the
/// embedded engine, the connection of the other one with or without a transaction, and the work on the tables. `erasing` is
/// whether it deletes personal data. `embedded` and `postgres` have calls of one engine only.
macro_rules! both_engines {
    ($trait:ident: $(
        fn $call:ident($($value:ident: $type:ty),*) -> $reply:ty, $doing:literal,
            $worker:ident $(erasing $erases:expr)?, $link:ident.$run:ident, |$tables:ident| $work:expr;
    )+ $(embedded { $($of_embedded:tt)* })? $(postgres { $($of_postgres:tt)* })?) => {
        impl $trait for Embedded {
            $(fn $call(&self, $($value: $type),*) -> StoreFuture<'_, $reply> {
                let erases = false $(|| $erases)?;
                self.$worker.run_erasing(erases, $doing, move |$tables| done($work))
            })+
            $($($of_embedded)*)?
        }

        impl $trait for PostgresStore {
            $(fn $call(&self, $($value: $type),*) -> StoreFuture<'_, $reply> {
                Box::pin(self.$link.$run($doing, async move |$tables: SchemaClient<'_>| $work.await))
            })+
            $($($of_postgres)*)?
        }
    };
}

both_engines! { KeyStore:
    fn page(after: Option<ApplicationId>, limit: usize, day: Day) -> ApplicationPage, "read a page of applications",
        reader, connection.run, |tables| records::page(tables, after, limit, day);
    fn application(id: ApplicationId, day: Day) -> Option<StoredApplication>, "read an application",
        reader, connection.run, |tables| records::application(tables, id, day);
    fn applications(ids: Vec<ApplicationId>, day: Day) -> ApplicationPage, "read applications",
        reader, connection.run, |tables| records::applications(tables, &ids, day);
    fn find_keys(digests: Vec<Digest>) -> Vec<(Digest, ApplicationId)>, "find keys",
        reader, connection.run, |tables| leaks::find_keys(tables, &digests);
    fn change(change: StoreChange) -> StoredApplication, "make a change",
        writer erasing matches!(change.what, ChangeKind::Close), connection.change,
        |tables| changes::make(tables, &change);
    fn keep_request(request: KeyedRequest) -> KeyedRequest, "keep a request",
        writer, connection.run, |tables| changes::keep_request(tables, &request);
    fn due_limits(now: Wall) -> Vec<ApplicationId>, "read limits that end",
        reader, connection.run, |tables| limits_until::due(tables, now);
    fn record_uses(keys: Vec<KeyUse>) -> (), "record uses of keys",
        writer, connection.run, |tables| records::record_uses(tables, &keys);
    fn audit(query: AuditQuery) -> Vec<AuditRecord>, "read the audit trail",
        reader, connection.run, |tables| audit::records(tables, query);
    postgres {
        fn all(&self, day: Day) -> ApplicationPages<'_> {
            Box::pin(self.pages(day))
        }
    }
}

both_engines! { Ledger:
    fn day() -> Option<Day>, "read the current day",
        reader, connection.run, |tables| tables.today();
    fn claim_grace(claim: GraceClaim) -> Option<GraceShare>, "register for grace",
        writer, connection.change, |tables| grace_shares::claim(tables, &claim);
    fn return_grace(share: HeldGraceShare) -> (), "return grace",
        writer, connection.run, |tables| grace_shares::give_back(tables, &share);
    fn delete_outdated() -> u64, "delete outdated records",
        writer erasing true, connection.change, |tables| outdated::delete(tables);
    embedded {
        fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            self.exchange_reports(exchange)
        }
    }
    postgres {
        fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            Box::pin(self.ledger.exchange(exchange))
        }

        fn refusal(&self) -> StoreFuture<'_, Option<String>> {
            Box::pin(self.refusal_to_serve())
        }

        fn others_hold_grace(&self, day: Day, node: u64) -> StoreFuture<'_, bool> {
            let work = async move |tables: SchemaClient<'_>| grace_shares::others_hold(tables, day, node).await;
            Box::pin(self.connection.run("read shares of grace", work))
        }
    }
}

both_engines! { ChangeFeed:
    fn position() -> FeedPosition, "read the change feed",
        reader, connection.run, |tables| audit::position(tables);
    fn changed_after(after: FeedPosition, limit: usize) -> ChangedApplications, "read the change feed",
        reader, connection.run, |tables| audit::changed(tables, after, limit);
    postgres {
        fn changed(&self) -> StoreFuture<'_, ()> {
            Box::pin(async move {
                self.listener().changed().await;
                Ok(())
            })
        }
    }
}

both_engines! { RequestStore:
    fn record_requests(node: u64, totals: Vec<RequestTotal>) -> (), "record requests",
        writer, connection.change, |tables| request_totals::record(tables, node, &totals);
    fn requests(query: RequestQuery) -> RequestList, "read requests",
        reader, connection.run, |tables| request_totals::requests(tables, &query);
    fn usage(day: Day, limit: usize, owner: Option<OwnerId>) -> UsageList, "read usage",
        reader, connection.run, |tables| request_totals::usage(tables, day, limit, owner);
}

both_engines! { EvidenceStore:
    fn sketch_key(day: Day, proposed: u64) -> u64, "choose a key",
        writer, connection.run, |tables| evidence::sketch_key(tables, day, proposed);
    fn record_evidence(node: u64, hours: Vec<HourRecord>) -> (), "record evidence",
        writer, connection.change, |tables| evidence::record(tables, node, &hours);
    fn merge_evidence(until: u32, catalogue: u16, most: usize) -> bool, "merge evidence",
        writer, connection.change, |tables| evidence::merge(tables, until, catalogue, most);
    fn evidence(query: EvidenceQuery) -> Vec<DayRecord>, "read evidence",
        reader, connection.run, |tables| evidence::days(tables, &query);
}

both_engines! { StatusStore:
    fn record_minutes(minutes: Vec<StatusMinute>) -> (), "record the status of this gateway",
        writer, connection.change, |tables| status::record(tables, &minutes);
    fn status_history(first: u64, end: u64) -> StatusHistory, "read the history of the status page",
        reader, connection.run, |tables| status::history(tables, first, end);
    fn post_status(new: NewStatusMessage) -> StatusMessage, "post a status message",
        writer, connection.change, |tables| status::post(tables, &new);
    fn status_messages(limit: usize) -> Vec<StatusMessage>, "read status messages",
        reader, connection.run, |tables| status::messages(tables, limit);
}

both_engines! { MailQueue:
    fn queue_mail(mails: Vec<NewMail>) -> (), "queue mail",
        writer, accounts.run, |tables| tables.queue_mail(&mails);
    fn queue_notice(notice: NewNotice) -> (), "queue mail",
        writer, accounts.change, |tables| mail_queue::add_notice(tables, &notice);
    fn claim_mail(claim: MailClaim) -> Vec<ClaimedMail>, "claim mail",
        writer, accounts.run, |tables| mail_queue::claim(tables, &claim);
    fn record_attempts(attempts: Vec<MailAttempt>) -> (), "record the results of sent mail",
        writer, accounts.run, |tables| mail_queue::record(tables, &attempts);
    fn mail_backlog() -> MailBacklog, "read the state of the mail queue",
        reader, accounts.run, |tables| mail_queue::backlog(tables);
}

both_engines! { NoticeStore:
    fn queue_once(mails: Vec<NewMail>) -> (), "queue notices",
        writer, accounts.change, |tables| notices::queue_once(tables, &mails);
    fn due_notices(query: NoticeQuery) -> Vec<DueNotice>, "read notices that are due",
        reader, accounts.run, |tables| notices::due(tables, &query);
}

// Owners have a connection of their own, so that changes of keys do not wait for them.
both_engines! { OwnerStore:
    fn send_link(link: NewSignInLink, mail: NewMail) -> bool, "store a link",
        writer, accounts.change, |tables| sign_in::send_link(tables, &link, &mail);
    fn usable_link(digest: Digest, now: Wall) -> Option<UsableLink>, "read a link",
        reader, accounts.run, |tables| sign_in::usable(tables, digest, now);
    fn sign_in(sign_in: SignIn) -> SignInOutcome, "sign in an owner",
        writer, accounts.change, |tables| sign_in::sign_in(tables, &sign_in);
    fn session(digest: Digest, now: Wall) -> Option<OwnerSession>, "read a session",
        reader, accounts.run, |tables| owners::session(tables, digest, now);
    fn end_session(digest: Digest) -> (), "end a session",
        writer, accounts.run, |tables| owners::end_session(tables, digest);
    fn end_sessions(owner: OwnerId) -> (), "end the sessions of an owner",
        writer, accounts.run, |tables| owners::end_sessions(tables, owner);
    fn owners(query: OwnerQuery) -> Vec<StoredOwner>, "read owners",
        reader, accounts.run, |tables| owners::owners(tables, &query);
    fn owner(id: OwnerId) -> Option<StoredOwner>, "read an owner",
        reader, accounts.run, |tables| owners::owner(tables, id);
    fn webhooks(of: String) -> Vec<StoredWebhook>, "read webhooks",
        reader, accounts.run, |tables| webhooks::find(tables, &of);
    fn change_owner(change: OwnerChange) -> StoredOwner, "change an owner",
        writer erasing matches!(change.what, OwnerChangeKind::Delete { .. }), accounts.change,
        |tables| owners::change(tables, &change);
}
