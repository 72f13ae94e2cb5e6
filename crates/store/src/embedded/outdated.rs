//! Deletes records about accounts that are outdated, in batches.

use rusqlite::Connection;

use super::fault::StoreFault;
use super::ledger;
use super::statements::run;
use crate::stored::millis;

/// Deletes a batch of applications that were closed before the current day of the ledger. Returns their number.
pub(super) fn delete_closed(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    run(
        connection,
        "DELETE FROM closed_applications WHERE (mailbox_digest, application) IN
         (SELECT mailbox_digest, application FROM closed_applications WHERE day < ?1 LIMIT 500)",
        [today.to_string()],
    )
}

/// Deletes links and sessions that expired before the current day of the ledger. Returns their number.
pub(super) fn delete_expired(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    let today = millis(today.start());
    let mut deleted = 0;
    for table in ["sign_in_links", "owner_sessions"] {
        let delete = format!(
            "DELETE FROM {table} WHERE digest IN (SELECT digest FROM {table} WHERE expires_at < ?1 LIMIT 500)"
        );
        deleted += run(connection, &delete, [today])?;
    }
    Ok(deleted)
}
