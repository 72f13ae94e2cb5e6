//! Deletes outdated records in batches, and merges requests of closed days.

use super::request_totals;
use crate::{
    evidence::{HOUR_DAYS, KEY_DAYS},
    notices::NOTICE_DAYS,
    requests::REQUEST_DAYS_KEPT,
    statements::{
        Done,
        SqlField::{Number, Text, Time},
        Tables,
    },
    status::first_kept,
};
use scoregate_base::{clock::Day, evidence::EVIDENCE_DAYS_KEPT};

const DELETE: &str = "
DELETE FROM {schema}.{table} WHERE ({key}) IN (
    SELECT {key} FROM {schema}.{table} WHERE {is_outdated} ORDER BY {key} LIMIT {at_once})";
/// The very first minute is kept: it shows that the service has a history.
const OLD_MINUTE: &str =
    "minute < $1 AND minute > (SELECT min(minute) FROM {schema}.status_minutes)";

/// Number of ledger days, including today, that are kept for inspection and for monthly sums.
const LEDGER_DAYS_KEPT: u32 = 35;
/// Minimum number of days for which requests with an idempotency key are kept. Payment providers repeat messages for
/// three days.
const IDEMPOTENCY_DAYS: u32 = 4;

/// Statements for tables that only a database has. Concurrent gateways skip each other's records. Each statement
/// changes at most 1,000 records of its main table.
const ONLY_IN_DATABASE: [&str; 4] = [POOLS, DOCUMENTS, REFRESHES, NODES];

/// Pools that have not been used for an hour are full, and all leases from them have expired.
const POOLS: &str = "
WITH idle AS (
    SELECT application FROM {schema}.minute_pools
    WHERE used_at < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 3600000000
    ORDER BY application LIMIT 1000 FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.minute_pools p USING idle WHERE p.application = idle.application";

/// Documents that have been neither claimed nor confirmed for a week. A claim's number is at least the time of the claim in
/// microseconds.
const DOCUMENTS: &str = "
WITH outdated AS (
    SELECT scope, name FROM {schema}.documents
    WHERE greatest(claim, confirmed) < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
    ORDER BY scope, name LIMIT 1000 FOR UPDATE SKIP LOCKED
), contents AS (
    DELETE FROM {schema}.document_contents c USING outdated o WHERE c.scope = o.scope AND c.name = o.name
)
DELETE FROM {schema}.documents d USING outdated o WHERE d.scope = o.scope AND d.name = o.name";

/// Old refreshes of backends that have no documents.
const REFRESHES: &str = "
DELETE FROM {schema}.backend_refreshes WHERE scope IN (
    SELECT scope FROM {schema}.backend_refreshes r
    WHERE detected < (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - 604800000000
        AND NOT EXISTS (SELECT FROM {schema}.documents d WHERE d.scope = r.scope)
    ORDER BY scope LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Nodes that have not been seen for a day: they must have been killed.
const NODES: &str = "
DELETE FROM {schema}.nodes WHERE node IN (
    SELECT node FROM {schema}.nodes WHERE last_seen_at < (extract(epoch FROM clock_timestamp()) * 1000)::int8 - 86400000
    ORDER BY node LIMIT 1000 FOR UPDATE SKIP LOCKED)";

/// Deletes links and sessions that expired, and applications that were closed, before the ledger's current day. Also deletes old
/// ledger days, notices, evidence and status-page minutes. Returns the number of changed records.
pub async fn delete(tables: Tables<'_>) -> Done<u64> {
    let mut deleted = 0;
    if let Tables::Database(_) = tables {
        for statement in ONLY_IN_DATABASE {
            deleted += tables.run(statement, &[]).await?;
        }
    }
    let Some(today) = tables.today().await? else {
        return Ok(deleted);
    };
    deleted += delete_before(tables, today).await?;
    deleted += delete_requests(tables, today).await?;
    // The merge is last, because changes wait for it.
    Ok(deleted + request_totals::merge(tables).await?)
}

/// Deletes records that are outdated on a day.
async fn delete_before(tables: Tables<'_>, today: Day) -> Done<u64> {
    let mut deleted = 0;
    let date = today.to_string();
    let numbers = [
        day_before(today, EVIDENCE_DAYS_KEPT).number(),
        day_before(today, HOUR_DAYS).number() * 24,
        day_before(today, KEY_DAYS).number(),
    ];
    let [days, hours, keys] = numbers.map(|number| Number(number.into()));
    let notices = Time(day_before(today, NOTICE_DAYS).start());
    let ledger = day_before(today, LEDGER_DAYS_KEPT - 1).to_string();
    for (table, key, is_outdated, until) in [
        (
            "status_minutes",
            "minute",
            OLD_MINUTE,
            Number(first_kept(Some(today)).cast_signed()),
        ),
        (
            "sign_in_links",
            "digest",
            "expires_at < $1",
            Time(today.start()),
        ),
        (
            "owner_sessions",
            "digest",
            "expires_at < $1",
            Time(today.start()),
        ),
        (
            "closed_applications",
            "mailbox_digest, application",
            "day < $1::text::date",
            Text(&date),
        ),
        (
            "ledger_windows",
            "scope, kind, starts, ends",
            "ends < $1::text::date",
            Text(&date),
        ),
        (
            "ledger_nodes",
            "day, application, node",
            "day < $1::text::date",
            Text(&ledger),
        ),
        (
            "ledger_days",
            "day, application",
            "day < $1::text::date",
            Text(&ledger),
        ),
        ("notices", "id", "at < $1", notices),
        ("evidence_days", "day, application", "day < $1", days),
        (
            "evidence_hours",
            "hour, application, node",
            "hour < $1",
            hours,
        ),
        ("evidence_keys", "day", "day < $1", keys),
    ] {
        let delete = statement([table, key, is_outdated]);
        deleted += tables.run(&delete, &[until]).await?;
    }
    Ok(deleted)
}

/// Deletes outdated records of requests.
async fn delete_requests(tables: Tables<'_>, today: Day) -> Done<u64> {
    let usage = day_before(today, REQUEST_DAYS_KEPT - 1).to_string();
    let terms = statement(["usage_terms", "day, application", "day < $1::text::date"]);
    let deleted = tables.run(&terms, &[Text(&usage)]).await?;
    let keys = statement(["idempotency_keys", "digest", "at < $1"]);
    let until = Time(day_before(today, IDEMPOTENCY_DAYS).start());
    Ok(deleted + tables.run(&keys, &[until]).await?)
}

fn day_before(today: Day, days: u32) -> Day {
    Day::from_number(today.number().saturating_sub(days))
}

/// The statement that deletes a batch of outdated records from a table with this key.
fn statement([table, key, is_outdated]: [&str; 3]) -> String {
    DELETE
        .replace("{is_outdated}", is_outdated)
        .replace("{table}", table)
        .replace("{key}", key)
}
