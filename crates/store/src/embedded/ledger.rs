//! The ledger: units of each UTC day granted to each application, and totals of each node.
//!
//! Runs inside the writer's transaction, by the rules of `limits::day_ledger`. The current day only moves forward: the
//! first exchange of a later day closes every earlier one.

use rusqlite::{Connection, params};

use super::fault::{FileResult, StoreFault};
use super::records;
use super::statements::{find, one, run};
use crate::window_rows::{ReportReply, WindowKey, WindowRows};
use crate::{LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome, StoreError};
use scoregate_base::clock::Day;
use scoregate_base::limits::{DayTotals, NodeTotals};

/// Number of days kept for inspection.
const DAYS_KEPT: u32 = 40;
/// Each new record deletes this many outdated ones: more than are added, and never a million at midnight.
const PRUNED_AT_ONCE: u32 = 8;

/// The units of a window before its first report. A day that was closed after a restore has no true number.
const SUM_OF_DAYS: &str = "
SELECT coalesce(sum(granted), 0) FROM ledger_days
WHERE (application = ?1 OR application IN (SELECT application FROM owned_applications WHERE owner = ?1))
  AND day >= ?2 AND day < ?3 AND granted BETWEEN 0 AND 4294967294";

const OWNER: &str = "SELECT owner FROM owned_applications WHERE application = ?1";

/// Applies the reports of a node. The clock of this machine is the node's.
pub(super) fn exchange(
    connection: &Connection,
    exchange: &LedgerExchange,
) -> FileResult<LedgerExchangeReply> {
    let today = advance(connection, exchange.today)?;
    let mut reply = LedgerExchangeReply {
        today,
        ..LedgerExchangeReply::default()
    };
    for report in &exchange.reports {
        let applied = if report.is_open(today) {
            apply(connection, exchange.node, report)?
        } else {
            ReportOutcome::Closed.into()
        };
        reply.push(applied);
    }
    Ok(reply)
}

/// Moves the current day forward to `today`, and returns it.
fn advance(connection: &Connection, today: Day) -> FileResult<Day> {
    let found = day(connection)?;
    if let Some(found) = found.filter(|found| *found >= today) {
        return Ok(found);
    }
    run(
        connection,
        "UPDATE calendar SET day = ?1",
        [written(today)?],
    )?;
    Ok(today)
}

fn apply(connection: &Connection, node: u64, report: &LedgerReport) -> FileResult<ReportReply> {
    let day = written(report.day)?;
    let id = report.application.to_string();
    let found = day_totals(connection, &day, &id)?;
    if found.is_none() && !records::is_there(connection, &id)? {
        return Ok(ReportOutcome::UnknownApplication.into());
    }
    let granted = found.unwrap_or_default().granted;
    let totals = node_totals(connection, &day, &id, node)?;
    let owner: Option<(String,)> = find(connection, OWNER, [&id])?;
    let owner = owner.as_ref().map(|(owner,)| owner.as_str());
    let mut rows = window_rows(connection, report, &day, owner)?;
    // The limits in a report are in force: this process makes all changes of terms.
    let applied = rows.apply(report, owner, false, granted, totals);
    // Units granted beyond a closed day must not make its record unreadable.
    let total = applied.granted.min(u32::MAX.into());
    if (total, applied.node) != (granted, totals) || found.is_none() {
        run(
            connection,
            "INSERT INTO ledger_days (day, application, granted) VALUES (?1, ?2, ?3)
             ON CONFLICT (day, application) DO UPDATE SET granted = ?3",
            params![day, id, total.cast_signed()],
        )?;
        let NodeTotals { granted, returned } = applied.node;
        run(
            connection,
            "INSERT INTO ledger_nodes (day, application, node, granted, returned, promised, released)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, 0) ON CONFLICT (day, application, node)
             DO UPDATE SET granted = ?4, returned = ?5",
            params![day, id, node.cast_signed(), granted, returned],
        )?;
    }
    store_windows(connection, &rows)?;
    if found.is_none() {
        prune(connection, report.day)?;
    }
    Ok(applied.reply(false))
}

/// The windows that contain a day: stored ones, and those that the report names, each counted from its days.
fn window_rows(
    connection: &Connection,
    report: &LedgerReport,
    day: &str,
    owner: Option<&str>,
) -> FileResult<WindowRows> {
    let id = report.application.to_string();
    let mut statement = connection.prepare_cached(
        "SELECT kind, starts, ends, granted, scope FROM ledger_windows
         WHERE scope IN (?1, ?3) AND starts <= ?2 AND ends > ?2",
    )?;
    let mut found = statement.query(params![id, day, owner])?;
    let mut rows = WindowRows::default();
    while let Some(row) = found.next()? {
        let [starts, ends]: [String; 2] = [row.get(1)?, row.get(2)?];
        let bad = || StoreFault::Record(format!("ledger_windows of {id}: {starts} to {ends}"));
        let key = WindowKey {
            scope: row.get(4)?,
            kind: row.get(0)?,
            start: Day::parse(&starts).ok_or_else(bad)?,
            end: Day::parse(&ends).ok_or_else(bad)?,
        };
        let granted: i64 = row.get(3)?;
        rows.insert(key, u64::try_from(granted).map_err(|_| bad())?, false);
    }
    for limit in &report.windows {
        let Some(key) = WindowKey::new(report, owner, &limit.window) else {
            continue;
        };
        if !rows.contains(&key) {
            let days = params![key.scope, written(key.start)?, written(key.end)?];
            let (granted,): (i64,) = one(connection, SUM_OF_DAYS, days)?;
            rows.insert(key, u64::try_from(granted).unwrap_or(0), true);
        }
    }
    Ok(rows)
}

