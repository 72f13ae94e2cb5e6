//! Mail to be sent. The rules are in `store::mail_queue`.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::statements::readable;
use crate::sql::mail_queue::mail;
use crate::stored::{millis, stored};
use crate::{ClaimedMail, MailClaim, MailKind, NewMail};

/// Claims mails that are due, links first: they expire soon. Unreadable ones are claimed and skipped.
pub(super) fn claim(connection: &Connection, claim: &MailClaim) -> Result<Vec<ClaimedMail>, StoreFault> {
    let claimed = readable(
        connection,
        "UPDATE mail_queue SET due_at = ?2, attempts = attempts + 1
         WHERE message_id IN (
             SELECT message_id FROM mail_queue WHERE due_at <= ?1 AND (kind = 'webhook') = ?4
             ORDER BY kind <> 'sign_in', due_at, message_id LIMIT ?3)
         RETURNING message_id, kind, recipient, subject, text, html, created_at, expires_at, attempts",
        params![millis(claim.now), millis(claim.until), stored(claim.limit), claim.webhooks],
        |row| mail(row),
    )?;
    let mut claimed: Vec<ClaimedMail> = claimed.into_iter().flatten().collect();
    // SQLite returns changed rows in any order.
    claimed.sort_by(|one, other| {
        let order = |mail: &NewMail| (mail.kind != MailKind::SignIn, mail.created_at);
        (order(&one.mail), &one.mail.message_id).cmp(&(order(&other.mail), &other.mail.message_id))
    });
    Ok(claimed)
}
