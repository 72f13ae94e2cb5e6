//! The ledger: one transaction for many reports. One round trip locks and reads all rows. The rules of
//! `limits::day_ledger` are applied here. A second round trip writes the changed rows and commits.
//!
//! Rows are locked in a fixed order, so that gateways do not deadlock: windows of several days, then days, each ordered
//! by key. Missing rows are created first, because rows that do not exist cannot be locked.

use crate::{
    LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome,
    postgres::ledger::{
        minutes::{self, LockedPools},
        report_columns::{IS_OUTDATED, ReportColumns},
        windows,
    },
    statements::{
        Done, SchemaClient,
        SqlField::{Flag, Number, Numbers, Text, Texts},
        SqlRow,
    },
    window_rows::{ReportReply, WindowRows},
};
use scoregate_base::{clock::Day, limits::NodeTotals};
use tokio_postgres::Row;

/// Moves the calendar forward, never back: to the day of the server's clock, once the gateway accepts that day too. A
/// gateway follows the server's clock, but accepts a forward step only after a minute. With `$2`, the server's clock is
/// ignored.
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

/// A separate statement, because a statement that waits for a lock reads other rows as they were before the wait. If a
/// dump replaced the tables while the connection was open, `today` is null and the reply is an error.
const READ: &str = "
SELECT CASE WHEN c.own_oid = c.tableoid THEN c.day::text END AS today, a.id IS NOT NULL AS is_known, o.owner, d.granted AS total,
       coalesce(n.granted, 0) AS granted, coalesce(n.returned, 0) AS returned,
       {is_outdated} AS is_outdated
FROM unnest($2::text[]::date[], $3::text[], $4::text[]) WITH ORDINALITY AS r (day, application, terms, position)
CROSS JOIN {schema}.calendar c
LEFT JOIN {schema}.applications a ON a.id = r.application
LEFT JOIN {schema}.owned_applications o ON o.application = r.application
LEFT JOIN {schema}.ledger_days d ON (d.day, d.application) = (r.day, r.application)
LEFT JOIN {schema}.ledger_nodes n ON (n.day, n.application, n.node) = (r.day, r.application, $1)
ORDER BY r.position";

const WRITE: &str = "
WITH changed AS (
    SELECT * FROM unnest($2::text[]::date[], $3::text[], $4::int8[], $5::int8[], $6::int8[])
        AS r (day, application, total, granted, returned)
), node AS (
    INSERT INTO {schema}.ledger_nodes AS n (day, application, node, granted, returned, promised, released)
    SELECT day, application, $1, granted, returned, 0, 0 FROM changed WHERE granted <> 0
    ON CONFLICT (day, application, node) DO UPDATE SET granted = excluded.granted, returned = excluded.returned
    WHERE (n.granted, n.returned) <> (excluded.granted, excluded.returned)
)
UPDATE {schema}.ledger_days d SET granted = c.total
FROM changed c WHERE (d.day, d.application) = (c.day, c.application) AND d.granted <> c.total";

/// The locked rows of an exchange.
struct LockedRows {
    days: Vec<Row>,
    windows: WindowRows,
    pools: LockedPools,
}

/// Columns of the day and node rows to write.
#[derive(Default)]
struct ChangedRows {
    days: Vec<String>,
    applications: Vec<String>,
    numbers: [Vec<i64>; 3],
}

/// Applies reports of one node, at most one for each application and day.
pub async fn exchange(
    client: SchemaClient<'_>,
    exchange: &LedgerExchange,
    ignores_clock: bool,
) -> Done<LedgerExchangeReply> {
    let done = Box::pin(apply(client, exchange, ignores_clock)).await;
    if done.is_err() {
        // The connection stays in use unless the rollback fails too.
        client.batch_execute("ROLLBACK").await?;
    }
    done
}

