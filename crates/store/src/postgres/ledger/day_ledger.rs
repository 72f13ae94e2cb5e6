//! The ledger: one transaction for many reports, in one round trip.
//!
//! The rules are those of `limits::day_ledger`, in SQL. The rows of the days are created and locked by statements of
//! their own: a single statement that waits for a lock decides on the rows as they were before the wait, and grants a
//! repeated report twice. Rows are locked in the order of their keys, so that gateways do not deadlock.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::postgres::ledger::minutes;
use crate::postgres::ledger::report_columns::ReportColumns;
use crate::sql::tables::SqlRow as _;
use crate::{LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome};
use scoregate_base::clock::Day;
use scoregate_base::limits::{NodeReport, NodeTotals};

/// Moves the calendar forward, never back: to the day of the server's clock, once the gateway accepts that day too. A
/// gateway follows the server's clock, but a step ahead only after a minute. With `$2` the server's clock is ignored.
const ADVANCE: &str = "
UPDATE {schema}.calendar c SET day = n.day
FROM (SELECT CASE WHEN $2 THEN $1::text::date
             ELSE least($1::text::date, (clock_timestamp() AT TIME ZONE 'UTC')::date) END AS day) n
WHERE c.day < n.day";

/// Creates missing rows of open days: today and tomorrow.
const OPEN: &str = "
INSERT INTO {schema}.ledger_days (day, application)
SELECT r.day, a.id FROM unnest($1::text[]::date[], $2::text[]) AS r (day, application)
JOIN {schema}.applications a ON a.id = r.application
JOIN {schema}.calendar c ON r.day IN (c.day, c.day + 1)
ORDER BY r.day, a.id
ON CONFLICT DO NOTHING";

const LOCK: &str = "
SELECT FROM {schema}.ledger_days
WHERE (day, application) IN (SELECT * FROM unnest($1::text[]::date[], $2::text[]))
ORDER BY day, application FOR UPDATE";

