//! Deletes outdated records and merges usage and requests of closed days, in batches. Gateways skip each other's records.

use crate::daily_totals::{REQUESTS, USAGE};
use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::reports::daily_totals;
use crate::postgres::reports::status_store;

/// Number of ledger days kept for inspection, today included.
const DAYS_KEPT: i32 = 35;
/// Number of records of each table that are deleted in one transaction.
const AT_ONCE: i64 = 1_000;

const NODES: &str = "
DELETE FROM {schema}.ledger_nodes WHERE (day, application, node) IN (
    SELECT day, application, node FROM {schema}.ledger_nodes
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application, node LIMIT $2
    FOR UPDATE SKIP LOCKED)";

const DAYS: &str = "
DELETE FROM {schema}.ledger_days WHERE (day, application) IN (
    SELECT day, application FROM {schema}.ledger_days
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application LIMIT $2
    FOR UPDATE SKIP LOCKED)";

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

/// Links and sessions that expired before the current day.
const LINKS: &str = "
DELETE FROM {schema}.sign_in_links WHERE digest IN (
    SELECT digest FROM {schema}.sign_in_links
    WHERE expires_at < (SELECT (day - date '1970-01-01')::int8 * 86400000 FROM {schema}.calendar)
    ORDER BY digest LIMIT $1 FOR UPDATE SKIP LOCKED)";

const SESSIONS: &str = "
DELETE FROM {schema}.owner_sessions WHERE digest IN (
    SELECT digest FROM {schema}.owner_sessions
    WHERE expires_at < (SELECT (day - date '1970-01-01')::int8 * 86400000 FROM {schema}.calendar)
    ORDER BY digest LIMIT $1 FOR UPDATE SKIP LOCKED)";

/// Applications that were closed before the current day.
const CLOSED: &str = "
DELETE FROM {schema}.closed_applications WHERE (mailbox_digest, application) IN (
    SELECT mailbox_digest, application FROM {schema}.closed_applications
    WHERE day < (SELECT day FROM {schema}.calendar)
    ORDER BY mailbox_digest, application LIMIT $1 FOR UPDATE SKIP LOCKED)";

/// Deletes a batch in a transaction. Returns the number of changed records.
pub(crate) async fn delete(client: SchemaClient<'_>) -> SqlResult<u64> {
    let mut deleted = 0;
    for ledger in [NODES, DAYS] {
        deleted += client.execute(ledger, &[&DAYS_KEPT, &AT_ONCE]).await?;
    }
    for table in [MINUTES, DOCUMENTS, LINKS, SESSIONS, CLOSED] {
        deleted += client.execute(table, &[&AT_ONCE]).await?;
    }
    for ended in [REFRESHES, GATEWAYS] {
        deleted += client.execute(ended, &[]).await?;
    }
    Ok(deleted
        + status_store::delete_outdated(client, AT_ONCE).await?
        + daily_totals::merge(client, &USAGE, AT_ONCE).await?
        + daily_totals::merge(client, &REQUESTS, AT_ONCE).await?)
}
