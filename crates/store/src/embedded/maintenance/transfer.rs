//! Transfers what a replaced store knows to its successor: grants, requests, closed days, revoked and expired keys,
//! limits, suspended owners, and the content of the status page. A backup does not contain what came after it, and a day's quota must not be granted twice.
//!
//! Applications and keys created after the backup are not transferred; they stay in the replaced store.

use std::collections::BTreeSet;
use std::path::Path;

use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, OptionalExtension as _, params, params_from_iter};

use super::dump::CUT;
use super::walk::walk;
use super::{read_only, rows};
use crate::dump::{
    ApplicationLine, DumpLine, KeyLine, LedgerLine, OwnerLine, RequestsLine, StatusMessageLine,
    TABLES,
};
use crate::embedded::fault::{FileResult, StoreFault};
use crate::embedded::integrity;
use crate::embedded::statements::{find, one, run};
use crate::sql::request_totals::KEY;
use crate::stored::stored;
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::Digest;
use scoregate_base::plans::Tier;

/// The transferred facts.
#[derive(Clone, Debug, Default)]
pub struct TransferSummary {
    /// Keys revoked in the old store and in force in the new one.
    pub revoked: u64,
    /// Keys with an earlier expiry in the old store.
    pub ended: u64,
    /// Applications with another tier or other limits in the old store.
    pub limits: u64,
    /// Keys that the new store does not contain.
    pub lost: u64,
    /// Why grants and revocations since the backup are unknown; empty if all are known.
    pub gaps: Vec<String>,
}

/// Transfers everything readable of `old`: the larger grant per day and application, all revocations, the earlier
/// expiry of each key, and the limits of each application. Returns whether `old` is a later state of the new store.
pub(super) fn from_old(
    old: &Path,
    new: &Connection,
    summary: &mut TransferSummary,
) -> FileResult<bool> {
    let all = new.unchecked_transaction()?;
    // Days get the larger grants, from which windows are counted anew.
    new.execute("DELETE FROM ledger_windows", [])?;
    let before = summary.clone();
    let mut broken = None::<String>;
    let outcome = read_only::with(old, true, |store| {
        let snapshot = store.unchecked_transaction()?;
        summary.clone_from(&before); // on a second run, the first result is discarded
        if integrity::is_cut(&snapshot, old)? {
            summary.gaps.push(CUT.into());
        }
        for table in TABLES.iter().filter(|table| table.kind != "audit") {
            let gaps = walk(&snapshot, table, true, &mut |line| {
                keep(new, &line, summary).inspect_err(|fault| broken = Some(format!("{fault:?}")))
            })?;
            summary.gaps.extend(gaps);
        }
        keep_ends_of_limits(&snapshot, new)?;
        integrity::of_grants_and_keys(&snapshot)?;
        is_successor(&snapshot, new)
    });
    // This failure concerns the new store, not the reading of the old one.
    if let Some(broken) = broken {
        return Err(StoreFault::Disk(std::io::Error::other(broken)));
    }
    let is_successor = match outcome {
        Ok(is_successor) => is_successor,
        Err(StoreFault::Disk(error)) => return Err(error.into()),
        Err(fault) => {
            summary
                .gaps
                .push(fault.into_error("be read", old).to_string());
            false
        }
    };
    all.commit()?;
    Ok(is_successor)
}

/// Whether `old` contains the last audit record of `new`: records are only added. Without one, whether it contains all
/// applications.
fn is_successor(old: &Connection, new: &Connection) -> FileResult<bool> {
    let record = |store: &Connection, id: Option<i64>| -> rusqlite::Result<Option<(i64, String)>> {
        let mut select = store.prepare(
            "SELECT id, json_array(at, who, what, application, detail) FROM audit
             WHERE id = coalesce(?1, (SELECT max(id) FROM audit))",
        )?;
        select
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
    };
    if let Some(last) = record(new, None)? {
        return Ok(record(old, Some(last.0))? == Some(last));
    }
    let applications = |store: &Connection| -> rusqlite::Result<BTreeSet<String>> {
        store
            .prepare("SELECT id FROM applications")?
            .query_map([], |row| row.get(0))?
            .collect()
    };
    Ok(applications(new)?.is_subset(&applications(old)?))
}

