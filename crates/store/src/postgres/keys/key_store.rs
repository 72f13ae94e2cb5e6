//! Applications, keys and the audit trail, and the feed of their changes.

use crate::postgres::keys::all_applications::READ;
use crate::postgres::keys::changes;
use crate::postgres::keys::feed;
use crate::postgres::keys::records;
use crate::postgres::postgres_store::PostgresStore;
use crate::{
    ApplicationPage, ApplicationPages, AuditQuery, AuditRecord, ChangeFeed, ChangedApplications,
    FeedPosition, KeyStore, KeyUse, StoreChange, StoreFuture, StoredApplication,
};
use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;

/// An operation named in error messages.
const FEED: &str = "read the change feed";

impl KeyStore for PostgresStore {
    fn page(&self, after: Option<ApplicationId>, limit: usize, day: Day) -> StoreFuture<'_, ApplicationPage> {
        Box::pin(
            self.connection.run(READ, async move |client| records::page(client, after, limit, day).await),
        )
    }

    fn all(&self, day: Day) -> ApplicationPages<'_> {
        Box::pin(self.pages(day))
    }

    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>> {
        Box::pin(async move {
            let read = self.connection.run(READ, async |client| records::application(client, id, day).await);
            read.await?.transpose()
        })
    }

    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage> {
        Box::pin(
            self.connection.run(READ, async move |client| records::applications(client, &ids, day).await),
        )
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        let doing = "make a change";
        Box::pin(self.connection.change(doing, async move |client| changes::make(client, &change).await))
    }

    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        let doing = "record uses of keys";
        Box::pin(self.connection.run(doing, async move |client| changes::used(client, &keys).await))
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        let doing = "read the audit trail";
        Box::pin(self.connection.run(doing, async move |client| records::audit(client, query).await))
    }
}

impl ChangeFeed for PostgresStore {
    fn position(&self) -> StoreFuture<'_, FeedPosition> {
        Box::pin(self.connection.run(FEED, async |client| feed::position(client).await))
    }

    fn changed_after(&self, after: FeedPosition, limit: usize) -> StoreFuture<'_, ChangedApplications> {
        Box::pin(self.connection.run(FEED, async move |client| feed::changed(client, &after, limit).await))
    }

    fn changed(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.listener().changed().await;
            Ok(())
        })
    }
}
