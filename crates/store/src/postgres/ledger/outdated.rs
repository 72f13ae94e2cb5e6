//! Deletes outdated records that only this engine has, in batches. Gateways skip each other's records.

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::sql::outdated;

/// Number of pools and documents that are deleted in one transaction.
const AT_ONCE: i64 = 1_000;

/// Of the ledger, 35 days are kept for inspection, today included.
const OLD_DAY: &str = "day <= (SELECT day - 35 FROM {schema}.calendar)";
/// Pools that were not used for an hour are full, and all leases from them have ended.
const MINUTES: &str = "
WITH idle AS (
    SELECT application FROM {schema}.minute_pools
    WHERE used_at < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 3600000000
    ORDER BY application LIMIT $1 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.minute_pools p USING idle WHERE p.application = idle.application";

/// Documents that were neither claimed nor confirmed for a week. The number of a claim is at least its time.
const DOCUMENTS: &str = "
WITH outdated AS (
    SELECT scope, name FROM {schema}.documents
    WHERE greatest(claim, confirmed) < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
    ORDER BY scope, name LIMIT $1 FOR UPDATE SKIP LOCKED
), contents AS (
    DELETE FROM {schema}.document_contents c USING outdated o WHERE c.scope = o.scope AND c.name = o.name
)
DELETE FROM {schema}.documents d USING outdated o WHERE d.scope = o.scope AND d.name = o.name";

/// Refreshes of backends without documents.
const REFRESH: &str =
    "detected < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
        AND NOT EXISTS (SELECT FROM {schema}.documents d WHERE d.scope = backend_refreshes.scope)";

/// Nodes that were not seen for a day: they were killed.
const NODE: &str = "last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000";

/// Deletes a batch in a transaction. Returns the number of changed records.
pub(crate) async fn delete(client: SchemaClient<'_>) -> SqlResult<u64> {
    let mut deleted = 0;
    for together in [MINUTES, DOCUMENTS] {
        deleted += client.execute(together, &[&AT_ONCE]).await?;
    }
    for records in [
        ["ledger_nodes", "day, application, node", OLD_DAY],
        ["ledger_days", "day, application", OLD_DAY],
        ["backend_refreshes", "scope", REFRESH],
        ["nodes", "node", NODE],
    ] {
        deleted += outdated::delete_batch(client, records, &[]).await?;
    }
    Ok(deleted + outdated::delete(client).await?)
}
