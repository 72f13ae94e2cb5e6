//! Deletes records about accounts that are outdated, in batches.

use rusqlite::{Connection, ToSql};

use super::fault::StoreFault;
use super::ledger;
use super::statements::run;
use crate::notices::NOTICE_DAYS;
use crate::stored::millis;
use scoregate_base::clock::Day;

/// Deletes links and sessions that expired before the current day of the ledger, applications that were closed before it,
/// and old notices.
/// Returns their number.
pub(super) fn delete(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    let notices_until = Day::from_number(today.number().saturating_sub(NOTICE_DAYS));
    let tables: [(_, _, _, &dyn ToSql); 4] = [
        ("sign_in_links", "digest", "expires_at", &millis(today.start())),
        ("owner_sessions", "digest", "expires_at", &millis(today.start())),
        ("closed_applications", "mailbox_digest, application", "day", &today.to_string()),
        ("notices", "id", "at", &millis(notices_until.start())),
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
