//! Merges the records of a replaced store into its successor: grants, requests, closed days, revoked and expired keys,
//! limits, suspended owners, and the content of the status page. A backup lacks later changes, but a day's quota must
//! not be granted twice.
//!
//! Applications and keys that were created after the backup are not merged. They remain in the replaced store.

use std::path::Path;

use super::{inspect, read_only};
use crate::{
    embedded::integrity,
    local::is_unusable,
    statements::{Done, Fault, FileConnection, Tables, done},
};

/// The transferred facts.
#[derive(Clone, Debug, Default)]
pub struct TransferSummary {
    /// Keys that are revoked in the old store but active in the new one.
    pub revoked: u64,
    /// Keys with an earlier expiry in the old store.
    pub ended: u64,
    /// Applications whose tier or limits are different in the old store.
    pub limits: u64,
    /// Keys that the new store does not contain.
    pub lost: u64,
    /// Why grants and revocations since the backup are unknown; empty if all are known.
    pub gaps: Vec<String>,
}

/// Keeps the larger grant, even for an application that is missing from the new store, since it may be restored later.
/// This also transfers the newest day, which closes every earlier day.
const GRANTS: &str = "
INSERT INTO ledger_days SELECT * FROM old.ledger_days WHERE granted BETWEEN 0 AND 4294967295
ON CONFLICT DO UPDATE SET granted = max(granted, excluded.granted)";

/// Transfers revocations. A key that is revoked in both stores keeps its revocation time.
const REVOKED: &str = "
UPDATE keys AS n SET revoked_at = o.revoked_at FROM old.keys o
WHERE o.digest = n.digest AND n.revoked_at IS NULL AND o.revoked_at IS NOT NULL";

/// Transfers the earlier expiry, which a rotation may have set.
const ENDED: &str = "
UPDATE keys AS n SET expires_at = o.expires_at FROM old.keys o
WHERE o.digest = n.digest AND n.revoked_at IS NULL AND (n.expires_at IS NULL OR o.expires_at < n.expires_at)
    AND o.expires_at IS NOT NULL";

const LIMITS: &str = "
UPDATE applications AS n SET tier = o.tier, own_limits = o.own_limits FROM old.applications o
WHERE o.id = n.id AND (n.tier, n.own_limits) IS NOT (o.tier, o.own_limits)";

/// Transfers the end times of limits, and removes end times that only the backup has.
const ENDS_OF_LIMITS: &str = "
INSERT OR REPLACE INTO limits_until SELECT * FROM old.limits_until WHERE application IN (SELECT id FROM main.applications);
DELETE FROM limits_until WHERE application IN (SELECT id FROM old.applications EXCEPT SELECT application FROM old.limits_until)";

/// Transfers suspensions, tiers, limits and the selection of notices. Other owners, and other changes since the backup,
/// remain in the replaced store.
const OWNERS: &str = "
UPDATE owners AS n SET suspended_at = coalesce(n.suspended_at, o.suspended_at), tier = o.tier, own_limits = o.own_limits,
    notices = o.notices
FROM old.owners o WHERE o.id = n.id";

/// For each total, keeps the larger of the two stores' sums over all processes. Both sums include the backup's total.
const REQUESTS: &str = "
CREATE TEMP TABLE totals AS SELECT day, application, endpoint, outcome, max(requests) FROM (
    SELECT day, application, endpoint, outcome, sum(requests) AS requests FROM (
        SELECT 'new' AS store, * FROM main.request_days
        UNION ALL SELECT 'new', day, application, endpoint, outcome, requests FROM main.request_nodes
        UNION ALL SELECT 'old', * FROM old.request_days
        UNION ALL SELECT 'old', day, application, endpoint, outcome, requests FROM old.request_nodes
    ) GROUP BY store, day, application, endpoint, outcome
) GROUP BY day, application, endpoint, outcome;
DELETE FROM request_nodes;
DELETE FROM request_days;
INSERT INTO request_days SELECT * FROM totals;
DROP TABLE totals";

/// Transfers the accounts and tiers that applied on earlier days.
const USAGE_TERMS: &str = "INSERT OR REPLACE INTO usage_terms SELECT * FROM old.usage_terms";

