//! Deletes outdated records and merges usage and requests of closed days, in batches. Gateways skip each other's records.

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::reports::daily_totals;
use crate::postgres::reports::status_store;
use crate::sql::daily_totals::{REQUESTS, USAGE};

/// Number of records of each table that are deleted in one transaction.
const AT_ONCE: i64 = 1_000;

const DELETE: &str = "
DELETE FROM {schema}.{table} WHERE ({key}) IN (
    SELECT {key} FROM {schema}.{table} WHERE {is_outdated} ORDER BY {key} LIMIT $1 FOR UPDATE SKIP LOCKED)";
/// Tables, their keys, and the condition of outdated records.
const TABLES: [(&str, &str, &str); 9] = [
    ("ledger_nodes", "day, application, node", OLD_DAY),
    ("ledger_days", "day, application", OLD_DAY),
    ("sign_in_links", "digest", EXPIRED),
    ("owner_sessions", "digest", EXPIRED),
    ("closed_applications", "mailbox_digest, application", "day < (SELECT day FROM {schema}.calendar)"),
    ("notices", "id", "at < (SELECT (day - 40 - date '1970-01-01')::int8 * 86400000 FROM {schema}.calendar)"),
    (
        "evidence_days",
        "day, application",
        "day < (SELECT day - 40 - date '1970-01-01' FROM {schema}.calendar)",
    ),
    (
        "evidence_hours",
        "hour, application, node",
        "hour < (SELECT (day - 3 - date '1970-01-01')::int8 * 24 FROM {schema}.calendar)",
    ),
    ("evidence_keys", "day", "day < (SELECT day - 2 - date '1970-01-01' FROM {schema}.calendar)"),
];
/// Of the ledger, 35 days are kept for inspection, today included.
const OLD_DAY: &str = "day <= (SELECT day - 35 FROM {schema}.calendar)";
/// Before the current day.
const EXPIRED: &str =
    "expires_at < (SELECT (day - date '1970-01-01')::int8 * 86400000 FROM {schema}.calendar)";
/// Pools that were not used for an hour are full, and all shares of them have ended.
const MINUTES: &str = "
WITH idle AS (
    SELECT application FROM {schema}.minute_pools
    WHERE as_of < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 3600000000
    ORDER BY application LIMIT $1 FOR UPDATE SKIP LOCKED
), ended AS (
    DELETE FROM {schema}.minute_shares s USING idle WHERE s.application = idle.application
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
const REFRESHES: &str = "
DELETE FROM {schema}.backend_refreshes WHERE scope IN (
    SELECT scope FROM {schema}.backend_refreshes r
    WHERE detected < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
        AND NOT EXISTS (SELECT FROM {schema}.documents d WHERE d.scope = r.scope)
    ORDER BY scope FOR UPDATE SKIP LOCKED)";

/// Nodes that were not seen for a day: they were killed.
const GATEWAYS: &str = "
DELETE FROM {schema}.nodes WHERE node IN (
    SELECT node FROM {schema}.nodes
    WHERE last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000 ORDER BY node FOR UPDATE SKIP LOCKED)";

/// Deletes a batch in a transaction. Returns the number of changed records.
pub(crate) async fn delete(client: SchemaClient<'_>) -> SqlResult<u64> {
    let mut deleted = 0;
    for (table, key, is_outdated) in TABLES {
        let delete = DELETE.replace("{table}", table).replace("{key}", key);
        deleted += client.execute(&delete.replace("{is_outdated}", is_outdated), &[&AT_ONCE]).await?;
    }
    for together in [MINUTES, DOCUMENTS] {
        deleted += client.execute(together, &[&AT_ONCE]).await?;
    }
    for ended in [REFRESHES, GATEWAYS] {
        deleted += client.execute(ended, &[]).await?;
    }
    Ok(deleted
        + status_store::delete_outdated(client, AT_ONCE).await?
        + daily_totals::merge(client, &USAGE, AT_ONCE).await?
        + daily_totals::merge(client, &REQUESTS, AT_ONCE).await?)
}
