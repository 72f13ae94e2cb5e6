//! Usage: totals of each gateway process, merged once a day is closed for reports. The rules are in `store::usage`.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::ledger;
use super::statements::run;
use crate::sql::daily_totals::DailyTotals;
use crate::stored::stored;
use crate::usage::USAGE_DAYS_OPEN;
use crate::{UsageList, UsageQuery, UsageTotal};
use scoregate_base::clock::Day;

/// Number of records merged, and deleted, in one transaction. Leases wait for it.
const AT_ONCE: u32 = 250;

/// Stores totals of a node.
pub(super) fn record(connection: &Connection, node: u64, totals: &[UsageTotal]) -> Result<(), StoreFault> {
    let closed = last_day_before(connection, USAGE_DAYS_OPEN)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO usage_nodes (day, application, node, units) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (day, application, node) DO UPDATE SET units = max(units, excluded.units)",
    )?;
    for total in totals.iter().filter(|total| closed.is_none_or(|closed| total.day > closed)) {
        let (day, application) = (total.day.to_string(), total.application.to_string());
        insert.execute(params![day, application, node.cast_signed(), stored(total.units)])?;
    }
    Ok(())
}

/// Usage added up over all nodes.
pub(super) fn read(connection: &Connection, query: &UsageQuery) -> Result<UsageList, StoreFault> {
    let names = |ids: &Vec<_>| ids.iter().map(ToString::to_string).collect::<serde_json::Value>().to_string();
    let applications = query.applications.as_ref().map(names);
    let mut read = connection.prepare_cached(
        "WITH parts AS (
             SELECT day, application, units FROM usage_days WHERE day BETWEEN ?1 AND ?2
             UNION ALL
             SELECT day, application, units FROM usage_nodes WHERE day BETWEEN ?1 AND ?2
         ), whole AS (
             SELECT day, application, sum(units) AS units FROM parts
             WHERE ?3 IS NULL OR application IN (SELECT value FROM json_each(?3)) GROUP BY day, application
         )
         SELECT day, application, units, count(*) OVER (), sum(units) OVER () FROM whole
         ORDER BY day DESC, units DESC, application LIMIT ?4",
    )?;
    let (first, last) = (query.first.to_string(), query.last.to_string());
    let mut rows = read.query(params![first, last, applications, stored(query.limit)])?;
    let mut usage = UsageList::default();
    while let Some(row) = rows.next()? {
        let number = |column| Ok::<_, StoreFault>(row.get::<_, i64>(column)?.unsigned_abs());
        (usage.matching, usage.units) = (number(3)?, number(4)?);
        let (day, application): (String, String) = (row.get(0)?, row.get(1)?);
        // Other texts come from manual edits.
        if let (Some(day), Ok(application)) = (Day::parse(&day), application.parse()) {
            usage.totals.push(UsageTotal { day, application, units: number(2)? });
        }
    }
    Ok(usage)
}

const DUE: &str = "SELECT DISTINCT {key} FROM {nodes} WHERE day <= ?1 ORDER BY {key} LIMIT ?2";

const MERGE: &str = "
INSERT INTO {days} ({key}, {total})
SELECT {key}, sum({total}) FROM {nodes} WHERE ({key}) IN ({due}) GROUP BY {key}
ON CONFLICT ({key}) DO UPDATE SET {total} = {total} + excluded.{total}";

const DELETE_MERGED: &str = "DELETE FROM {nodes} WHERE ({key}) IN ({due})";

const DELETE: &str =
    "DELETE FROM {days} WHERE ({key}) IN (SELECT {key} FROM {days} WHERE day <= ?1 ORDER BY {key} LIMIT ?2)";

/// Merges the totals of a batch of closed days, and deletes a batch of outdated ones. Returns the number of changed
/// records.
pub(super) fn merge(connection: &Connection, table: &DailyTotals) -> Result<u64, StoreFault> {
    let Some(closed) = last_day_before(connection, USAGE_DAYS_OPEN)? else { return Ok(0) };
    let execute = |text: &str, until: Day| {
        let statement = table.statement(&text.replace("{due}", DUE));
        run(connection, &statement, params![until.to_string(), AT_ONCE])
    };
    let mut changed = execute(MERGE, closed)?;
    if changed > 0 {
        execute(DELETE_MERGED, closed)?;
    }
    if let Some(outdated) = last_day_before(connection, table.days_kept)? {
        changed += execute(DELETE, outdated)?;
    }
    Ok(changed)
}

/// The last day before this number of days that end with the current one.
pub(super) fn last_day_before(connection: &Connection, days: u32) -> Result<Option<Day>, StoreFault> {
    let today = ledger::day(connection)?;
    Ok(today.and_then(|today| today.number().checked_sub(days)).map(Day::from_number))
}
