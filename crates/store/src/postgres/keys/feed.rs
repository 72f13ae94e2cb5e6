//! The feed of changes.
//!
//! A position of the feed is the number of an audit record, the identity of the data set, and the history of the server,
//! which changes with every failover: a server that lost changes may assign their numbers again.

use crate::postgres::postgres_store::PostgresStore;
use crate::sql::tables::SqlRow as _;
use crate::stored::stored;
use crate::{ChangeFeed, ChangedApplications, FeedPosition, StoreFuture};
use scoregate_base::clock::Wall;
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