/// Keeps what the new store lacks.
fn keep(new: &Connection, line: &DumpLine, summary: &mut TransferSummary) -> FileResult<()> {
    match line {
        DumpLine::Ledger(line) => grant(new, line),
        DumpLine::Requests(line) => keep_total(new, line),
        DumpLine::Key(line) => transfer_expiry(new, line, summary),
        // If known too, the minute is ready, or its data fresh, if one of both says so.
        DumpLine::Availability(line) => Ok(rows::insert_minutes(
            line,
            new,
            "ON CONFLICT (minute) DO UPDATE
             SET is_ready = max(is_ready, excluded.is_ready), is_fresh = max(is_fresh, excluded.is_fresh)",
        )?),
        DumpLine::StatusMessage(message) => keep_message(new, message, line),
        DumpLine::Owner(line) => keep_owner(new, line),
        DumpLine::Application(line) => keep_limits(new, line, summary),
        DumpLine::Audit(_) | DumpLine::End(_) => Ok(()),
    }
}

/// Keeps the larger grant, also for an application that the new store does not contain, since it may be restored. So
/// the newest day is transferred, and every earlier one is closed.
fn grant(new: &Connection, line: &LedgerLine) -> FileResult<()> {
    let keep = "INSERT INTO ledger_days (day, application, granted) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET granted = max(granted, excluded.granted)";
    run(new, keep, params![line.day, line.application, line.granted]).map(drop)
}

/// A message is not added to another incident that has its number.
fn keep_message(new: &Connection, message: &StatusMessageLine, line: &DumpLine) -> FileResult<()> {
    let StatusMessageLine {
        id,
        incident,
        title,
        ..
    } = message;
    let (is_missing,) = one(
        new,
        "SELECT NOT EXISTS (SELECT 1 FROM status_messages WHERE id = ?1)
            AND (?1 = ?2 OR EXISTS (SELECT 1 FROM status_messages WHERE id = ?2 AND title = ?3))",
        params![id.cast_signed(), incident.cast_signed(), title],
    )?;
    if is_missing {
        rows::insert(line, new)
    } else {
        Ok(())
    }
}

/// Keeps suspensions, tiers and the choice of notices. Other owners and changes since the backup stay in the replaced store.
fn keep_owner(new: &Connection, line: &OwnerLine) -> FileResult<()> {
    let keep =
        "UPDATE owners SET suspended_at = coalesce(suspended_at, ?2), tier = ?3, notices = ?4
        WHERE id = ?1";
    let OwnerLine {
        id,
        tier,
        notices,
        suspended_at,
        ..
    } = line;
    run(
        new,
        keep,
        params![id, millis(suspended_at.as_ref()), tier, notices],
    )
    .map(drop)
}

/// Keeps when limits end.
fn keep_ends_of_limits(old: &Connection, new: &Connection) -> FileResult<()> {
    let mut select = old.prepare("SELECT application, until, minute, day FROM limits_until")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let values: [SqlValue; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
        let keep = "INSERT OR REPLACE INTO limits_until SELECT id, ?2, ?3, ?4 FROM applications WHERE id = ?1";
        run(new, keep, params_from_iter(values))?;
    }
    Ok(())
}

/// Keeps the tier and the limits of its own, without an end that the backup may state.
fn keep_limits(
    new: &Connection,
    line: &ApplicationLine,
    summary: &mut TransferSummary,
) -> FileResult<()> {
    let ApplicationLine {
        id,
        tier,
        own_minute,
        own_day,
        ..
    } = line;
    summary.limits += run(
        new,
        "UPDATE applications SET tier = ?2, own_minute = ?3, own_day = ?4
         WHERE id = ?1 AND (tier, own_minute, own_day) IS NOT (?2, ?3, ?4)",
        params![id, tier, own_minute, own_day],
    )?;
    run(new, "DELETE FROM limits_until WHERE application = ?1", [id]).map(drop)
}

