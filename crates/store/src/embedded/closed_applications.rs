//! Applications that were closed today, by the digest of their owner's mailbox. The rule is `check_creation` in
//! `store::owners`.
//!
//! Every closing is stored, and the units are read when another application is created: another process may lease units
//! for a key for a moment after its revocation.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::ledger;
use super::statements::{AnyText, Statements as _};
use scoregate_base::clock::Day;
use scoregate_base::keys::{Digest, OwnerId};

/// Stores that an application is being closed, while it still has its owner.
pub(super) fn add(connection: &Connection, application: &str, day: Day) -> Result<(), StoreFault> {
    let digest = mailbox_digest(
        connection,
        "SELECT mailbox FROM owners WHERE id = (SELECT owner FROM owned_applications WHERE application = ?1)",
        application,
    )?;
    let Some(digest) = digest else { return Ok(()) };
    let insert =
        "INSERT OR REPLACE INTO closed_applications (mailbox_digest, application, day) VALUES (?1, ?2, ?3)";
    connection.run(insert, params![digest.as_bytes(), application, day.to_string()]).map(drop)
}

/// The number of applications of an owner's mailbox that were closed on a day and used units of it.
pub(super) fn used_on(connection: &Connection, owner: OwnerId, day: Day) -> Result<usize, StoreFault> {
    let digest = mailbox_digest(connection, "SELECT mailbox FROM owners WHERE id = ?1", &owner.to_string())?;
    let Some(digest) = digest else { return Ok(0) };
    let (used,): (i64,) = connection.one(
        "SELECT count(*) FROM closed_applications c JOIN ledger l ON l.day = c.day AND l.application = c.application
         WHERE c.mailbox_digest = ?1 AND c.day = ?2 AND l.granted > 0",
        params![digest.as_bytes(), day.to_string()],
    )?;
    Ok(usize::try_from(used).unwrap_or(usize::MAX))
}

fn mailbox_digest(connection: &Connection, select: &str, id: &str) -> Result<Option<Digest>, StoreFault> {
    let mailbox: Option<(AnyText,)> = connection.find(select, [id])?;
    Ok(mailbox.map(|(AnyText(mailbox),)| Digest::of(&mailbox)))
}

/// Deletes a batch of those closed before the current day of the ledger. Returns their number.
pub(super) fn delete_outdated(connection: &Connection) -> Result<u64, StoreFault> {
    let Some(today) = ledger::day(connection)? else { return Ok(0) };
    connection.run(
        "DELETE FROM closed_applications WHERE (mailbox_digest, application) IN
         (SELECT mailbox_digest, application FROM closed_applications WHERE day < ?1 LIMIT 500)",
        [today.to_string()],
    )
}
