//! Mail to be sent. The rules are in `store::mail_queue`.

use super::store::{
    Access::{Change, Read, Write},
    Store,
};
use crate::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailLane, MailOutcome, NewMail,
    NewNotice, OPERATOR, StoreResult,
    statements::{
        RowResult,
        SqlField::{Number, Text, Time},
        SqlRow,
    },
    stored::stored,
};

/// Sign-in links come first, because they expire soon. Then each recipient's first email comes before any recipient's second
/// email. The due time is compared again because another gateway may have claimed the email since it was selected.
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

impl Store {
    /// Queues emails. An email whose message id is already queued is ignored.
    pub async fn queue_mail(&self, mails: Vec<NewMail>) -> StoreResult<()> {
        self.run_for_accounts(Write, "queue mail", async move |tables| {
            tables.queue_mail(&mails).await
        })
        .await
    }

    /// Queues the first batch of an operator's emails to owners, with one audit record for all batches, in one transaction.
    pub async fn queue_notice(&self, notice: NewNotice) -> StoreResult<()> {
        self.run_for_accounts(Change, "queue mail", async move |tables| {
            tables.lock().await?;
            tables.queue_mail(&notice.mails).await?;
            let words = [&notice.who, NewNotice::WORD, "", &notice.audited()];
            tables.audit(notice.at, words).await
        })
        .await
    }

    /// Claims due emails. Recipients take turns, starting with the recipient whose email has been due longest. No email
    /// is claimed by two readers at the same time. Expired emails are claimed too, so that they are counted and
    /// removed. Unreadable emails are claimed and skipped.
    pub async fn claim_mail(&self, claim: MailClaim) -> StoreResult<Vec<ClaimedMail>> {
        let lane = match claim.lane {
            MailLane::Mail => "kind <> 'webhook'",
            MailLane::Operator => "kind = 'webhook' AND recipient = '{operator}'",
            MailLane::Owners => "kind = 'webhook' AND recipient <> '{operator}'",
        };
        let statement = CLAIM
            .replace("{lane}", lane)
            .replace("{operator}", OPERATOR);
        let mut claimed = self
            .run_for_accounts(Write, "claim mail", async move |tables| {
                let except = format!(",{},", claim.except.join(","));
                let values = [
                    Time(claim.now),
                    Time(claim.until),
                    Number(stored(claim.limit)),
                    Number(stored(claim.each)),
                    Text(&except),
                ];
                tables.list(&statement, &values, mail).await
            })
            .await?;
        // The statement returns changed rows in any order.
        claimed.sort_by_cached_key(|ClaimedMail { mail, .. }| {
            let is_other = mail.kind != MailKind::SignIn;
            (is_other, mail.created_at, mail.message_id.clone())
        });
        Ok(claimed)
    }

    /// Records the results of attempts, except those whose claims were taken over.
    pub async fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreResult<()> {
        let doing = "record the results of sent mail";
        self.run_for_accounts(Write, doing, async move |tables| {
            for sent in &attempts {
                let mail = Text(&sent.message_id);
                let attempt = Number(i64::from(sent.attempt));
                match &sent.outcome {
                    MailOutcome::Remove => tables.run(REMOVE, &[mail, attempt]).await?,
                    MailOutcome::Retry { at, reason } => {
                        tables
                            .run(RETRY, &[mail, attempt, Time(*at), Text(reason)])
                            .await?
                    }
                };
            }
            Ok(())
        })
        .await
    }

    /// The state of the queue.
    pub async fn mail_backlog(&self) -> StoreResult<MailBacklog> {
        let doing = "read the state of the mail queue";
        self.run_for_accounts(Read, doing, async |tables| {
            let found = tables
                .find(BACKLOG, &[], |row: &SqlRow<'_>| {
                    Ok(MailBacklog {
                        mails: row.number("mails")?,
                        oldest: row.optional_time("created_at")?,
                        last_error: row.optional_text("last_error")?,
                    })
                })
                .await?;
            Ok(found.unwrap_or_default())
        })
        .await
    }
}

/// The email of a row. Unknown kinds come from a newer release or from manual edits.
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
