//! The ledger: granted units of each application and UTC day, and the totals of each node.
//!
//! Runs inside the writer's transaction, according to the rules of `limits::day_ledger`. The current day only moves
//! forward: the first exchange of a later day closes every earlier one.

use crate::{
    LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome, StoreError,
    statements::{
        BadRecord, Done, RowResult,
        SqlField::{self, Number, Text},
        SqlRow, Tables,
    },
    window_rows::{ReportReply, WindowKey, WindowRows},
};
use scoregate_base::{clock::Day, limits::NodeTotals};

const ADVANCE: &str = "UPDATE calendar SET day = $1";
/// The units are null if the day has none. There is no row if the application is unknown and has no units.
const READ: &str = "
SELECT l.granted AS total, n.granted, n.returned, o.owner FROM (SELECT $2 AS id) r
LEFT JOIN ledger_days l ON l.day = $1 AND l.application = r.id
LEFT JOIN ledger_nodes n ON n.day = $1 AND n.application = r.id AND n.node = $3
LEFT JOIN owned_applications o ON o.application = r.id
WHERE l.application IS NOT NULL OR EXISTS (SELECT 1 FROM applications WHERE id = r.id)";
const WRITE_DAY: &str = "
INSERT INTO ledger_days (day, application, granted) VALUES ($1, $2, $3)
ON CONFLICT (day, application) DO UPDATE SET granted = excluded.granted";
const WRITE_NODE: &str = "
INSERT INTO ledger_nodes (day, application, node, granted, returned, promised, released) VALUES ($1, $2, $3, $4, $5, 0, 0)
ON CONFLICT (day, application, node) DO UPDATE SET granted = excluded.granted, returned = excluded.returned";
const WINDOWS: &str = "
SELECT scope, kind, starts, ends, granted FROM ledger_windows WHERE scope IN ($1, $3) AND starts <= $2 AND ends > $2";
const WRITE_WINDOW: &str = "
INSERT INTO ledger_windows (scope, kind, starts, ends, granted) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (scope, kind, starts, ends) DO UPDATE SET granted = excluded.granted";
/// The units of a window before its first report. A day that was closed after a restore has no actual total and is left
/// out.
const SUM_OF_DAYS: &str = "
SELECT coalesce(sum(granted), 0) AS granted FROM ledger_days
WHERE (application = $1 OR application IN (SELECT application FROM owned_applications WHERE owner = $1))
  AND day >= $2 AND day < $3 AND granted BETWEEN 0 AND 4294967294";

/// The stored state of an application on a day.
struct StoredDay {
    /// The total; `None` before the first report.
    granted: Option<u32>,
    node: NodeTotals,
    owner: Option<String>,
}

/// Applies the reports of a node. The clock of this machine is the node's clock.
pub async fn exchange(tables: Tables<'_>, exchange: &LedgerExchange) -> Done<LedgerExchangeReply> {
    let today = advance(tables, exchange.today).await?;
    let mut reply = LedgerExchangeReply {
        today,
        ..LedgerExchangeReply::default()
    };
    for report in &exchange.reports {
        let applied = if report.is_open(today) {
            apply(tables, exchange.node, report).await?
        } else {
            ReportOutcome::Closed.into()
        };
        reply.push(applied);
    }
    Ok(reply)
}

/// Moves the current day forward to `today` if it is later, and returns the current day.
async fn advance(tables: Tables<'_>, today: Day) -> Done<Day> {
    let found = tables.today().await?;
    if let Some(found) = found.filter(|found| *found >= today) {
        return Ok(found);
    }
    tables.run(ADVANCE, &[Text(&written(today)?)]).await?;
    Ok(today)
}

