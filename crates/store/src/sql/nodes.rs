//! Reports of gateways, for information only. A database stamps them with the server's clock. The single process that
//! uses a file keeps its report in memory.

use super::store::{Access::Read, Store};
use crate::{
    NodeList, NodeStatus, StoreResult,
    statements::{
        RowResult, SchemaClient,
        SqlField::{self, Number, Text, Time},
        SqlRow,
    },
};

/// The name of an operation, for error messages.
const REPORT: &str = "report this gateway";

const REPORT_NODE: &str = "
INSERT INTO {schema}.nodes (node, name, version, started_at, units_held, usage_recorded_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
ON CONFLICT (node) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
    units_held = excluded.units_held, usage_recorded_at = excluded.usage_recorded_at, last_seen_at = excluded.last_seen_at";

/// A database that lacks this commit was restored from a backup.
const SEEN: &str = "
UPDATE {schema}.calendar SET seen_at = greatest(seen_at + 1, (extract(epoch FROM clock_timestamp()) * 1000)::int8)
WHERE own_oid = tableoid
RETURNING restored_at, seen_at, (SELECT id::text FROM {schema}.site) AS data_set";

const REMOVE_NODE: &str = "DELETE FROM {schema}.nodes WHERE node = $1";

/// Returns the database time in every row. If there are no nodes, returns one row in which the node columns are null.
const LIST_NODES: &str = "
SELECT c.at, n.node, n.name, n.version, n.started_at, n.last_seen_at, n.units_held, n.usage_recorded_at
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at) c
LEFT JOIN {schema}.nodes n ON true
ORDER BY n.started_at, n.node";

impl Store {
    /// Stores the status of a node. A database sets `last_seen_at` from its clock.
    pub async fn report_node(&self, status: NodeStatus) -> StoreResult<()> {
        if let Some(file) = self.file() {
            *file.node.lock() = Some(status);
            return Ok(());
        }
        let values = [
            Number(status.node.cast_signed()),
            Text(&status.name),
            Text(&status.version),
            Time(status.started_at),
            Number(status.units_held.cast_signed()),
            Time(status.usage_recorded_at),
        ];
        self.report(REPORT_NODE, &values).await
    }

    /// Removes a node that stops.
    pub async fn remove_node(&self, node: u64) -> StoreResult<()> {
        if let Some(file) = self.file() {
            file.node.lock().take_if(|status| status.node == node);
            return Ok(());
        }
        let node = Number(node.cast_signed());
        self.report(REMOVE_NODE, &[node]).await
    }

    /// The known nodes. Nodes that have not been seen for a day may be missing.
    pub async fn nodes(&self) -> StoreResult<NodeList> {
        if let Some(file) = self.file() {
            let nodes = file.node.lock().iter().cloned().collect();
            return Ok(NodeList { nodes, clock: None });
        }
        self.run(Read, "read the gateways", async |tables| {
            let rows = tables
                .list(LIST_NODES, &[], |row: &SqlRow<'_>| {
                    Ok(Some((row.time("at")?, node_status(row)?)))
                })
                .await?;
            Ok(NodeList {
                clock: rows.first().map(|(clock, _)| *clock),
                nodes: rows.into_iter().filter_map(|(_, node)| node).collect(),
            })
        })
        .await
    }

    /// Runs a statement about this gateway, and writes a mark that identifies this state of the database.
    async fn report(&self, statement: &str, values: &[SqlField<'_>]) -> StoreResult<()> {
        let Some(database) = self.database() else {
            return Ok(());
        };
        database
            .connection
            .run(REPORT, async |client: SchemaClient<'_>| {
                client.execute(statement, values).await?;
                if let Some(seen) = client.query_opt(SEEN, &[]).await? {
                    database.check.reported(&seen).await?;
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
