//! Minute limits that gateways share: the part of an exchange that moves shares between gateways and pools.
//!
//! The rules are those of `limits::minute_pool`, in SQL. The pool's row is locked by a statement of its own, and every
//! change of a share is made under that lock.

use crate::LedgerReport;
use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::ledger::report_columns::{IS_OUTDATED, ReportColumns};
use crate::sql::rows::{RowResult, SqlRow};
use crate::sql::tables::SqlField::{Number, Numbers, OptionalNumber, Texts};
use crate::sql::tables::SqlTables as _;
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{MinuteGrant, MinuteReport};

/// Creates missing pools, which are full.
const OPEN: &str = "
INSERT INTO {schema}.minute_pools (application, quota, tokens, as_of)
SELECT a.id, r.quota, r.quota * 1000000, 0 FROM unnest($1::text[], $2::int8[]) AS r (application, quota)
JOIN {schema}.applications a ON a.id = r.application
ORDER BY a.id
ON CONFLICT DO NOTHING";

const LOCK: &str = "
SELECT FROM {schema}.minute_pools WHERE application = ANY($1::text[]) ORDER BY application FOR UPDATE";

/// Without `$10` the server's clock counts. A report that assumes outdated terms (`$11`) gets no capacity.
const APPLY: &str = "
WITH moment AS MATERIALIZED (
    SELECT coalesce($10::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), report AS (
    SELECT r.*, {is_outdated} AS is_outdated
    FROM unnest($2::text[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int8[], $9::int8[], $11::text[])
        WITH ORDINALITY
        AS r (application, round, kept, returned, wanted, quota, lifetime, recalls, terms, position)
    LEFT JOIN {schema}.applications a ON a.id = r.application
), share AS (
    SELECT s.application, s.node, s.round, s.capacity, s.ends_at <= m.now AS is_over,
           CASE WHEN s.ends_at <= m.now THEN s.capacity * least(m.now - s.ends_at, 60000000) / 60 ELSE 0 END AS gained
    FROM report r JOIN {schema}.minute_shares s ON s.application = r.application CROSS JOIN moment m
), held AS (
    SELECT application, sum(capacity)::int8 AS capacity, sum(gained)::int8 AS gained,
           coalesce(sum(capacity) FILTER (WHERE node <> $1 AND NOT is_over), 0)::int8 AS elsewhere
    FROM share GROUP BY application
), known AS (
    SELECT r.application, r.round, r.returned, r.lifetime, r.recalls, r.position,
           CASE WHEN r.is_outdated THEN 0 ELSE r.wanted END AS wanted,
           CASE WHEN r.is_outdated THEN p.quota ELSE r.quota END AS quota, o.node IS NOT NULL AS is_kept, least(r.kept, coalesce(o.capacity, 0)) AS kept_capacity,
           coalesce(o.capacity, 0) - least(r.kept, coalesce(o.capacity, 0)) AS freed_capacity,
           p.quota AS quota_before, p.tokens, greatest(p.quota - coalesce(h.capacity, 0), 0) AS capacity_before,
           coalesce(h.gained, 0) AS gained, coalesce(h.elsewhere, 0) AS elsewhere,
           least(greatest(m.now - p.as_of, 0), 60000000) AS elapsed, greatest(m.now, p.as_of) AS as_of
    FROM report r JOIN {schema}.minute_pools p ON p.application = r.application CROSS JOIN moment m
    LEFT JOIN held h ON h.application = r.application
    LEFT JOIN share o ON o.application = r.application AND o.node = $1 AND NOT o.is_over
    WHERE o.round IS NULL OR o.round < r.round
), refilled AS (
    SELECT *, greatest(quota - elsewhere - kept_capacity, 0) AS free,
           greatest(least(tokens + capacity_before * elapsed / 60, capacity_before * 1000000) + gained
                    + (quota - quota_before) * 1000000, -(elsewhere + kept_capacity + freed_capacity) * 1000000)
               + least(returned, freed_capacity * 1000000) AS filled
    FROM known
), pooled AS (
    SELECT *, least(greatest(wanted - kept_capacity, 0), free) AS more,
           greatest(least(filled, free * 1000000), -elsewhere * 1000000) AS content
    FROM refilled
), decided AS (
    SELECT *, kept_capacity + more AS capacity, free - more AS pool_capacity,
           greatest(least(content, more * 1000000), 0) AS granted,
           least(content - greatest(least(content, more * 1000000), 0), (free - more) * 1000000) AS pool_tokens
    FROM pooled
), pool AS (
    UPDATE {schema}.minute_pools p SET quota = d.quota, tokens = d.pool_tokens, as_of = d.as_of
    FROM decided d WHERE p.application = d.application
), ended AS (
    DELETE FROM {schema}.minute_shares s USING decided d, moment m
    WHERE s.application = d.application AND s.node <> $1 AND s.ends_at <= m.now
), recalled AS (
    UPDATE {schema}.minute_shares s SET is_recalled = true FROM decided d, moment m
    WHERE s.application = d.application AND s.node <> $1 AND s.ends_at > m.now AND s.capacity > 0 AND NOT s.is_recalled
      AND d.recalls = 1 AND d.granted < 1000000
), own AS (
    INSERT INTO {schema}.minute_shares AS s (application, node, round, capacity, ends_at)
    SELECT d.application, $1, d.round, d.capacity, m.now + d.lifetime FROM decided d CROSS JOIN moment m
    ON CONFLICT (application, node) DO UPDATE SET
        round = excluded.round, capacity = excluded.capacity, ends_at = excluded.ends_at, is_recalled = false
)
SELECT coalesce(d.round, o.round) AS round, coalesce(d.is_kept, false) AS is_kept, coalesce(d.capacity, 0) AS capacity,
       coalesce(d.granted, 0) AS granted, coalesce(d.pool_capacity, 0) AS pool_capacity,
       coalesce(d.pool_tokens, 0) AS pool_tokens
FROM report r LEFT JOIN decided d ON d.position = r.position
LEFT JOIN share o ON o.application = r.application AND o.node = $1 AND NOT o.is_over
ORDER BY r.position";

const RECALLED: &str = "
SELECT application FROM {schema}.minute_shares
WHERE node = $1 AND is_recalled AND capacity > 0 AND ends_at > extract(epoch FROM clock_timestamp()) * 1000000";

/// Applications of which other nodes need the shares that this node has.
pub(crate) async fn recalled(client: SchemaClient<'_>, node: u64) -> SqlResult<Vec<ApplicationId>> {
    let id = |row: &SqlRow<'_>| Ok(row.text("application")?.parse().ok());
    client
        .list(RECALLED, &[Number(node.cast_signed())], id)
        .await
}

/// Applies the reports of one node about minutes, at most one for each application, within the transaction of the
/// exchange. Without `now` (in microseconds) the server's clock counts.
pub(crate) async fn apply(
    client: SchemaClient<'_>,
    node: u64,
    reports: &[LedgerReport],
    now: Option<i64>,
) -> SqlResult<Vec<Option<MinuteGrant>>> {
    let columns = ReportColumns::new(
        reports
            .iter()
            .filter_map(|report| Some((report, numbers(report.minute?)))),
    );
    if columns.applications.is_empty() {
        return Ok(Vec::new());
    }
    let applications = Texts(&columns.applications);
    let mut values = vec![Number(node.cast_signed()), applications];
    values.extend(columns.numbers.iter().map(|column| Numbers(column)));
    values.push(OptionalNumber(now));
    values.push(columns.terms());
    let [_, _, _, _, quota, _, _] = &columns.numbers;
    let pools = [applications, Numbers(quota)];
    let rows = [applications];
    let apply = APPLY.replace("{is_outdated}", IS_OUTDATED);
    // Polled together, so all are sent before the first answer.
    let (opened, locked, applied) = tokio::join!(
        client.query(OPEN, &pools),
        client.query(LOCK, &rows),
        client.query(&apply, &values)
    );
    opened?;
    locked?;
    let mut grants = applied?.into_iter();
    // Reports without a minute have no row.
    reports
        .iter()
        .map(|report| {
            report
                .minute
                .and_then(|_| grants.next())
                .map_or(Ok(None), |row| Ok(grant(&SqlRow::new(&row))?))
        })
        .collect()
}

/// The grant of a row. `None` if the application does not exist.
fn grant(row: &SqlRow<'_>) -> RowResult<Option<MinuteGrant>> {
    if row.optional_number("round")?.is_none() {
        return Ok(None);
    }
    Ok(Some(MinuteGrant {
        round: row.small_number("round")?,
        is_kept: row.flag("is_kept")?,
        capacity: row.small_number("capacity")?,
        tokens: row.signed("granted")?,
        pool_capacity: row.small_number("pool_capacity")?,
        pool_tokens: row.signed("pool_tokens")?,
    }))
}

fn numbers(minute: MinuteReport) -> [i64; 7] {
    let MinuteReport {
        round,
        kept,
        returned,
        wanted,
        limit,
        lifetime,
        recalls,
    } = minute;
    let [round, kept, wanted, limit, lifetime] =
        [round, kept, wanted, limit, lifetime].map(i64::from);
    [
        round,
        kept,
        returned,
        wanted,
        limit,
        lifetime,
        i64::from(recalls),
    ]
}
