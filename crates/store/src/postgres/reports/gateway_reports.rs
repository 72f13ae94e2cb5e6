//! Reports of gateways to the database, for information. Times are those of the server's clock.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::tables::SqlRow as _;
use crate::stored::millis;
use crate::{NodeList, NodeRegistry, NodeStatus, StoreFuture};

/// An operation named in error messages.
const REPORT: &str = "report this gateway";

const REPORT_NODE: &str = "
INSERT INTO {schema}.nodes (node, name, version, started_at, units_held, usage_recorded_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
    units_held = excluded.units_held, usage_recorded_at = excluded.usage_recorded_at, last_seen_at = excluded.last_seen_at";

const REMOVE_NODE: &str = "DELETE FROM {schema}.nodes WHERE node = $1";

/// A row without a node if there is none, for the clock.
const LIST_NODES: &str = "
SELECT c.at, n.node, n.name, n.version, n.started_at, n.last_seen_at, n.units_held, n.usage_recorded_at
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) c
LEFT JOIN {schema}.nodes n ON true
ORDER BY n.started_at, n.node";

impl NodeRegistry for PostgresStore {
    fn report_node(&self, status: NodeStatus) -> StoreFuture<'_, ()> {
        Box::pin(self.connection.run(REPORT, async move |client| {
            let NodeStatus {
                node,
                name,
                version,
                started_at,
                units_held,
                usage_recorded_at,
                ..
            } = &status;
            let [node, units] = [node, units_held].map(|number| number.cast_signed());
            let [started, recorded] = [*started_at, *usage_recorded_at].map(millis);
            let values: [&dyn Parameter; 6] = [&node, name, version, &started, &units, &recorded];
            client.execute(REPORT_NODE, &values).await.map(drop)
        }))
    }

    fn remove_node(&self, node: u64) -> StoreFuture<'_, ()> {
        Box::pin(self.connection.run(REPORT, async move |client| {
            client
                .execute(REMOVE_NODE, &[&node.cast_signed()])
                .await
                .map(drop)
        }))
    }

    fn nodes(&self) -> StoreFuture<'_, NodeList> {
        Box::pin(self.connection.run("read the gateways", async |client| {
            let mut list = NodeList::default();
            for row in client.query(LIST_NODES, &[]).await? {
                list.clock = Some(row.time("at")?);
                list.nodes.extend(node_status(&row)?);
            }
            Ok(list)
        }))
    }
}

fn node_status(row: &Row) -> SqlResult<Option<NodeStatus>> {
    let Some(node) = row.try_get::<_, Option<i64>>("node")? else {
        return Ok(None);
    };
    Ok(Some(NodeStatus {
        node: node.cast_unsigned(),
        name: row.try_get("name")?,
        version: row.try_get("version")?,
        started_at: row.time("started_at")?,
        last_seen_at: row.time("last_seen_at")?,
        units_held: row.number("units_held")?,
        usage_recorded_at: row.time("usage_recorded_at")?,
    }))
}
