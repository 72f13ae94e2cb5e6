//! Mail to be sent. The rules are in `store::mail_queue`.

use super::rows::{RowResult, SqlRow};
use super::tables::SqlField::{Number, Text, Time};
use super::tables::{SqlDone, SqlTables};
use crate::stored::stored;
use crate::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailLane, MailOutcome, NewMail,
    NewNotice, OPERATOR,
};

/// Links come first: they expire soon. Then the first mails of all recipients come before their second ones. The time is compared
/// again because another gateway may have claimed an email since it was selected.
const CLAIM: &str = "
WITH due AS MATERIALIZED (
    SELECT message_id FROM {schema}.mail_queue WHERE due_at <= $1 AND message_id IN (
        SELECT message_id FROM (
            SELECT message_id, kind, due_at, row_number() OVER (PARTITION BY recipient ORDER BY due_at, message_id) AS turn
            FROM {schema}.mail_queue
            WHERE due_at <= $1 AND {lane} AND {position}($5, ',' || recipient || ',') = 0
        ) waiting
        WHERE turn <= $4 ORDER BY kind <> 'sign_in', turn, due_at, message_id LIMIT $3)
    {skip_locked}
)
UPDATE {schema}.mail_queue SET due_at = $2, attempts = attempts + 1 WHERE message_id IN (SELECT message_id FROM due)
RETURNING message_id, kind, recipient, subject, text, html, created_at, expires_at, CAST(attempts AS bigint) AS attempts";
const REMOVE: &str = "DELETE FROM {schema}.mail_queue WHERE message_id = $1 AND attempts = $2";
const RETRY: &str = "
UPDATE {schema}.mail_queue SET due_at = $3, last_error = $4 WHERE message_id = $1 AND attempts = $2";
const BACKLOG: &str = "
SELECT (SELECT count(*) FROM {schema}.mail_queue WHERE kind <> 'webhook') AS mails, o.created_at, o.last_error
FROM (SELECT 1) one
LEFT JOIN (SELECT created_at, last_error FROM {schema}.mail_queue WHERE kind <> 'webhook' ORDER BY created_at LIMIT 1) o ON true";

/// Queues the first mails of a notice with its audit record.
pub(crate) async fn add_notice<T: SqlTables>(tables: T, notice: &NewNotice) -> SqlDone<T, ()> {
    tables.lock().await?;
    tables.queue_mail(&notice.mails).await?;
    tables
        .audit(
            notice.at,
            [&notice.who, NewNotice::WORD, "", &notice.audited()],
        )
        .await
}

/// Claims mails that are due. Unreadable ones are claimed and skipped.
pub(crate) async fn claim<T: SqlTables>(
    tables: T,
    claim: &MailClaim,
) -> SqlDone<T, Vec<ClaimedMail>> {
    let lane = match claim.lane {
        MailLane::Mail => "kind <> 'webhook'",
        MailLane::Operator => "kind = 'webhook' AND recipient = '{operator}'",
        MailLane::Owners => "kind = 'webhook' AND recipient <> '{operator}'",
    };
    let statement = CLAIM
        .replace("{skip_locked}", T::SKIP_LOCKED)
        .replace("{position}", T::POSITION)
        .replace("{lane}", lane)
        .replace("{operator}", OPERATOR);
    let except = format!(",{},", claim.except.join(","));
    let values = [
        Time(claim.now),
        Time(claim.until),
        Number(stored(claim.limit)),
        Number(stored(claim.each)),
        Text(&except),
    ];
    let mut claimed = tables.list(&statement, &values, mail).await?;
    // Changed rows are returned in any order.
    claimed.sort_by(|one, other| {
        let order = |mail: &NewMail| (mail.kind != MailKind::SignIn, mail.created_at);
        (order(&one.mail), &one.mail.message_id).cmp(&(order(&other.mail), &other.mail.message_id))
    });
    Ok(claimed)
}

/// The mail of a row. Other kinds are of a newer release, or come from manual edits.
fn mail(row: &SqlRow<'_>) -> RowResult<Option<ClaimedMail>> {
    let Some(kind) = MailKind::parse(&row.text("kind")?) else {
        return Ok(None);
    };
    let mail = NewMail {
        kind,
        recipient: row.text("recipient")?,
        subject: row.text("subject")?,
        text: row.text("text")?,
        html: row.text("html")?,
        webhook: String::new(),
        message_id: row.text("message_id")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
    };
    Ok(Some(ClaimedMail {
        mail,
        attempt: row.small_number("attempts")?,
    }))
}

/// Records the results of attempts whose claims were not taken over.
pub(crate) async fn record<T: SqlTables>(tables: T, attempts: &[MailAttempt]) -> SqlDone<T, ()> {
    for MailAttempt {
        message_id,
        attempt,
        outcome,
    } in attempts
    {
        let mail = Text(message_id);
        let attempt = Number(i64::from(*attempt));
        match outcome {
            MailOutcome::Remove => tables.run(REMOVE, &[mail, attempt]).await?,
            MailOutcome::Retry { at, reason } => {
                tables
                    .run(RETRY, &[mail, attempt, Time(*at), Text(reason)])
                    .await?
            }
        };
    }
    Ok(())
}

/// The number of queued mails, and the oldest one.
pub(crate) async fn backlog<T: SqlTables>(tables: T) -> SqlDone<T, MailBacklog> {
    let backlog = |row: &SqlRow<'_>| {
        let mails = row.number("mails")?;
        let oldest = row.optional_time("created_at")?;
        Ok(MailBacklog {
            mails,
            oldest,
            last_error: row.optional_text("last_error")?,
        })
    };
    Ok(tables
        .find(BACKLOG, &[], backlog)
        .await?
        .unwrap_or_default())
}
