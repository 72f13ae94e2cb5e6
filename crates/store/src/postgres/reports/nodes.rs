//! The gateway processes that use the database. Times of reports are those of the server's clock.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{RowColumns as _, SchemaClient, SqlResult};
use crate::stored::millis;
use crate::{NodeList, NodeStatus};

const REPORT: &str = "
INSERT INTO {schema}.nodes (node, name, version, started_at, units_held, usage_recorded_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
    units_held = excluded.units_held, usage_recorded_at = excluded.usage_recorded_at, last_seen_at = excluded.last_seen_at";

const REMOVE: &str = "DELETE FROM {schema}.nodes WHERE node = $1";

/// A row without a node if there is none, for the clock.
const LIST: &str = "
SELECT c.at, n.node, n.name, n.version, n.started_at, n.last_seen_at, n.units_held, n.usage_recorded_at
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) c
LEFT JOIN {schema}.nodes n ON true
ORDER BY n.started_at, n.node";

/// Nodes that were not seen for a day: they were killed.
const DELETE: &str = "
DELETE FROM {schema}.nodes WHERE node IN (
    SELECT node FROM {schema}.nodes
    WHERE last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000 ORDER BY node FOR UPDATE SKIP LOCKED)";

/// Stores the status of a node.
pub(crate) async fn report(client: SchemaClient<'_>, status: &NodeStatus) -> SqlResult<()> {
    let NodeStatus { node, name, version, started_at, units_held, usage_recorded_at, .. } = status;
    let [node, units] = [node, units_held].map(|number| number.cast_signed());
    let [started, recorded] = [*started_at, *usage_recorded_at].map(millis);
    client.execute(REPORT, &[&node, name, version, &started, &units, &recorded]).await.map(drop)
}

/// Removes a node.
pub(crate) async fn remove(client: SchemaClient<'_>, node: u64) -> SqlResult<()> {
    client.execute(REMOVE, &[&node.cast_signed()]).await.map(drop)
}

/// All nodes.
pub(crate) async fn list(client: SchemaClient<'_>) -> SqlResult<NodeList> {
    let mut list = NodeList::default();
    for row in client.query(LIST, &[]).await? {
        list.clock = Some(row.at("at")?);
        list.nodes.extend(status(&row)?);
    }
    Ok(list)
}

/// Deletes nodes that ended without removing themselves.
pub(crate) async fn delete_outdated(client: SchemaClient<'_>) -> SqlResult<u64> {
    client.execute(DELETE, &[]).await
}

fn status(row: &Row) -> SqlResult<Option<NodeStatus>> {
    let Some(node) = row.try_get::<_, Option<i64>>("node")? else { return Ok(None) };
    Ok(Some(NodeStatus {
        node: node.cast_unsigned(),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        started_at: row.at("started_at")?,
        last_seen_at: row.at("last_seen_at")?,
        units_held: row.count("units_held")?,
        usage_recorded_at: row.at("usage_recorded_at")?,
    }))
}
