//! What a store that is replaced still says to its successor: what was granted, which days are closed, which keys were
//! revoked or ended. A backup knows nothing of what came after it, and a day's quota may not be granted twice.
//!
//! Not for: bringing applications or keys over; what was made after the backup stays in the store that is put aside.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::fault::StoreFault;
use super::super::{ledger, sound};
use super::dump::CUT;
use super::dump_lines::{DumpLine, KeyLine, LedgerLine, millis};
use super::look;
use super::walk::{TableKind, walk};
use crate::clock::Day;
use crate::keys::Digest;

/// What was brought over.
#[derive(Debug, Default)]
pub(super) struct TransferSummary {
    /// Keys that the successor would have let in.
    pub(super) revoked: u64,
    /// Keys that the successor would have let in for longer.
    pub(super) ended: u64,
    /// Keys that the successor does not know.
    pub(super) lost: u64,
    /// What the old store no longer says.
    pub(super) gaps: Vec<String>,
}

/// Brings over what `old` says, as far as it can be read: of each day and application the larger grant, every
/// revocation, and of each key the sooner end.
pub(super) fn from_old(old: &Path, new: &Connection) -> Result<TransferSummary, StoreFault> {
    let all = new.unchecked_transaction()?;
    let (mut carried, mut broken) = (TransferSummary::default(), None::<String>);
    let looked = look::at_damaged(old, |store| {
        let snapshot = store.unchecked_transaction()?;
        carried = TransferSummary::default(); // if this is the second look, the first is worth nothing
        if sound::is_cut(&snapshot, old)? {
            carried.gaps.push(CUT.into());
        }
        let gaps = walk(&snapshot, TableKind::Ledger, true, &mut |line| {
            let DumpLine::Ledger(line) = line else { return Ok(()) };
            grant(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        carried.gaps.extend(gaps);
        let gaps = walk(&snapshot, TableKind::Keys, true, &mut |line| {
            let DumpLine::Key(line) = line else { return Ok(()) };
            end(new, &line, &mut carried).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        carried.gaps.extend(gaps);
        Ok(())
    });
    // What fails here is the new store, and not the reading of the old one.
    if let Some(broken) = broken {
        return Err(StoreFault::Disk(std::io::Error::other(broken)));
    }
    match looked {
        Ok(()) => {}
        Err(StoreFault::Disk(error)) => return Err(error.into()),
        Err(fault) => carried.gaps.push(fault.told("be read", old).to_string()),
    }
    all.commit()?;
    Ok(carried)
}

/// The larger grant stands; also of an application that the new store does not know, since it may be brought back. So
/// the newest day comes over, and every earlier one is closed.
fn grant(new: &Connection, line: &LedgerLine) -> Result<(), StoreFault> {
    new.prepare_cached(
        "INSERT INTO ledger (day, application, granted, grace)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET granted = max(granted, excluded.granted), grace = max(grace, excluded.grace)",
    )?
    .execute(params![line.day, line.application, line.granted, line.grace])?;
    Ok(())
}

/// A revocation stands, and so does the sooner end: that is how a rotation takes a key away.
fn end(new: &Connection, line: &KeyLine, carried: &mut TransferSummary) -> Result<(), StoreFault> {
    let Some(digest) = Digest::from_hex(&line.digest) else { return Ok(()) };
    let there: Option<(bool, Option<i64>)> = new
        .prepare_cached("SELECT revoked_at IS NOT NULL, expires_at FROM keys WHERE digest = ?1")?
        .query_row([digest.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let instant = |text: &Option<String>| text.as_deref().map(millis).transpose();
    let (revoked_at, ends_at) = (instant(&line.revoked_at)?, instant(&line.expires_at)?);
    let Some((is_revoked, ends)) = there else {
        carried.lost += u64::from(revoked_at.is_none());
        return Ok(());
    };
    if is_revoked {
        return Ok(());
    }
    let sooner = ends_at.filter(|at| ends.is_none_or(|ends| *at < ends));
    if revoked_at.is_some() {
        carried.revoked += 1;
    } else if sooner.is_some() {
        carried.ended += 1;
    } else {
        return Ok(());
    }
    new.prepare_cached(
        "UPDATE keys SET revoked_at = ?2, expires_at = coalesce(?3, expires_at) WHERE digest = ?1",
    )?
    .execute(params![digest.as_bytes(), revoked_at, sooner])?;
    Ok(())
}

/// Marks a day's quota as granted to the last unit, whatever it is, to every application.
pub(super) fn forfeit(new: &Connection, today: Day) -> Result<Day, StoreFault> {
    let day = ledger::newest_day(new)?.map_or(today, |newest| newest.max(today));
    new.execute(
        "INSERT INTO ledger (day, application, granted, grace) SELECT ?1, id, ?2, ?2 FROM applications WHERE true
         ON CONFLICT DO UPDATE SET granted = excluded.granted, grace = excluded.grace",
        params![day.to_string(), u32::MAX],
    )?;
    Ok(day)
}
