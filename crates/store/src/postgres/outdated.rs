//! Statements that delete a batch of outdated records that only this engine has. Gateways skip each other's records. The others
//! are in `sql::outdated`.

/// Each changes at most 1,000 records of its main table.
pub(super) const OUTDATED: &[&str] = &[MINUTES, DOCUMENTS, REFRESHES, NODES];

/// Pools that were not used for an hour are full, and all leases from them have ended.
const MINUTES: &str = "
WITH idle AS (
    SELECT application FROM {schema}.minute_pools
    WHERE used_at < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 3600000000
    ORDER BY application LIMIT 1000 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.minute_pools p USING idle WHERE p.application = idle.application";

/// Documents that were neither claimed nor confirmed for a week. The number of a claim is at least its time.
const DOCUMENTS: &str = "
WITH outdated AS (
    SELECT scope, name FROM {schema}.documents
    WHERE greatest(claim, confirmed) < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
    ORDER BY scope, name LIMIT 1000 FOR UPDATE SKIP LOCKED
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
    ORDER BY scope LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Nodes that were not seen for a day: they were killed.
const NODES: &str = "
DELETE FROM {schema}.nodes WHERE node IN (
    SELECT node FROM {schema}.nodes WHERE last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000
    ORDER BY node LIMIT 1000 FOR UPDATE SKIP LOCKED)";
