//! Transfers what a replaced store knows to its successor: grants, usage, requests, closed days, revoked and expired keys,
//! suspended owners, and the content of the status page. A backup does not contain what came after it, and a day's quota must not be granted twice.
//!
//! Applications and keys are not transferred; those created after the backup stay in the replaced store.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::super::fault::StoreFault;
use super::super::{grace_shares, integrity, ledger};
use super::dump::CUT;
use super::dump_rows::millis;
use super::walk::{TableKind, walk};
use super::{owner_rows, read_only, status_rows};
use crate::clock::Day;
use crate::keys::Digest;
use crate::store::dump::{DumpLine, KeyLine, LedgerLine, RequestsLine, UsageLine};

/// The transferred facts.
#[derive(Debug, Default)]
pub(super) struct TransferSummary {
    /// Keys revoked in the old store and in force in the new one.
    pub(super) revoked: u64,
    /// Keys with an earlier expiry in the old store.
    pub(super) ended: u64,
    /// Keys that the new store does not contain.
    pub(super) lost: u64,
    /// Facts that the old store can no longer provide.
    pub(super) gaps: Vec<String>,
}

/// Transfers everything readable of `old`: the larger grant per day and application, all revocations, and the earlier
/// expiry of each key.
pub(super) fn from_old(old: &Path, new: &Connection) -> Result<TransferSummary, StoreFault> {
    let all = new.unchecked_transaction()?;
    let (mut summary, mut broken) = (TransferSummary::default(), None::<String>);
    let outcome = read_only::at_damaged(old, |store| {
        let snapshot = store.unchecked_transaction()?;
        summary = TransferSummary::default(); // on a second run, the first result is discarded
        if integrity::is_cut(&snapshot, old)? {
            summary.gaps.push(CUT.into());
        }
        let gaps = walk(&snapshot, TableKind::Ledger, true, &mut |line| {
            let DumpLine::Ledger(line) = line else { return Ok(()) };
            grant(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        summary.gaps.extend(gaps);
        let gaps = walk(&snapshot, TableKind::Usage, true, &mut |line| {
            let DumpLine::Usage(line) = line else { return Ok(()) };
            keep_usage(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        summary.gaps.extend(gaps);
        let gaps = walk(&snapshot, TableKind::Requests, true, &mut |line| {
            let DumpLine::Requests(line) = line else { return Ok(()) };
            keep_requests(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        summary.gaps.extend(gaps);
        let gaps = walk(&snapshot, TableKind::Keys, true, &mut |line| {
            let DumpLine::Key(line) = line else { return Ok(()) };
            transfer_expiry(new, &line, &mut summary).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        summary.gaps.extend(gaps);
        for kind in [TableKind::Availability, TableKind::StatusMessages] {
            let gaps = walk(&snapshot, kind, true, &mut |line| {
                status_rows::keep(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
            })?;
            summary.gaps.extend(gaps);
        }
        let gaps = walk(&snapshot, TableKind::Owners, true, &mut |line| {
            owner_rows::keep_suspension(new, &line).inspect_err(|fault| broken = Some(format!("{fault:?}")))
        })?;
        summary.gaps.extend(gaps);
        Ok(())
    });
    // This failure concerns the new store, not the reading of the old one.
    if let Some(broken) = broken {
        return Err(StoreFault::Disk(std::io::Error::other(broken)));
    }
    match outcome {
        Ok(()) => {}
        Err(StoreFault::Disk(error)) => return Err(error.into()),
        Err(fault) => summary.gaps.push(fault.into_error("be read", old).to_string()),
    }
    grace_shares::withhold(new)?;
    all.commit()?;
    Ok(summary)
}

/// Keeps the larger grant, also for an application that the new store does not contain, since it may be restored. So
/// the newest day is transferred, and every earlier one is closed.
fn grant(new: &Connection, line: &LedgerLine) -> Result<(), StoreFault> {
    new.prepare_cached(
        "INSERT INTO ledger (day, application, granted, grace)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET granted = max(granted, excluded.granted), grace = max(grace, excluded.grace)",
    )?
    .execute(params![line.day, line.application, line.granted, line.grace])?;
    Ok(())
}

/// Keeps the larger usage, which includes that of the backup.
fn keep_usage(new: &Connection, line: &UsageLine) -> Result<(), StoreFault> {
    let of_day = params![line.day, line.application];
    let known: i64 = new
        .prepare_cached(
            "SELECT coalesce(sum(units), 0) FROM (
                 SELECT * FROM usage_days UNION ALL SELECT day, application, units FROM usage_nodes
             ) WHERE (day, application) = (?1, ?2)",
        )?
        .query_row(of_day, |row| row.get(0))?;
    let units = i64::try_from(line.units).unwrap_or(i64::MAX);
    if units > known {
        new.prepare_cached("DELETE FROM usage_nodes WHERE (day, application) = (?1, ?2)")?.execute(of_day)?;
        new.prepare_cached(
            "INSERT OR REPLACE INTO usage_days (day, application, units) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![line.day, line.application, units])?;
    }
    Ok(())
}

/// Keeps the larger number of requests, which includes those of the backup.
fn keep_requests(new: &Connection, line: &RequestsLine) -> Result<(), StoreFault> {
    let of_kind = params![line.day, line.application, line.endpoint, line.outcome];
    let kind = "(day, application, endpoint, outcome) = (?1, ?2, ?3, ?4)";
    let known = format!(
        "SELECT coalesce(sum(requests), 0) FROM (
             SELECT requests FROM request_days WHERE {kind} UNION ALL SELECT requests FROM request_nodes WHERE {kind}
         )"
    );
    let known: i64 = new.prepare_cached(&known)?.query_row(of_kind, |row| row.get(0))?;
    let requests = i64::try_from(line.requests).unwrap_or(i64::MAX);
    if requests > known {
        new.prepare_cached(&format!("DELETE FROM request_nodes WHERE {kind}"))?.execute(of_kind)?;
        let RequestsLine { day, application, endpoint, outcome, .. } = line;
        new.prepare_cached("INSERT OR REPLACE INTO request_days VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![day, application, endpoint, outcome, requests])?;
    }
    Ok(())
}

/// Keeps revocations and the earlier expiry, which a rotation may have set.
fn transfer_expiry(
    new: &Connection,
    line: &KeyLine,
    summary: &mut TransferSummary,
) -> Result<(), StoreFault> {
    let Some(digest) = Digest::from_hex(&line.digest) else { return Ok(()) };
    let existing: Option<(bool, Option<i64>)> = new
        .prepare_cached("SELECT revoked_at IS NOT NULL, expires_at FROM keys WHERE digest = ?1")?
        .query_row([digest.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let instant = |text: &Option<String>| text.as_deref().map(millis).transpose();
    let (revoked_at, expires_at) = (instant(&line.revoked_at)?, instant(&line.expires_at)?);
    let Some((is_revoked, current)) = existing else {
        summary.lost += u64::from(revoked_at.is_none());
        return Ok(());
    };
    if is_revoked {
        return Ok(());
    }
    let earlier = expires_at.filter(|at| current.is_none_or(|current| *at < current));
    if revoked_at.is_some() {
        summary.revoked += 1;
    } else if earlier.is_some() {
        summary.ended += 1;
    } else {
        return Ok(());
    }
    new.prepare_cached(
        "UPDATE keys SET revoked_at = ?2, expires_at = coalesce(?3, expires_at) WHERE digest = ?1",
    )?
    .execute(params![digest.as_bytes(), revoked_at, earlier])?;
    Ok(())
}

/// Marks a day's quota as completely granted for every application.
pub(super) fn forfeit(new: &Connection, today: Day) -> Result<Day, StoreFault> {
    let day = ledger::day(new)?.map_or(today, |newest| newest.max(today));
    new.execute(
        "INSERT INTO ledger (day, application, granted, grace) SELECT ?1, id, ?2, ?2 FROM applications WHERE true
         ON CONFLICT DO UPDATE SET granted = excluded.granted, grace = excluded.grace",
        params![day.to_string(), u32::MAX],
    )?;
    Ok(day)
}
