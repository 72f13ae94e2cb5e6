//! Deletes records about accounts that are outdated, in batches.

use rusqlite::{Connection, ToSql};

use super::fault::StoreFault;
use super::ledger;
use super::statements::run;
use crate::evidence::{HOUR_DAYS, KEY_DAYS};
use crate::notices::NOTICE_DAYS;
use crate::stored::millis;
use scoregate_base::clock::Day;
use scoregate_base::evidence::EVIDENCE_DAYS_KEPT;

/// Deletes links and sessions that expired before the current day of the ledger, applications that were closed before it,
/// old notices and old evidence. Returns their number.
pub(super) fn delete(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    let before = |days| today.number().saturating_sub(days);
    let tables: [(_, _, _, &dyn ToSql); 7] = [
        ("sign_in_links", "digest", "expires_at", &millis(today.start())),
        ("owner_sessions", "digest", "expires_at", &millis(today.start())),
        ("closed_applications", "mailbox_digest, application", "day", &today.to_string()),
        ("notices", "id", "at", &millis(Day::from_number(before(NOTICE_DAYS)).start())),
        ("evidence_days", "day, application", "day", &before(EVIDENCE_DAYS_KEPT)),
        ("evidence_hours", "hour, application, node", "hour", &(before(HOUR_DAYS) * 24)),
        ("evidence_keys", "day", "day", &before(KEY_DAYS)),
    ];
    // One after another: a failed deletion may have ended the transaction.
    let deleted = tables.into_iter().map(|(table, key, ends, today)| {
        let delete = format!(
            "DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} WHERE {ends} < ?1 LIMIT 500)"
        );
        run(connection, &delete, [today])
    });
    deleted.sum()
}
