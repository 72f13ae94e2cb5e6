//! Rows of owners as lines of an export, and back.

use rusqlite::{Connection, Row, params};

use super::super::fault::StoreFault;
use super::super::records;
use crate::clock::Wall;
use crate::store::dump::{DumpLine, OwnerLine};

pub(super) fn read_owner(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
    let at = |column, name| {
        let at = records::instant(row, column, name)?;
        at.map(Wall::rfc3339).ok_or_else(|| StoreFault::Record(format!("{name} is missing")))
    };
    let applications = records::text(row, 8, "applications")?;
    let tier =
        row.get_ref(6)?.as_str_or_null().map_err(|error| StoreFault::Record(format!("tier: {error}")))?;
    Ok(DumpLine::Owner(OwnerLine {
        id: records::text(row, 0, "id")?,
        mailbox: records::text(row, 1, "mailbox")?,
        email: records::text(row, 2, "email")?,
        created_at: at(3, "created_at")?,
        terms_version: records::text(row, 4, "terms_version")?,
        terms_accepted_at: at(5, "terms_accepted_at")?,
        tier: tier.map(str::to_owned),
        suspended_at: records::instant(row, 7, "suspended_at")?.map(Wall::rfc3339),
        applications: serde_json::from_str(&applications)
            .map_err(|error| StoreFault::Record(format!("applications: {error}")))?,
    }))
}

pub(super) fn insert_owner(
    store: &Connection,
    line: &OwnerLine,
) -> Result<rusqlite::Result<usize>, StoreFault> {
    let suspended_at = line.suspended_at.as_deref().map(millis).transpose()?;
    let row = params![
        line.id,
        line.mailbox,
        line.email,
        millis(&line.created_at)?,
        line.terms_version,
        millis(&line.terms_accepted_at)?,
        line.tier,
        suspended_at
    ];
    let inserted =
        store.prepare_cached("INSERT INTO owners VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?.execute(row);
    let mut own =
        store.prepare_cached("INSERT INTO owned_applications (application, owner) VALUES (?1, ?2)")?;
    let owned = line.applications.iter().try_for_each(|id| own.execute([id, &line.id]).map(drop));
    Ok(inserted.and_then(|inserted| owned.map(|()| inserted)))
}

/// Keeps suspensions. Other owners and changes since the backup stay in the replaced store.
pub(super) fn keep_suspension(new: &Connection, line: &DumpLine) -> Result<(), StoreFault> {
    if let DumpLine::Owner(OwnerLine { id, suspended_at: Some(at), .. }) = line {
        new.prepare_cached("UPDATE owners SET suspended_at = coalesce(suspended_at, ?2) WHERE id = ?1")?
            .execute(params![id, millis(at)?])?;
    }
    Ok(())
}

fn millis(text: &str) -> Result<i64, StoreFault> {
    let at = Wall::parse_rfc3339(text).ok_or_else(|| StoreFault::Record(format!("instant: {text}")))?;
    Ok(at.millis().cast_signed())
}
