//! `scoregate store close-future-days`: closes UTC days that were opened too early because of a wrong clock.
//!
//! The ledger never goes back from the newest opened day, so every request would be charged to that day until it ends.
//! Units granted for such a day were used today. They are counted for today, and the day is empty when it begins. The
//! caller holds the lock of the data directory, so no server writes. `inspect` finds such days.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::{
    maintenance_error::{MaintenanceError, MaintenanceResult},
    store_file::file_in,
};
use crate::{
    embedded::{file, paths::quoted},
    statements::{Done, FileConnection, Tables, done},
};
use scoregate_base::clock::{Day, Wall};

/// The closed days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedDays {
    /// The days, oldest first.
    pub days: Vec<Day>,
    /// Number of units that were granted for these days and now count for today.
    pub granted: u64,
}

impl ClosedDays {
    /// The days as human-readable text.
    pub fn list(&self) -> String {
        let days = self.days.iter().map(Day::to_string);
        days.collect::<Vec<_>>().join(", ")
    }
}

/// The command that closes every day after `today`, quoted for a shell.
pub fn close_command(directory: &Path, today: Day) -> String {
    format!(
        "scoregate store close-future-days --today {today} --data-dir {}",
        quoted(directory)
    )
}

/// Closes every day after `today`, which must be the current day according to the machine's clock. Otherwise the command was
/// written for another day, or the clock is still wrong. Closes all of the days or none.
pub fn close_future_days(
    directory: &Path,
    who: &str,
    today: Day,
    now: Wall,
) -> MaintenanceResult<ClosedDays> {
    let path = file_in(directory);
    if !path.exists() {
        return Err(MaintenanceError::NoStore(path));
    }
    if today != now.day() {
        return Err(MaintenanceError::OtherDay {
            given: today,
            clock: now,
        });
    }
    let store = FileConnection::new(file::open(directory)?.writer);
    let closed = close(&store, who, today, now);
    closed.map_err(|fault| fault.into_error("close future days", &path).into())
}

fn close(file: &FileConnection, who: &str, today: Day, now: Wall) -> Done<ClosedDays> {
    let store = file.lock();
    let all = Transaction::new_unchecked(&store, TransactionBehavior::Immediate)?;
    let mut closed = ClosedDays {
        days: days_after(&all, today)?,
        granted: 0,
    };
    for day in &closed.days {
        closed.granted += count_for(&all, *day, today)?;
    }
    all.execute(
        "UPDATE calendar SET day = ?1 WHERE day > ?1",
        [today.to_string()],
    )?;
    if !closed.days.is_empty() {
        let detail = format!(
            "{}; {} units granted for them are counted for {today}",
            closed.list(),
            closed.granted
        );
        done(Tables::File(file).audit(now, [who, "close_future_days", "", &detail]))?;
    }
    all.commit()?;
    Ok(closed)
}

fn days_after(store: &Connection, today: Day) -> Done<Vec<Day>> {
    let mut days =
        store.prepare("SELECT DISTINCT day FROM ledger_days WHERE day > ?1 ORDER BY day")?;
    let found = days.query_map([today.to_string()], |row| row.get::<_, String>(0))?;
    let found: Vec<String> = found.collect::<Result<_, _>>()?;
    // Values that are not days come from manual edits and are ignored.
    Ok(found.iter().filter_map(|text| Day::parse(text)).collect())
}

/// Moves the units granted for a day to today, and returns their number. Unreadable records are deleted with their day.
/// An unreadable record of today is not changed.
fn count_for(store: &Connection, day: Day, today: Day) -> Done<u64> {
    let day = day.to_string();
    let today = today.to_string();
    let granted: i64 = store.query_row(
        "SELECT coalesce(sum(granted), 0) FROM ledger_days WHERE day = ?1 AND granted >= 0",
        [&day],
        |row| row.get(0),
    )?;
    store.execute(
        "INSERT INTO ledger_days (day, application, granted)
         SELECT ?1, application, granted FROM ledger_days WHERE day = ?2 AND granted >= 0
         ON CONFLICT DO UPDATE SET granted = min(granted + excluded.granted, ?3) WHERE granted >= 0",
        params![today, day, u32::MAX],
    )?;
    store.execute("DELETE FROM ledger_days WHERE day = ?1", [&day])?;
    store.execute("DELETE FROM ledger_nodes WHERE day = ?1", [&day])?;
    // Windows are recomputed from their days.
    store.execute("DELETE FROM ledger_windows", [])?;
    store.execute("DELETE FROM grace_shares WHERE day = ?1", [&day])?;
    Ok(u64::try_from(granted).unwrap_or_default())
}