fn store_windows(connection: &Connection, rows: &WindowRows) -> FileResult<()> {
    for (key, granted) in rows.changed() {
        run(
            connection,
            "INSERT INTO ledger_windows (scope, kind, starts, ends, granted) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope, kind, starts, ends) DO UPDATE SET granted = ?5",
            params![
                key.scope,
                key.kind,
                written(key.start)?,
                written(key.end)?,
                granted.cast_signed()
            ],
        )?;
    }
    Ok(())
}

/// The current day. Before the first exchange, the newest one with granted units.
pub(super) fn day(connection: &Connection) -> FileResult<Option<Day>> {
    let (found,): (Option<String>,) = one(
        connection,
        "SELECT max(day) FROM calendar WHERE day > '1970-01-01'",
        [],
    )?;
    match found.as_deref().and_then(Day::parse) {
        Some(day) => Ok(Some(day)),
        None => newest_day(connection),
    }
}

/// The newest day with granted units. Texts that are not days, which only manual edits produce, are skipped.
pub(super) fn newest_day(connection: &Connection) -> FileResult<Option<Day>> {
    let mut below = String::from("a"); // above every digit
    loop {
        let (found,) = one(
            connection,
            "SELECT max(day) FROM ledger_days WHERE day < ?1",
            [&below],
        )?;
        let Some(text): Option<String> = found else {
            return Ok(None);
        };
        if let Some(day) = Day::parse(&text) {
            return Ok(Some(day));
        }
        below = text;
    }
}

fn day_totals(connection: &Connection, day: &str, id: &str) -> FileResult<Option<DayTotals>> {
    let select = "SELECT granted FROM ledger_days WHERE day = ?1 AND application = ?2";
    let found: Option<(i64,)> = find(connection, select, [day, id])?;
    let Some((granted,)) = found else {
        return Ok(None);
    };
    let bad = |_| StoreFault::Record(format!("ledger of {id} for {day}: granted is {granted}"));
    Ok(Some(DayTotals {
        granted: u32::try_from(granted).map_err(bad)?.into(),
    }))
}

fn node_totals(connection: &Connection, day: &str, id: &str, node: u64) -> FileResult<NodeTotals> {
    let found: Option<(i64, i64)> = find(
        connection,
        "SELECT granted, returned FROM ledger_nodes WHERE day = ?1 AND application = ?2 AND node = ?3",
        params![day, id, node.cast_signed()],
    )?;
    let Some((granted, returned)) = found else {
        return Ok(NodeTotals::default());
    };
    let read = |number: i64| {
        let bad = |_| {
            StoreFault::Record(format!(
                "ledger_nodes of {id} for {day}: {number} is no total"
            ))
        };
        u32::try_from(number).map_err(bad)
    };
    Ok(NodeTotals {
        granted: read(granted)?,
        returned: read(returned)?,
    })
}

fn prune(connection: &Connection, today: Day) -> FileResult<()> {
    let oldest = Day::from_number(today.number().saturating_sub(DAYS_KEPT)).to_string();
    // Nearly always there are none, and a deletion costs more than all other statements of a lease.
    let (is_due,): (bool,) = one(
        connection,
        "SELECT EXISTS (SELECT 1 FROM ledger_days WHERE day < ?1)
         OR EXISTS (SELECT 1 FROM ledger_nodes WHERE day < ?1)",
        [&oldest],
    )?;
    if !is_due {
        return Ok(());
    }
    for (table, key) in [
        ("ledger_days", "day, application"),
        ("ledger_nodes", "day, application, node"),
    ] {
        let delete = format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE day < ?1 ORDER BY day LIMIT ?2)"
        );
        run(connection, &delete, params![oldest, PRUNED_AT_ONCE])?;
    }
    Ok(())
}

/// A day as stored; fails beyond the calendar, where it would be ambiguous.
fn written(day: Day) -> FileResult<String> {
    let text = day.to_string();
    if Day::parse(&text) == Some(day) {
        return Ok(text);
    }
    let reason = format!("day {} lies beyond the calendar", day.number());
    Err(StoreError::Unavailable {
        doing: "exchange ledger reports",
        reason,
    }
    .into())
}
