//! The gateway processes that use the database. Times of reports are those of the server's clock.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Transaction};

use super::connection::{Parameter, SchemaName};
use crate::clock::Wall;
use crate::store::{NodeList, NodeStatus};

/// The statements, with the schema's name.
pub(super) struct NodeStatements {
    report: String,
    remove: String,
    list: String,
    delete: String,
}

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
DELETE FROM {schema}.nodes WHERE last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000";

impl NodeStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [report, remove, list, delete] =
            [REPORT, REMOVE, LIST, DELETE].map(|text| schema.statement(text));
        Self { report, remove, list, delete }
    }

    /// Stores the status of a node.
    pub(super) async fn report(
        &self,
        client: &Client,
        status: &NodeStatus,
    ) -> Result<(), tokio_postgres::Error> {
        let (node, units) = (status.node.cast_signed(), status.units_held.cast_signed());
        let [started, recorded] =
            [status.started_at, status.usage_recorded_at].map(|at| at.millis().cast_signed());
        let parameters: [Parameter<'_>; 6] = [
            (&node, Type::INT8),
            (&status.name, Type::TEXT),
            (&status.version, Type::TEXT),
            (&started, Type::INT8),
            (&units, Type::INT8),
            (&recorded, Type::INT8),
        ];
        client.execute_typed(&self.report, &parameters).await.map(drop)
    }

    /// Removes a node.
    pub(super) async fn remove(&self, client: &Client, node: u64) -> Result<(), tokio_postgres::Error> {
        let node = node.cast_signed();
        let parameters: [Parameter<'_>; 1] = [(&node, Type::INT8)];
        client.execute_typed(&self.remove, &parameters).await.map(drop)
    }

    /// All nodes.
    pub(super) async fn list(&self, client: &Client) -> Result<NodeList, tokio_postgres::Error> {
        let mut list = NodeList::default();
        for row in client.query_typed(&self.list, &[]).await? {
            list.clock = Some(instant(row.try_get("at")?));
            list.nodes.extend(status(&row)?);
        }
        Ok(list)
    }

    /// Deletes nodes that ended without removing themselves.
    pub(super) async fn delete_outdated(
        &self,
        transaction: &Transaction<'_>,
    ) -> Result<u64, tokio_postgres::Error> {
        transaction.execute_typed(&self.delete, &[]).await
    }
}

fn status(row: &Row) -> Result<Option<NodeStatus>, tokio_postgres::Error> {
    let Some(node) = row.try_get::<_, Option<i64>>("node")? else { return Ok(None) };
    Ok(Some(NodeStatus {
        node: node.cast_unsigned(),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        started_at: instant(row.try_get("started_at")?),
        last_seen_at: instant(row.try_get("last_seen_at")?),
        units_held: row.try_get::<_, i64>("units_held")?.unsigned_abs(),
        usage_recorded_at: instant(row.try_get("usage_recorded_at")?),
    }))
}

fn instant(millis: i64) -> Wall {
    Wall::from_millis(u64::try_from(millis).unwrap_or(0))
}