/// A report that assumes outdated terms (`$8` to `$10`) is granted nothing. Tables that were replaced by a dump while the
/// connection was open return no day, so the reply is an error.
const APPLY: &str = "
WITH report AS (
    SELECT * FROM unnest($2::text[]::date[], $3::text[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::text[], $9::int8[],
                         $10::int8[]) WITH ORDINALITY
        AS r (day, application, granted, returned, want, quota, tier, own_minute, own_day, position)
), checked AS (
    SELECT r.*, r.tier IS NOT NULL AND (r.tier, r.own_minute, r.own_day) IS DISTINCT FROM (a.tier, a.own_minute, a.own_day)
        AS is_outdated
    FROM report r JOIN {schema}.applications a ON a.id = r.application
), known AS (
    SELECT r.day, r.application, r.want, CASE WHEN is_outdated THEN 0 ELSE r.quota END AS quota, is_outdated,
           d.granted AS day_granted, greatest(coalesce(n.granted, 0) - coalesce(n.returned, 0), 0) AS held_before,
           greatest(r.granted, n.granted) AS granted, greatest(r.returned, n.returned) AS returned
    FROM checked r
    JOIN {schema}.calendar c ON r.day IN (c.day, c.day + 1)
    JOIN {schema}.ledger_days d ON (d.day, d.application) = (r.day, r.application)
    LEFT JOIN {schema}.ledger_nodes n ON (n.day, n.application, n.node) = (r.day, r.application, $1)
), totals AS (
    SELECT *, greatest(day_granted - held_before, 0) + greatest(granted - returned, 0) AS total FROM known
), decided AS (
    SELECT day, application, returned, is_outdated,
           granted + least(greatest(want - granted, 0), greatest(quota - total, 0)) AS granted,
           total + least(greatest(want - granted, 0), greatest(quota - total, 0)) AS total
    FROM totals
), node AS (
    INSERT INTO {schema}.ledger_nodes AS n (day, application, node, granted, returned, promised, released)
    SELECT day, application, $1, granted, returned, 0, 0 FROM decided WHERE granted <> 0
    ON CONFLICT (day, application, node) DO UPDATE SET granted = excluded.granted, returned = excluded.returned
    WHERE (n.granted, n.returned) <> (excluded.granted, excluded.returned)
), day AS (
    UPDATE {schema}.ledger_days d SET granted = decided.total
    FROM decided WHERE (d.day, d.application) = (decided.day, decided.application) AND d.granted <> decided.total
)
SELECT CASE WHEN c.own_oid = c.tableoid THEN c.day::text END AS today, r.day IN (c.day, c.day + 1) AS is_open, d.granted, d.returned, d.total,
       coalesce(d.is_outdated, false) AS is_outdated
FROM report r CROSS JOIN {schema}.calendar c
LEFT JOIN decided d ON (d.day, d.application) = (r.day, r.application)
ORDER BY r.position";

/// Applies reports of one node, at most one for each application and day. Without `minute_now`, minutes follow the
/// server's clock.
pub(crate) async fn exchange(
    client: SchemaClient<'_>,
    exchange: &LedgerExchange,
    ignores_clock: bool,
    minute_now: Option<i64>,
) -> SqlResult<LedgerExchangeReply> {
    let columns = ReportColumns::new(
        exchange
            .reports
            .iter()
            .map(|report| (report, numbers(report))),
    );
    let days: Vec<String> = exchange
        .reports
        .iter()
        .map(|report| report.day.to_string())
        .collect();
    let today = exchange.today.to_string();
    let node = exchange.node.cast_signed();
    let advance: [&dyn Parameter; 2] = [&today, &ignores_clock];
    let rows: [&dyn Parameter; 2] = [&days, &columns.applications];
    let mut reports: Vec<&dyn Parameter> = vec![&node, &days, &columns.applications];
    reports.extend(columns.numbers().chain(columns.terms()));
    // Polled together, so all are sent before the first answer.
    let (begun, advanced, opened, locked, applied, minutes, committed) = tokio::join!(
        client.batch_execute("BEGIN"),
        client.query(ADVANCE, &advance),
        client.query(OPEN, &rows),
        client.query(LOCK, &rows),
        client.query(APPLY, &reports),
        minutes::apply(client, exchange.node, &exchange.reports, minute_now),
        client.batch_execute("COMMIT"),
    );
    begun?;
    advanced?;
    opened?;
    locked?;
    let applied = applied?;
    let minutes = minutes?;
    committed?;
    Ok(LedgerExchangeReply {
        minutes,
        ..reply(&applied)?
    })
}

fn reply(rows: &[Row]) -> SqlResult<LedgerExchangeReply> {
    let mut reply = LedgerExchangeReply::default();
    for row in rows {
        reply.today = Day::parse(row.try_get("today")?).unwrap_or_default();
        reply.outcomes.push(outcome(row)?);
    }
    Ok(reply)
}

fn outcome(row: &Row) -> SqlResult<ReportOutcome> {
    if !row.try_get::<_, bool>("is_open")? {
        return Ok(ReportOutcome::Closed);
    }
    let Some(total) = row.try_get::<_, Option<i64>>("total")? else {
        return Ok(ReportOutcome::UnknownApplication);
    };
    let node = NodeTotals {
        granted: row.small_number("granted")?,
        returned: row.small_number("returned")?,
    };
    let granted = u64::try_from(total).unwrap_or(0);
    Ok(ReportOutcome::Applied {
        node,
        granted,
        has_outdated_terms: row.try_get("is_outdated")?,
    })
}

/// The totals that a report knows, requests and is limited by.
fn numbers(report: &LedgerReport) -> [i64; 4] {
    let NodeReport {
        known: NodeTotals { granted, returned },
        granted: want,
        quota,
    } = report.totals;
    [granted, returned, want, quota].map(i64::from)
}
