//! Minutes in which the service was ready, and messages about its incidents. The rules are in `store::status`.

use rusqlite::{Connection, Row, params};

use super::fault::StoreFault;
use super::statements::{readable, run};
use super::{ledger, records};
use crate::status::{DAY_MINUTES, STATUS_DAYS_KEPT};
use crate::stored::stored;
use crate::{IncidentState, StatusMessage, StatusMinute};
use scoregate_base::clock::Wall;

/// Number of minutes deleted in one transaction. Leases wait for it.
const AT_ONCE: u32 = 500;

/// Stores minutes. What several processes store of a minute is combined.
pub(super) fn record(connection: &Connection, minutes: &[StatusMinute]) -> Result<(), StoreFault> {
    let first = first_kept(connection)?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO status_minutes (minute, is_ready, is_fresh) VALUES (?1, ?2, ?3)
         ON CONFLICT (minute) DO UPDATE
         SET is_ready = max(is_ready, excluded.is_ready), is_fresh = max(is_fresh, excluded.is_fresh)",
    )?;
    for StatusMinute { minute, is_ready, is_fresh } in minutes {
        if *minute >= first {
            insert.execute(params![minute.cast_signed(), is_ready, is_fresh])?;
        }
    }
    Ok(())
}

/// The newest messages, and all of incidents that are not resolved; newest first. Unreadable ones are skipped.
pub(super) fn messages(connection: &Connection, limit: usize) -> Result<Vec<StatusMessage>, StoreFault> {
    readable(
        connection,
        "SELECT id, incident, at, state, title, message FROM status_messages
         WHERE id IN (SELECT id FROM status_messages ORDER BY id DESC LIMIT ?1)
            OR incident NOT IN (SELECT incident FROM status_messages WHERE state = 'resolved')
         ORDER BY id DESC",
        [stored(limit)],
        message,
    )
}

/// The message of a row.
pub(super) fn message(row: &Row<'_>) -> Result<StatusMessage, StoreFault> {
    let number = |column, name| {
        let number = records::number(row, column, name)?.and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| StoreFault::Record(format!("its {name} is invalid")))
    };
    let state: String = records::text(row, 3, "state")?;
    let unknown = || StoreFault::Record(format!("{state:?} is not a state"));
    Ok(StatusMessage {
        id: number(0, "id")?,
        incident: number(1, "incident")?,
        at: Wall::from_millis(number(2, "at")?),
        state: IncidentState::parse(&state).ok_or_else(unknown)?,
        title: records::text(row, 4, "title")?,
        message: records::text(row, 5, "message")?,
    })
}

/// Deletes a batch of outdated minutes, but not the first one of all: it shows that the service has a history. Returns
/// their number.
pub(super) fn delete_outdated(connection: &Connection) -> Result<u64, StoreFault> {
    let first = first_kept(connection)?;
    run(
        connection,
        "DELETE FROM status_minutes WHERE minute IN (
             SELECT minute FROM status_minutes
             WHERE minute < ?1 AND minute > (SELECT min(minute) FROM status_minutes) ORDER BY minute LIMIT ?2)",
        params![first.cast_signed(), AT_ONCE],
    )
}

/// The first minute that is kept, by the current day of the ledger.
fn first_kept(connection: &Connection) -> Result<u64, StoreFault> {
    let today = ledger::day(connection)?.map_or(0, |today| u64::from(today.number()));
    Ok((today + 1).saturating_sub(u64::from(STATUS_DAYS_KEPT)) * DAY_MINUTES)
}