/// A minute counts as ready, or its data as fresh, if either store records that.
const MINUTES: &str = "
INSERT INTO status_minutes SELECT * FROM old.status_minutes WHERE true
ON CONFLICT DO UPDATE SET is_ready = max(is_ready, excluded.is_ready), is_fresh = max(is_fresh, excluded.is_fresh)";

/// Skips messages of an incident whose number belongs to another incident in the new store.
const MESSAGES: &str = "
INSERT OR IGNORE INTO status_messages SELECT * FROM old.status_messages o
WHERE NOT EXISTS (SELECT 1 FROM main.status_messages n WHERE n.id = o.incident AND n.title <> o.title)";

/// Active keys that the new store does not contain.
const LOST: &str = "
SELECT count(*) AS lost FROM old.keys WHERE revoked_at IS NULL AND digest NOT IN (SELECT digest FROM main.keys)";

/// Whether the old store contains the last audit record of the new one. This is enough, because records are only added. If the
/// new store has no audit records: whether the old store contains all of the new store's applications.
const IS_SUCCESSOR: &str = "
SELECT CASE WHEN EXISTS (SELECT 1 FROM main.audit) THEN EXISTS (
    SELECT 1 FROM old.audit o JOIN main.audit n USING (id, at, who, what, application, detail)
    WHERE id = (SELECT max(id) FROM main.audit)
) ELSE NOT EXISTS (SELECT id FROM main.applications EXCEPT SELECT id FROM old.applications) END AS is_successor";

/// Merges all readable records of `old`. Returns whether `old` is a later state of the new store.
pub fn from_old(old: &Path, new: &FileConnection, summary: &mut TransferSummary) -> Done<bool> {
    let unreadable = read_only::at(old, |file| {
        let store = &*file.lock();
        if integrity::is_cut(store, old)? {
            return Err(Fault::Record("its last page is truncated".into()));
        }
        integrity::of_grants_and_keys(store)?;
        inspect::unreadable(Tables::File(file))
    });
    match unreadable {
        Ok(unreadable) => summary.gaps.extend(unreadable),
        Err(Fault::Disk(error)) => return Err(error.into()),
        Err(fault) => summary
            .gaps
            .push(fault.into_error("be read", old).to_string()),
    }
    if let Err(fault) = read_only::attach(&new.lock(), old) {
        let error = fault.into_error("be read", old);
        summary.gaps.push(error.to_string());
        return Ok(false);
    }
    let is_successor = merge(new, old, summary)?;
    read_only::detach(&new.lock())?;
    summary.gaps.dedup();
    Ok(is_successor)
}

/// Merges table by table. A table that cannot be read is a gap. There is no transaction, because it could not be
/// committed after a read error.
fn merge(file: &FileConnection, old: &Path, summary: &mut TransferSummary) -> Done<bool> {
    let new = file.lock();
    let tables = Tables::File(file);
    // Windows are recomputed from their days, each of which gets the larger grant of the two stores.
    new.execute("DELETE FROM ledger_windows", [])?;
    let gaps = &mut summary.gaps;
    for (changed, statement) in [
        (&mut summary.revoked, REVOKED),
        (&mut summary.ended, ENDED),
        (&mut summary.limits, LIMITS),
        (&mut 0, GRANTS),
    ] {
        *changed += read(done(tables.run(statement, &[])), old, gaps)?;
    }
    for statements in [
        ENDS_OF_LIMITS,
        OWNERS,
        REQUESTS,
        USAGE_TERMS,
        MINUTES,
        MESSAGES,
    ] {
        let merged = new.execute_batch(statements);
        read(merged.map_err(Fault::from), old, gaps)?;
    }
    let lost = done(tables.find(LOST, &[], |row| row.number("lost")));
    summary.lost += read(lost, old, gaps)?.unwrap_or_default();
    let is_successor = done(tables.find(IS_SUCCESSOR, &[], |row| row.flag("is_successor")));
    Ok(read(is_successor, old, gaps)?.unwrap_or_default())
}

/// The result of a statement that reads the old store. An unreadable part is recorded as a gap.
fn read<T: Default>(done: Done<T>, old: &Path, gaps: &mut Vec<String>) -> Done<T> {
    match done {
        Err(Fault::File(error)) if is_unusable(&error) => {
            let error = Fault::from(error).into_error("be read", old);
            gaps.push(error.to_string());
            Ok(T::default())
        }
        done => done,
    }
}
