//! The change feed: applications that changed after a position.
//!
//! A position is the number of an audit record, the identity of the data set, and the history of the server, which
//! changes with every failover: a server that lost changes may assign their numbers again.

use crate::postgres::connection::schema_client::{RowColumns as _, SchemaClient, SqlResult};
use crate::stored::stored;
use crate::{ChangedApplications, FeedPosition};
use scoregate_base::clock::Wall;
use scoregate_base::keys::ApplicationId;

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

/// The position of the last change.
pub(crate) async fn position(client: SchemaClient<'_>) -> SqlResult<FeedPosition> {
    let row = client.query_one(POSITION, &[]).await?;
    Ok(FeedPosition { source: row.try_get("source")?, number: row.count("number")? })
}

/// Up to `limit` applications that changed after a position, in the order of their last changes.
pub(crate) async fn changed(
    client: SchemaClient<'_>,
    after: &FeedPosition,
    limit: usize,
) -> SqlResult<ChangedApplications> {
    let rows = client.query(CHANGED, &[&stored(after.number), &stored(limit)]).await?;
    let mut changed = ChangedApplications { reached: after.clone(), ..ChangedApplications::default() };
    for row in &rows {
        changed.reached.source = row.try_get("source")?;
        changed.newest = row.count("newest")?;
        changed.clock = u64::try_from(row.try_get::<_, i64>("clock")?).ok().map(Wall::from_millis);
        let Some(number) = row.try_get::<_, Option<i64>>("number")? else { continue };
        changed.reached.number = u64::try_from(number).unwrap_or(0);
        let application: &str = row.try_get("application")?;
        // Records of maintenance commands name no application.
        changed.applications.extend(application.parse::<ApplicationId>());
    }
    Ok(changed)
}
