//! Rows of the status page as lines of an export, and back.

use rusqlite::{Connection, Row, params};

use super::super::fault::StoreFault;
use super::super::{records, status};
use crate::clock::Wall;
use crate::store::dump::{AvailabilityLine, DumpLine, StatusMessageLine};

/// The minutes of a line.
const MINUTES: &str = "
WITH RECURSIVE m (minute) AS (SELECT ?1 UNION ALL SELECT minute + 1 FROM m WHERE minute + 1 < ?1 + ?2)
INSERT INTO status_minutes (minute, is_ready, is_fresh) SELECT minute, ?3, ?4 FROM m WHERE true";

/// If known too, the minute is ready, or its data fresh, if one of both says so.
const KEEP: &str = "
ON CONFLICT (minute) DO UPDATE
SET is_ready = max(is_ready, excluded.is_ready), is_fresh = max(is_fresh, excluded.is_fresh)";

pub(super) fn read_availability(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let number = |column, name| {
        let number = records::number(row, column, name)?.and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| StoreFault::Record(format!("its {name} is invalid")))
    };
    let first = Wall::from_seconds(number(0, "minute")?.saturating_mul(60)).rfc3339();
    let (ready, fresh) = (number(2, "state")? > 0, number(3, "state")? > 0);
    Ok(DumpLine::Availability(AvailabilityLine { first, minutes: number(1, "length")?, ready, fresh }))
}

pub(super) fn read_status_message(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    Ok(DumpLine::StatusMessage(status::message(row)?.into()))
}

pub(super) fn insert_availability(
    store: &Connection,
    line: &AvailabilityLine,
) -> Result<rusqlite::Result<usize>, StoreFault> {
    insert_minutes(store, line, MINUTES)
}

fn insert_minutes(
    store: &Connection,
    line: &AvailabilityLine,
    statement: &str,
) -> Result<rusqlite::Result<usize>, StoreFault> {
    let bad = || StoreFault::Record(format!("first: {}", line.first));
    let first = line.first_minute().ok_or_else(bad)?.cast_signed();
    let row = params![first, line.minutes.cast_signed(), line.ready, line.fresh];
    Ok(store.prepare_cached(statement)?.execute(row))
}

pub(super) fn insert_message(
    store: &Connection,
    line: &StatusMessageLine,
) -> Result<rusqlite::Result<usize>, StoreFault> {
    let bad = || StoreFault::Record(format!("at: {}", line.at));
    let at = Wall::parse_rfc3339(&line.at).ok_or_else(bad)?;
    let row = params![
        line.id.cast_signed(),
        line.incident.cast_signed(),
        at.millis().cast_signed(),
        line.state,
        line.title,
        line.message
    ];
    Ok(store.prepare_cached("INSERT INTO status_messages VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(row))
}

/// Adds what the new store lacks. A message is not added to another incident that has its number.
pub(super) fn keep(new: &Connection, line: &DumpLine) -> Result<(), StoreFault> {
    match line {
        DumpLine::Availability(line) => {
            insert_minutes(new, line, &format!("{MINUTES} {KEEP}"))??;
        }
        DumpLine::StatusMessage(line) => {
            let is_missing: bool = new
                .prepare_cached(
                    "SELECT NOT EXISTS (SELECT 1 FROM status_messages WHERE id = ?1)
                        AND (?1 = ?2 OR EXISTS (SELECT 1 FROM status_messages WHERE id = ?2 AND title = ?3))",
                )?
                .query_row(
                    params![line.id.cast_signed(), line.incident.cast_signed(), line.title],
                    |row| row.get(0),
                )?;
            if is_missing {
                insert_message(new, line)??;
            }
        }
        DumpLine::Application(_)
        | DumpLine::Key(_)
        | DumpLine::Ledger(_)
        | DumpLine::Usage(_)
        | DumpLine::Requests(_)
        | DumpLine::Audit(_)
        | DumpLine::Owner(_)
        | DumpLine::End(_) => {}
    }
    Ok(())
}
