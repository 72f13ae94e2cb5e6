//! Applications, keys and the audit trail, and the feed of their changes.
//!
//! A position of the feed is the number of an audit record, the identity of the data set, and the history of the server,
//! which changes with every failover: a server that lost changes may assign their numbers again.

use crate::postgres::keys::all_applications::READ;
use crate::postgres::keys::records;
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::changes;
use crate::sql::tables::SqlRow as _;
use crate::stored::stored;
use crate::{
    ApplicationPage, ApplicationPages, AuditQuery, AuditRecord, ChangeFeed, ChangedApplications,
    FeedPosition, KeyStore, KeyUse, StoreChange, StoreFuture, StoredApplication,
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;

/// An operation named in error messages.
const FEED: &str = "read the change feed";

const POSITION: &str = "
SELECT s.id::text || '/' || {history} AS source, (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS number
FROM {schema}.site s";

const CHANGED: &str = "
SELECT s.id::text || '/' || {history} AS source, a.number, a.application,
       (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS newest,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock
FROM {schema}.site s
LEFT JOIN (
    SELECT max(id) AS number, application FROM {schema}.audit WHERE id > $1 GROUP BY application
    ORDER BY number LIMIT $2
) a ON true
ORDER BY a.number";

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
        Box::pin(self.connection.run(doing, async move |client| records::used(client, &keys).await))
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        let doing = "read the audit trail";
        Box::pin(self.connection.run(doing, async move |client| records::audit(client, query).await))
    }
}

impl ChangeFeed for PostgresStore {
    fn position(&self) -> StoreFuture<'_, FeedPosition> {
        Box::pin(self.connection.run(FEED, async |client| {
            let row = client.query_one(POSITION, &[]).await?;
            Ok(FeedPosition { source: row.try_get("source")?, number: row.number("number")? })
        }))
    }

    fn changed_after(&self, after: FeedPosition, limit: usize) -> StoreFuture<'_, ChangedApplications> {
        Box::pin(self.connection.run(FEED, async move |client| {
            let rows = client.query(CHANGED, &[&stored(after.number), &stored(limit)]).await?;
            let mut changed = ChangedApplications { reached: after, ..ChangedApplications::default() };
            for row in &rows {
                changed.reached.source = row.try_get("source")?;
                changed.newest = row.number("newest")?;
                changed.clock = u64::try_from(row.try_get::<_, i64>("clock")?).ok().map(Wall::from_millis);
                let Some(number) = row.try_get::<_, Option<i64>>("number")? else { continue };
                changed.reached.number = u64::try_from(number).unwrap_or(0);
                let application: &str = row.try_get("application")?;
                // Records of maintenance commands name no application.
                changed.applications.extend(application.parse::<ApplicationId>());
            }
            Ok(changed)
        }))
    }

    fn changed(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.listener().changed().await;
            Ok(())
        })
    }
}