async fn apply(tables: Tables<'_>, node: u64, report: &LedgerReport) -> Done<ReportReply> {
    let day = written(report.day)?;
    let id = report.application.to_string();
    let keys = [Text(&day), Text(&id), Number(node.cast_signed())];
    let Some(stored) = tables.find(READ, &keys, stored_day).await? else {
        return Ok(ReportOutcome::UnknownApplication.into());
    };
    let granted = stored.granted.unwrap_or_default().into();
    let owner = stored.owner.as_deref();
    let mut rows = window_rows(tables, report, &day, owner).await?;
    // The limits in a report are always current, because this process makes all changes to tiers and limits.
    let applied = rows.apply(report, owner, false, granted, stored.node);
    if (applied.granted, applied.node) != (granted, stored.node) || stored.granted.is_none() {
        write_day(tables, keys, applied.granted, applied.node).await?;
    }
    write_windows(tables, &rows).await?;
    Ok(applied.reply())
}

/// Writes the application's total for a day, and the node's totals for that day. `keys` are the day, the application and the node.
async fn write_day(
    tables: Tables<'_>,
    keys: [SqlField<'_>; 3],
    total: u64,
    node: NodeTotals,
) -> Done<()> {
    let [day, id, number] = keys;
    let total = Number(total.cast_signed());
    tables.run(WRITE_DAY, &[day, id, total]).await?;
    let NodeTotals { granted, returned } = node;
    let [granted, returned] = [granted, returned].map(|units| Number(units.into()));
    let row = [day, id, number, granted, returned];
    tables.run(WRITE_NODE, &row).await.map(drop)
}

async fn write_windows(tables: Tables<'_>, rows: &WindowRows) -> Done<()> {
    for (key, granted) in rows.changed() {
        let [start, end] = [written(key.start)?, written(key.end)?];
        let row = [
            Text(&key.scope),
            Text(&key.kind),
            Text(&start),
            Text(&end),
            Number(granted.cast_signed()),
        ];
        tables.run(WRITE_WINDOW, &row).await?;
    }
    Ok(())
}

fn stored_day(row: &SqlRow<'_>) -> RowResult<StoredDay> {
    Ok(StoredDay {
        granted: row.limit("total")?,
        node: NodeTotals {
            granted: row.limit("granted")?.unwrap_or_default(),
            returned: row.limit("returned")?.unwrap_or_default(),
        },
        owner: row.optional_text("owner")?,
    })
}

/// The windows that contain a day, from the store and from the report. A window that is not stored
/// is computed from its days.
async fn window_rows(
    tables: Tables<'_>,
    report: &LedgerReport,
    day: &str,
    owner: Option<&str>,
) -> Done<WindowRows> {
    let id = report.application.to_string();
    let mut rows = WindowRows::default();
    let mut read = Ok(());
    let values = [Text(&id), Text(day), SqlField::OptionalText(owner)];
    tables
        .each(WINDOWS, &values, |row| {
            let found = stored_window(row);
            match found {
                Ok((key, granted)) => rows.insert(key, granted, false),
                Err(bad) => read = Err(bad),
            }
        })
        .await?;
    read?;
    for limit in &report.windows {
        let Some(key) = WindowKey::new(report, owner, &limit.window) else {
            continue;
        };
        if !rows.contains(&key) {
            let [start, end] = [written(key.start)?, written(key.end)?];
            let days = [Text(&key.scope), Text(&start), Text(&end)];
            let sum = tables
                .find(SUM_OF_DAYS, &days, |row| row.number("granted"))
                .await?;
            rows.insert(key, sum.unwrap_or_default(), true);
        }
    }
    Ok(rows)
}

fn stored_window(row: &SqlRow<'_>) -> RowResult<(WindowKey, u64)> {
    let day = |column| {
        let text = row.text(column)?;
        Day::parse(&text).ok_or_else(|| BadRecord(format!("ledger_windows: {column} is {text}")))
    };
    let key = WindowKey {
        scope: row.text("scope")?,
        kind: row.text("kind")?,
        start: day("starts")?,
        end: day("ends")?,
    };
    Ok((key, row.number("granted")?))
}

/// A day as stored text; fails for a day outside the supported range, whose text would be ambiguous.
fn written(day: Day) -> Done<String> {
    let text = day.to_string();
    if Day::parse(&text) == Some(day) {
        return Ok(text);
    }
    let reason = format!("day {} is outside the supported range", day.number());
    Err(StoreError::Unavailable {
        doing: "exchange ledger reports",
        reason,
    }
    .into())
}
