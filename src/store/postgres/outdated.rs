//! Deletes outdated records and merges usage and requests of closed days, in batches, on one gateway at a time.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::connection::{Parameter, SchemaName};
use super::nodes::NodeStatements;
use super::requests::RequestStatements;
use super::status::StatusStatements;
use super::usage::UsageStatements;

/// Number of ledger days kept for inspection, today included.
const DAYS_KEPT: i32 = 35;
/// Number of records of each table that are deleted in one transaction.
const AT_ONCE: i64 = 1_000;

/// The statements, with the schema's name.
pub(super) struct OutdatedRecords {
    lock_name: String,
    nodes: String,
    days: String,
    minutes: String,
    documents: String,
    refreshes: String,
    links: String,
    sessions: String,
    closed: String,
}

/// A lock of the transaction: it also works behind a pooler.
const LOCK: &str = "SELECT pg_try_advisory_xact_lock(hashtext($1))";

const NODES: &str = "
DELETE FROM {schema}.ledger_nodes WHERE (day, application, node) IN (
    SELECT day, application, node FROM {schema}.ledger_nodes
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application, node LIMIT $2)";

const DAYS: &str = "
DELETE FROM {schema}.ledger_days WHERE (day, application) IN (
    SELECT day, application FROM {schema}.ledger_days
    WHERE day <= (SELECT day - $1::int4 FROM {schema}.calendar) ORDER BY day, application LIMIT $2)";

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
DELETE FROM {schema}.backend_refreshes r
WHERE detected < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
    AND NOT EXISTS (SELECT FROM {schema}.documents d WHERE d.scope = r.scope)";

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

impl OutdatedRecords {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [nodes, days, minutes, documents, refreshes, links, sessions, closed] =
            [NODES, DAYS, MINUTES, DOCUMENTS, REFRESHES, LINKS, SESSIONS, CLOSED]
                .map(|text| schema.statement(text));
        let lock_name = schema.statement("{schema} outdated records");
        Self { lock_name, nodes, days, minutes, documents, refreshes, links, sessions, closed }
    }

    /// Deletes a batch, unless another gateway does. Returns the number of changed records.
    pub(super) async fn delete(
        &self,
        client: &mut Client,
        (usage, requests): (&UsageStatements, &RequestStatements),
        nodes: &NodeStatements,
        status: &StatusStatements,
    ) -> Result<u64, tokio_postgres::Error> {
        let transaction = client.transaction().await?;
        let lock: [Parameter<'_>; 1] = [(&self.lock_name, Type::TEXT)];
        let is_alone: bool = transaction.query_typed_one(LOCK, &lock).await?.try_get(0)?;
        if !is_alone {
            return Ok(0);
        }
        let days: [Parameter<'_>; 2] = [(&DAYS_KEPT, Type::INT4), (&AT_ONCE, Type::INT8)];
        let batch: [Parameter<'_>; 1] = [(&AT_ONCE, Type::INT8)];
        let deleted = transaction.execute_typed(&self.nodes, &days).await?
            + transaction.execute_typed(&self.days, &days).await?
            + transaction.execute_typed(&self.minutes, &batch).await?
            + transaction.execute_typed(&self.documents, &batch).await?
            + transaction.execute_typed(&self.refreshes, &[]).await?
            + transaction.execute_typed(&self.links, &batch).await?
            + transaction.execute_typed(&self.sessions, &batch).await?
            + transaction.execute_typed(&self.closed, &batch).await?
            + nodes.delete_outdated(&transaction).await?
            + status.delete_outdated(&transaction, AT_ONCE).await?
            + usage.merge(&transaction, AT_ONCE).await?
            + requests.merge(&transaction, AT_ONCE).await?;
        transaction.commit().await?;
        Ok(deleted)
    }
}
