//! Rows of a store file as lines of an export, and back.

use rusqlite::{Connection, Row, params};

use super::super::fault::{StoreFault, is_conflict};
use super::super::{ledger, records};
use super::{owner_rows, status_rows};
use crate::clock::Wall;
use crate::keys::Digest;
use crate::store::dump::{
    ApplicationLine, AuditLine, DumpLine, KeyLine, LedgerLine, RequestsLine, UsageLine,
};

pub(super) fn read_application(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let id = records::text(row, 0, "id")?;
    let read = records::described(row, &id)?;
    Ok(DumpLine::Application(ApplicationLine {
        id,
        name: read.name,
        tier: read.tier,
        own_minute: read.own.minute,
        own_day: read.own.day,
        url: read.url,
        contact: read.contact,
        note: read.note,
        created_at: read.created_at.rfc3339(),
    }))
}

pub(super) fn read_key(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let (application, key) = (records::text(row, 0, "application")?, records::key(row)?);
    Ok(DumpLine::Key(KeyLine {
        application,
        digest: key.digest.to_string(),
        shown: key.shown,
        name: key.name,
        created_at: key.created_at.rfc3339(),
        expires_at: key.expires_at.map(Wall::rfc3339),
        revoked_at: key.revoked_at.map(Wall::rfc3339),
        last_used_at: key.last_used_at.map(Wall::rfc3339),
    }))
}

pub(super) fn read_ledger(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let units = |column, name| Ok::<_, StoreFault>(records::limit(row, column, name)?.unwrap_or_default());
    let (day, application) = (day(row)?, records::text(row, 1, "application")?);
    Ok(DumpLine::Ledger(LedgerLine {
        day,
        application,
        granted: units(2, "granted")?,
        grace: units(3, "grace")?,
    }))
}

pub(super) fn read_usage(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let (day, application) = (day(row)?, records::text(row, 1, "application")?);
    let units = records::number(row, 2, "units")?.and_then(|units| u64::try_from(units).ok());
    let units = units.ok_or_else(|| StoreFault::Record("its units are invalid".into()))?;
    Ok(DumpLine::Usage(UsageLine { day, application, units }))
}

pub(super) fn read_requests(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let (day, application) = (day(row)?, records::text(row, 1, "application")?);
    let (endpoint, outcome) = (records::text(row, 2, "endpoint")?, records::text(row, 3, "outcome")?);
    let requests = records::number(row, 4, "requests")?.and_then(|requests| u64::try_from(requests).ok());
    let requests = requests.ok_or_else(|| StoreFault::Record("its requests are invalid".into()))?;
    let line = RequestsLine { day, application, endpoint, outcome, requests };
    line.verify().map_err(StoreFault::Record)?;
    Ok(DumpLine::Requests(line))
}

fn day(row: &Row<'_>) -> Result<String, StoreFault> {
    let day = records::text(row, 0, "day")?;
    match ledger::read(&day) {
        Some(_) => Ok(day),
        None => Err(StoreFault::Record(format!("{day:?} is not a day"))),
    }
}

pub(super) fn read_audit(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let number = records::number(row, 0, "id")?.and_then(|number| u64::try_from(number).ok());
    let at = records::instant(row, 1, "at")?;
    Ok(DumpLine::Audit(AuditLine {
        number: number.ok_or_else(|| StoreFault::Record("its number is invalid".into()))?,
        at: at.unwrap_or_default().rfc3339(),
        who: records::text(row, 2, "who")?,
        what: records::text(row, 3, "what")?,
        application: records::text(row, 4, "application")?,
        detail: records::text(row, 5, "detail")?,
    }))
}

/// Writes a line into a store.
pub(super) fn insert(line: &DumpLine, store: &Connection) -> Result<(), StoreFault> {
    let inserted = match line {
        DumpLine::Application(line) => store
            .prepare_cached("INSERT INTO applications VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?
            .execute(params![
                line.id,
                line.name,
                line.tier,
                line.own_minute,
                line.own_day,
                line.contact,
                line.note,
                millis(&line.created_at)?,
                line.url
            ]),
        DumpLine::Key(line) => insert_key(store, line)?,
        DumpLine::Ledger(line) => store
            .prepare_cached("INSERT INTO ledger (day, application, granted, grace) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![line.day, line.application, line.granted, line.grace]),
        DumpLine::Usage(line) => {
            let units = i64::try_from(line.units).map_err(|error| bad("units", &error))?;
            store
                .prepare_cached("INSERT INTO usage_days (day, application, units) VALUES (?1, ?2, ?3)")?
                .execute(params![line.day, line.application, units])
        }
        DumpLine::Requests(line) => {
            let requests = i64::try_from(line.requests).map_err(|error| bad("requests", &error))?;
            let row = params![line.day, line.application, line.endpoint, line.outcome, requests];
            store.prepare_cached("INSERT INTO request_days VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(row)
        }
        DumpLine::Audit(line) => {
            let number = i64::try_from(line.number).map_err(|error| bad("number", &error))?;
            store.prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(params![
                number,
                millis(&line.at)?,
                line.who,
                line.what,
                line.application,
                line.detail
            ])
        }
        DumpLine::Availability(line) => status_rows::insert_availability(store, line)?,
        DumpLine::StatusMessage(line) => status_rows::insert_message(store, line)?,
        DumpLine::Owner(line) => owner_rows::insert_owner(store, line)?,
        DumpLine::End(_) => Ok(0),
    };
    match inserted {
        Err(error) if is_conflict(&error) => Err(StoreFault::Record(format!("{}: {error}", line.label()))),
        other => Ok(other.map(drop)?),
    }
}

fn insert_key(store: &Connection, line: &KeyLine) -> Result<rusqlite::Result<usize>, StoreFault> {
    let digest = Digest::from_hex(&line.digest).ok_or_else(|| bad("digest", &line.digest))?;
    let instant = |text: &Option<String>| text.as_deref().map(millis).transpose();
    let row = params![
        line.application,
        digest.as_bytes(),
        line.shown,
        millis(&line.created_at)?,
        instant(&line.expires_at)?,
        instant(&line.revoked_at)?,
        instant(&line.last_used_at)?,
        line.name
    ];
    Ok(store
        .prepare_cached(
            "INSERT INTO keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(row))
}

/// A time as stored.
pub(super) fn millis(text: &str) -> Result<i64, StoreFault> {
    let at = Wall::parse_rfc3339(text).ok_or_else(|| bad("instant", &text))?;
    i64::try_from(at.millis()).map_err(|error| bad("instant", &error))
}

fn bad(name: &str, found: &dyn std::fmt::Display) -> StoreFault {
    StoreFault::Record(format!("{name}: {found}"))
}
