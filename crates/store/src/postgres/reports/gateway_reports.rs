//! Reports of gateways to the database, for information. Times are those of the server's clock.

use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::rows::{RowResult, SqlRow};
use crate::sql::tables::SqlField::{self, Number, Text, Time};
use crate::{NodeList, NodeRegistry, NodeStatus, StoreFuture, StoreResult};

/// An operation named in error messages.
const REPORT: &str = "report this gateway";

const REPORT_NODE: &str = "
INSERT INTO {schema}.nodes (node, name, version, started_at, units_held, usage_recorded_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
    units_held = excluded.units_held, usage_recorded_at = excluded.usage_recorded_at, last_seen_at = excluded.last_seen_at";

/// The database that lacks this commit was restored.
const SEEN: &str = "
UPDATE {schema}.calendar SET seen_at = greatest(seen_at + 1, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
WHERE own_oid = tableoid
RETURNING restored_at, seen_at, (SELECT id::text FROM {schema}.site) AS data_set";

const REMOVE_NODE: &str = "DELETE FROM {schema}.nodes WHERE node = $1";

/// A row without a node if there is none, for the clock.
const LIST_NODES: &str = "
SELECT c.at, n.node, n.name, n.version, n.started_at, n.last_seen_at, n.units_held, n.usage_recorded_at
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) c
LEFT JOIN {schema}.nodes n ON true
ORDER BY n.started_at, n.node";

impl NodeRegistry for PostgresStore {
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let NodeStatus {
                node,
                name,
                version,
                started_at,
                units_held,
                usage_recorded_at,
                ..
            } = &status;
            let values = [
                Number(node.cast_signed()),
                Text(name),
                Text(version),
                Time(*started_at),
                Number(units_held.cast_signed()),
                Time(*usage_recorded_at),
            ];
            self.report(REPORT_NODE, &values).await
        })
    }

    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.report(REMOVE_NODE, &[Number(node.cast_signed())])
                .await
        })
    }

    fn nodes(&self) -> StoreFuture<'_, NodeList> {
        Box::pin(self.connection.run("read the gateways", async |client| {
            let mut list = NodeList::default();
            for row in client.query(LIST_NODES, &[]).await? {
                let row = SqlRow::new(&row);
                list.clock = Some(row.time("at")?);
                list.nodes.extend(node_status(&row)?);
            }
            Ok(list)
        }))
    }
}

impl PostgresStore {
    /// Runs a statement about this gateway, and leaves a mark by which it recognizes the database.
    async fn report(&self, statement: &str, values: &[SqlField<'_>]) -> StoreResult<()> {
        self.connection
            .run(REPORT, async |client: SchemaClient<'_>| {
                client.execute(statement, values).await?;
                if let Some(seen) = client.query_opt(SEEN, &[]).await? {
                    self.check.reported(&seen).await?;
                }
                Ok(())
            })
            .await
    }
}

fn node_status(row: &SqlRow<'_>) -> RowResult<Option<NodeStatus>> {
    let Some(node) = row.optional_signed("node")? else {
        return Ok(None);
    };
    Ok(Some(NodeStatus {
        node: node.cast_unsigned(),
        name: row.text("name")?,
        version: row.text("version")?,
        started_at: row.time("started_at")?,
        last_seen_at: row.time("last_seen_at")?,
        units_held: row.number("units_held")?,
        usage_recorded_at: row.time("usage_recorded_at")?,
    }))
}
