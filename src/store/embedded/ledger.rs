//! The ledger: units of each UTC day granted to each application.
//!
//! Runs inside the writer's transaction. Days only go forward: the first lease of a day opens it and closes every
//! earlier one. The quota and the number of units come from the caller.

use rusqlite::{Connection, OptionalExtension, params};

use super::fault::StoreFault;
use super::{changes, records};
use crate::clock::{Day, Wall};
use crate::store::{LeaseReply, LeaseRequest, LeaseReturn, OwedUnits, StoreError};

/// Number of days kept for inspection. Only the newest is ever written.
const DAYS_KEPT: u32 = 40;
/// Each new record deletes this many outdated ones: more than are added, and never a million at midnight.
const PRUNED_AT_ONCE: u32 = 8;
/// Audit action for units delivered on grace and charged at a later start.
const CHARGED: &str = "charge_grace";

/// Grants what the quota allows. The node is not stored: reply and record share one transaction.
pub(super) fn lease(connection: &Connection, request: &LeaseRequest) -> Result<LeaseReply, StoreFault> {
    if let Some(newest) = newest_day(connection)?
        && request.day < newest
    {
        return Ok(LeaseReply::Closed { newest });
    }
    let (day, id) = (written(request.day)?, request.application.to_string());
    let so_far = granted(connection, &day, &id)?;
    let (before, promised) = so_far.unwrap_or((0, 0));
    let units = request.want.min(request.quota.saturating_sub(before));
    let grace = request.grace.min((request.quota / 100).saturating_sub(promised));
    let total = u64::from(before) + u64::from(units);
    if so_far.is_none() {
        if !records::is_there(connection, &id)? {
            return Err(StoreError::UnknownApplication(request.application).into());
        }
        // Even a grant of zero units opens the day.
        connection
            .prepare_cached("INSERT INTO ledger (day, application, granted, grace) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![day, id, units, grace])?;
        prune(connection, request.day)?;
    } else if units > 0 || grace > 0 {
        connection
            .prepare_cached(
                "UPDATE ledger SET granted = granted + ?3, grace = grace + ?4 WHERE day = ?1 AND application = ?2",
            )?
            .execute(params![day, id, units, grace])?;
    }
    Ok(LeaseReply::Granted { units, total, grace })
}

/// Charges units that were delivered without a lease. The audit record in the same transaction proves that an entry
/// was charged.
pub(super) fn charge(connection: &Connection, owed: &[OwedUnits], at: Wall) -> Result<(), StoreFault> {
    let newest = newest_day(connection)?;
    for one in owed.iter().filter(|one| newest.is_none_or(|newest| one.day >= newest)) {
        let (day, id) = (written(one.day)?, one.application.to_string());
        let detail = format!("{} of {day}, entry {:016x}", one.units, one.id);
        let mut charged = connection
            .prepare_cached("SELECT 1 FROM audit WHERE application = ?1 AND what = ?2 AND detail = ?3")?;
        if charged.exists([&*id, CHARGED, &*detail])? || !records::is_there(connection, &id)? {
            continue;
        }
        connection
            .prepare_cached(
                "INSERT INTO ledger (day, application, granted) VALUES (?1, ?2, ?3)
                 ON CONFLICT (day, application) DO UPDATE SET granted = granted + ?3 WHERE granted >= 0",
            )?
            .execute(params![day, id, one.units])?;
        changes::audit(connection, at, ["scoregate", CHARGED, &id, &detail])?;
    }
    Ok(())
}

/// Takes units back if their day is still open.
pub(super) fn give_back(connection: &Connection, units: &[LeaseReturn]) -> Result<(), StoreFault> {
    let Some(newest) = newest_day(connection)? else { return Ok(()) };
    let day = newest.to_string();
    // A record made negative by hand stays as it is: raising it to zero would free a whole quota.
    let mut take = connection.prepare_cached(
        "UPDATE ledger SET granted = max(granted - ?3, 0), grace = max(grace - ?4, 0)
         WHERE day = ?1 AND application = ?2 AND granted >= 0 AND grace >= 0",
    )?;
    for back in units.iter().filter(|back| back.day == newest) {
        take.execute(params![day, back.application.to_string(), back.units, back.grace])?;
    }
    Ok(())
}

/// The newest opened day. Texts that are not days, which only manual edits produce, are skipped.
pub(super) fn newest_day(connection: &Connection) -> Result<Option<Day>, StoreFault> {
    let mut newest = connection.prepare_cached("SELECT max(day) FROM ledger WHERE day < ?1")?;
    let mut below = String::from("a"); // above every digit
    loop {
        let found: Option<String> = newest.query_row([&below], |row| row.get(0))?;
        let Some(text) = found else { return Ok(None) };
        if let Some(day) = read(&text) {
            return Ok(Some(day));
        }
        below = text;
    }
}

/// Units granted, and units of grace promised.
fn granted(connection: &Connection, day: &str, id: &str) -> Result<Option<(u32, u32)>, StoreFault> {
    let found: Option<(i64, i64)> = connection
        .prepare_cached("SELECT granted, grace FROM ledger WHERE day = ?1 AND application = ?2")?
        .query_row([day, id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((granted, grace)) = found else { return Ok(None) };
    let bad =
        |_| StoreFault::Record(format!("ledger of {id} for {day}: granted is {granted}, grace is {grace}"));
    let read = u32::try_from(granted).and_then(|granted| Ok((granted, u32::try_from(grace)?)));
    read.map(Some).map_err(bad)
}

fn prune(connection: &Connection, today: Day) -> Result<(), StoreFault> {
    let oldest = Day::from_number(today.number().saturating_sub(DAYS_KEPT)).to_string();
    connection
        .prepare_cached(
            "DELETE FROM ledger WHERE (day, application) IN
             (SELECT day, application FROM ledger WHERE day < ?1 ORDER BY day LIMIT ?2)",
        )?
        .execute(params![oldest, PRUNED_AT_ONCE])?;
    Ok(())
}

/// A day as stored; fails beyond the calendar, where it would be ambiguous.
fn written(day: Day) -> Result<String, StoreFault> {
    let text = day.to_string();
    if read(&text) == Some(day) {
        return Ok(text);
    }
    let reason = format!("day {} lies beyond the calendar", day.number());
    Err(StoreError::Unavailable { doing: "grant a lease", reason }.into())
}

/// Parses a stored day.
pub(super) fn read(text: &str) -> Option<Day> {
    Day::parse(text)
}
