//! Mail to be sent. The rules are in `store::mail_queue`.

use rusqlite::{Connection, Row, params};

use super::fault::StoreFault;
use super::statements::Statements as _;
use super::{audit, records};
use crate::stored::{millis, stored};
use crate::{ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailOutcome, NewMail, NewNotice};
use scoregate_base::clock::Wall;

/// Queues mails that are not queued yet.
pub(super) fn add(connection: &Connection, mails: &[NewMail]) -> Result<(), StoreFault> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO mail_queue
             (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7, 0)",
    )?;
    for mail in mails {
        insert.execute(params![
            mail.message_id,
            mail.kind.word(),
            mail.recipient,
            mail.subject,
            mail.text,
            mail.html,
            millis(mail.created_at),
            millis(mail.expires_at)
        ])?;
    }
    Ok(())
}

/// Queues the first mails of a notice with its audit record.
pub(super) fn add_notice(connection: &Connection, notice: &NewNotice) -> Result<(), StoreFault> {
    add(connection, &notice.mails)?;
    audit::add(connection, notice.at, [&notice.who, NewNotice::WORD, "", &notice.audited()])
}

/// Claims mails that are due, links first: they expire soon. Unreadable ones are claimed and skipped.
pub(super) fn claim(connection: &Connection, claim: &MailClaim) -> Result<Vec<ClaimedMail>, StoreFault> {
    let mut claimed = connection.readable(
        "UPDATE mail_queue SET due_at = ?2, attempts = attempts + 1
         WHERE message_id IN (
             SELECT message_id FROM mail_queue WHERE due_at <= ?1 ORDER BY kind <> 'sign_in', due_at, message_id LIMIT ?3)
         RETURNING message_id, kind, recipient, subject, text, html, created_at, expires_at, attempts",
        params![millis(claim.now), millis(claim.until), stored(claim.limit)],
        mail,
    )?;
    // SQLite returns changed rows in any order.
    claimed.sort_by(|one, other| {
        let order = |mail: &NewMail| (mail.kind != MailKind::SignIn, mail.created_at);
        (order(&one.mail), &one.mail.message_id).cmp(&(order(&other.mail), &other.mail.message_id))
    });
    Ok(claimed)
}

/// The mail of a row.
fn mail(row: &Row<'_>) -> Result<ClaimedMail, StoreFault> {
    let kind = records::text(row, 1, "kind")?;
    Ok(ClaimedMail {
        mail: NewMail {
            kind: MailKind::parse(&kind)
                .ok_or_else(|| StoreFault::Record(format!("{kind:?} is not a kind of mail")))?,
            recipient: records::text(row, 2, "recipient")?,
            subject: records::text(row, 3, "subject")?,
            text: records::text(row, 4, "text")?,
            html: records::text(row, 5, "html")?,
            message_id: records::text(row, 0, "message_id")?,
            created_at: records::time(row, 6, "created_at")?,
            expires_at: records::time(row, 7, "expires_at")?,
        },
        attempt: records::limit(row, 8, "attempts")?.unwrap_or_default(),
    })
}

/// Records the results of attempts whose claims were not taken over.
pub(super) fn record(connection: &Connection, attempts: &[MailAttempt]) -> Result<(), StoreFault> {
    let remove = "DELETE FROM mail_queue WHERE message_id = ?1 AND attempts = ?2";
    let retry = "UPDATE mail_queue SET due_at = ?3, last_error = ?4 WHERE message_id = ?1 AND attempts = ?2";
    for MailAttempt { message_id, attempt, outcome } in attempts {
        match outcome {
            MailOutcome::Remove => connection.run(remove, params![message_id, attempt])?,
            MailOutcome::Retry { at, reason } => {
                connection.run(retry, params![message_id, attempt, millis(*at), reason])?
            }
        };
    }
    Ok(())
}

/// The number of queued mails, and the oldest one.
pub(super) fn backlog(connection: &Connection) -> Result<MailBacklog, StoreFault> {
    let select = "SELECT (SELECT count(*) FROM mail_queue), min(created_at), last_error FROM mail_queue";
    let (mails, oldest, last_error): (i64, Option<i64>, _) = connection.one(select, [])?;
    let oldest = oldest.map(|at| Wall::from_millis(at.unsigned_abs()));
    Ok(MailBacklog { mails: mails.unsigned_abs(), oldest, last_error })
}