/// A time of a verified line as stored.
fn millis(text: Option<&String>) -> Option<i64> {
    text.and_then(|text| Wall::parse_rfc3339(text))
        .map(|at| at.millis().cast_signed())
}

/// Keeps the larger total, which includes that of the backup.
fn keep_total(new: &Connection, line: &RequestsLine) -> FileResult<()> {
    let statement = |text: &str| {
        text.replace("{of}", "WHERE ({key}) = (?1, ?2, ?3, ?4)")
            .replace("{key}", KEY)
    };
    let RequestsLine {
        day,
        application,
        endpoint,
        outcome,
        requests,
    } = line;
    let key = [day, application, endpoint, outcome];
    let known = statement(
        "SELECT coalesce(sum(requests), 0) FROM (
             SELECT requests FROM request_days {of} UNION ALL SELECT requests FROM request_nodes {of})",
    );
    let (known,): (i64,) = one(new, &known, key)?;
    let total = stored(*requests);
    if total > known {
        run(new, &statement("DELETE FROM request_nodes {of}"), key)?;
        let keep = statement(
            "INSERT OR REPLACE INTO request_days ({key}, requests) VALUES (?1, ?2, ?3, ?4, ?5)",
        );
        run(
            new,
            &keep,
            params![day, application, endpoint, outcome, total],
        )?;
    }
    Ok(())
}

/// Keeps revocations and the earlier expiry, which a rotation may have set.
fn transfer_expiry(
    new: &Connection,
    line: &KeyLine,
    summary: &mut TransferSummary,
) -> FileResult<()> {
    let Some(digest) = Digest::from_hex(&line.digest) else {
        return Ok(());
    };
    let select = "SELECT revoked_at IS NOT NULL, expires_at FROM keys WHERE digest = ?1";
    let existing: Option<(bool, Option<i64>)> = find(new, select, [digest.as_bytes()])?;
    let [revoked_at, expires_at] =
        [&line.revoked_at, &line.expires_at].map(|at| millis(at.as_ref()));
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
    let end =
        "UPDATE keys SET revoked_at = ?2, expires_at = coalesce(?3, expires_at) WHERE digest = ?1";
    run(new, end, params![digest.as_bytes(), revoked_at, earlier]).map(drop)
}

/// Closes a day: marks its quota as completely granted for every application.
pub(super) fn close(new: &Connection, day: Day) -> FileResult<()> {
    new.execute(
        "INSERT INTO ledger_days (day, application, granted) SELECT ?1, id, ?2 FROM applications WHERE true
         ON CONFLICT DO UPDATE SET granted = excluded.granted",
        params![day.to_string(), u32::MAX],
    )?;
    Ok(())
}

/// The units of a day that are not granted; `None` if a tier is unknown.
pub(super) fn remaining(new: &Connection, day: Day, tiers: &[Tier]) -> FileResult<Option<u64>> {
    let mut select = new.prepare(
        "SELECT tier, own_day, coalesce(granted, 0) FROM applications
         LEFT JOIN ledger_days ON application = applications.id AND day = ?1",
    )?;
    let mut rows = select.query([day.to_string()])?;
    let mut units = 0;
    while let Some(row) = rows.next()? {
        let tier: String = row.get(0)?;
        let own: Option<i64> = row.get(1)?;
        let granted: i64 = row.get(2)?;
        let of_tier = || Some(tiers.iter().find(|one| one.name == tier)?.limits.day.into());
        let Some(quota) = own.or_else(of_tier) else {
            return Ok(None);
        };
        units += u64::try_from(quota.saturating_sub(granted)).unwrap_or_default();
    }
    Ok(Some(units))
}