async fn apply(
    client: SchemaClient<'_>,
    exchange: &LedgerExchange,
    ignores_clock: bool,
) -> Done<LedgerExchangeReply> {
    let rows = lock(client, exchange, ignores_clock).await?;
    let mut windows = rows.windows;
    let mut pools = rows.pools;
    let mut reply = LedgerExchangeReply::default();
    let mut changed = ChangedRows::default();
    for (report, row) in exchange.reports.iter().zip(&rows.days) {
        let row = SqlRow::new(row);
        reply.today = Day::parse(&row.text("today")?).unwrap_or_default();
        let applied = decide(report, &row, reply.today, &mut windows, &mut changed)?;
        reply.push(applied);
        let is_outdated = row.flag("is_outdated")?;
        let granted = pools.apply(exchange.node, report, is_outdated);
        reply.minutes.push(granted);
    }
    let node = exchange.node.cast_signed();
    let (written, counted, pooled, committed) = tokio::join!(
        changed.write(client, node),
        windows::write(client, &windows),
        pools.write(client),
        client.batch_execute("COMMIT"),
    );
    written?;
    counted?;
    pooled?;
    committed?;
    Ok(reply)
}

/// Begins the transaction, and locks and reads all rows.
async fn lock(
    client: SchemaClient<'_>,
    exchange: &LedgerExchange,
    ignores_clock: bool,
) -> Done<LockedRows> {
    let reports = &exchange.reports;
    let columns = ReportColumns::new(reports);
    let days: Vec<String> = reports
        .iter()
        .map(|report| report.day.to_string())
        .collect();
    let today = exchange.today.to_string();
    let node = Number(exchange.node.cast_signed());
    let advance = [Text(&today), Flag(ignores_clock)];
    let days = Texts(&days);
    let applications = Texts(&columns.applications);
    let keys = [days, applications];
    let read = [node, days, applications, columns.terms()];
    let read_days = READ.replace("{is_outdated}", IS_OUTDATED);
    // Polled together, so that all statements are sent before the first answer arrives.
    let (begun, advanced, opened, counted, locked, days, pools) = tokio::join!(
        client.batch_execute("BEGIN"),
        client.query(ADVANCE, &advance),
        client.query(OPEN, &keys),
        windows::lock(client, reports, &keys),
        client.query(LOCK, &keys),
        client.query(&read_days, &read),
        minutes::lock(client, reports),
    );
    begun?;
    advanced?;
    opened?;
    let counted = counted?;
    locked?;
    Ok(LockedRows {
        days: days?,
        // Counted while the days are locked.
        windows: windows::count_new(client, counted).await?,
        pools: pools?,
    })
}

/// Applies a report to the rows of its day.
fn decide(
    report: &LedgerReport,
    row: &SqlRow<'_>,
    today: Day,
    windows: &mut WindowRows,
    changed: &mut ChangedRows,
) -> Done<ReportReply> {
    if !report.is_open(today) {
        return Ok(ReportOutcome::Closed.into());
    }
    // If a backup lacks the application, its units are kept, and no units are granted.
    let is_known = row.flag("is_known")?;
    let owner = row.optional_text("owner")?;
    let Some(total) = row.optional_number("total")?.filter(|_| is_known) else {
        return Ok(ReportOutcome::UnknownApplication.into());
    };
    let node = NodeTotals {
        granted: row.small_number("granted")?,
        returned: row.small_number("returned")?,
    };
    let is_outdated = row.flag("is_outdated")?;
    let applied = windows.apply(report, owner.as_deref(), is_outdated, total, node);
    if (applied.granted, applied.node) != (total, node) {
        changed.push(report, applied.granted, applied.node);
    }
    Ok(applied.reply())
}

impl ChangedRows {
    fn push(&mut self, report: &LedgerReport, total: u64, node: NodeTotals) {
        self.days.push(report.day.to_string());
        self.applications.push(report.application.to_string());
        let numbers = [
            total.cast_signed(),
            node.granted.into(),
            node.returned.into(),
        ];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
    }

    async fn write(&self, client: SchemaClient<'_>, node: i64) -> Done<()> {
        if self.days.is_empty() {
            return Ok(());
        }
        let mut values = vec![Number(node), Texts(&self.days), Texts(&self.applications)];
        values.extend(self.numbers.iter().map(|column| Numbers(column)));
        client.execute(WRITE, &values).await.map(drop)
    }
}
