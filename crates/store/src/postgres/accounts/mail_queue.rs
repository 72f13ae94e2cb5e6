//! Mail to be sent. The rules are in `store::mail_queue`.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{Parameter, RowColumns as _, SchemaClient, SqlResult};
use crate::postgres::keys::audit;
use crate::postgres::postgres_store::PostgresStore;
use crate::stored::{millis, stored};
use crate::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailOutcome, MailQueue, NewMail, NewNotice,
    StoreFuture,
};
use scoregate_base::clock::Wall;

const ADD: &str = "
INSERT INTO {schema}.mail_queue
    (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
SELECT m.*, m.created_at, 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::int8[])
    AS m (message_id, kind, recipient, subject, text, html, created_at, expires_at)
ON CONFLICT DO NOTHING";

/// Gateways skip each other's mails instead of waiting. Links come first: they expire soon.
const CLAIM: &str = "
WITH due AS (
    SELECT message_id FROM {schema}.mail_queue WHERE due_at <= $1
    ORDER BY kind <> 'sign_in', due_at, message_id LIMIT $3 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE {schema}.mail_queue m SET due_at = $2, attempts = attempts + 1 FROM due WHERE m.message_id = due.message_id
    RETURNING m.*
)
SELECT message_id, kind, recipient, subject, text, html, created_at, expires_at, attempts
FROM claimed ORDER BY kind <> 'sign_in', created_at, message_id";

const REMOVE: &str = "DELETE FROM {schema}.mail_queue WHERE message_id = $1 AND attempts = $2";

const RETRY: &str = "
UPDATE {schema}.mail_queue SET due_at = $3, last_error = $4 WHERE message_id = $1 AND attempts = $2";

const BACKLOG: &str = "
SELECT (SELECT count(*) FROM {schema}.mail_queue) AS mails, o.created_at, o.last_error
FROM (SELECT 1) one
LEFT JOIN (SELECT created_at, last_error FROM {schema}.mail_queue ORDER BY created_at LIMIT 1) o ON true";

/// Queues mails that are not queued yet.
pub(crate) async fn add(client: SchemaClient<'_>, mails: &[NewMail]) -> SqlResult<()> {
    let texts = |of: fn(&NewMail) -> &str| mails.iter().map(of).collect::<Vec<&str>>();
    let times = |of: fn(&NewMail) -> Wall| mails.iter().map(|mail| millis(of(mail))).collect::<Vec<i64>>();
    let [message_ids, kinds, recipients, subjects, bodies, html] = [
        texts(|mail| &mail.message_id),
        texts(|mail| mail.kind.word()),
        texts(|mail| &mail.recipient),
        texts(|mail| &mail.subject),
        texts(|mail| &mail.text),
        texts(|mail| &mail.html),
    ];
    let [created_at, expires_at] = [times(|mail| mail.created_at), times(|mail| mail.expires_at)];
    let rows: [&dyn Parameter; 8] =
        [&message_ids, &kinds, &recipients, &subjects, &bodies, &html, &created_at, &expires_at];
    client.execute(ADD, &rows).await.map(drop)
}

/// The mail of a row. A kind of a newer release is skipped.
fn mail(row: &Row) -> SqlResult<Option<ClaimedMail>> {
    let Some(kind) = MailKind::parse(row.try_get("kind")?) else { return Ok(None) };
    let mail = NewMail {
        kind,
        recipient: row.try_get("recipient")?,
        subject: row.try_get("subject")?,
        text: row.try_get("text")?,
        html: row.try_get("html")?,
        message_id: row.try_get("message_id")?,
        created_at: row.at("created_at")?,
        expires_at: row.at("expires_at")?,
    };
    let attempt = row.try_get::<_, i32>("attempts")?.unsigned_abs();
    Ok(Some(ClaimedMail { mail, attempt }))
}

impl MailQueue for PostgresStore {
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()> {
        Box::pin(self.accounts.run("queue mail", async move |client| add(client, &mails).await))
    }

    fn queue_notice(&self, notice: NewNotice) -> StoreFuture<'_, ()> {
        let work = async move |client: SchemaClient<'_>| {
            audit::lock(client).await?;
            add(client, &notice.mails).await?;
            audit::add(client, notice.at, [notice.who.as_str(), NewNotice::WORD, "", &notice.audited()]).await
        };
        Box::pin(self.accounts.change("queue mail", work))
    }

    fn claim_mail(&self, claim: MailClaim) -> StoreFuture<'_, Vec<ClaimedMail>> {
        Box::pin(self.accounts.run("claim mail", async move |client| {
            let [now, until] = [claim.now, claim.until].map(millis);
            let rows = client.query(CLAIM, &[&now, &until, &stored(claim.limit)]).await?;
            rows.iter().filter_map(|row| mail(row).transpose()).collect()
        }))
    }

    fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreFuture<'_, ()> {
        let doing = "record the results of sent mail";
        Box::pin(self.accounts.run(doing, async move |client| {
            for MailAttempt { message_id, attempt, outcome } in &attempts {
                let attempt = attempt.cast_signed();
                match outcome {
                    MailOutcome::Remove => client.execute(REMOVE, &[message_id, &attempt]).await?,
                    MailOutcome::Retry { at, reason } => {
                        client.execute(RETRY, &[message_id, &attempt, &millis(*at), reason]).await?
                    }
                };
            }
            Ok(())
        }))
    }

    fn mail_backlog(&self) -> StoreFuture<'_, MailBacklog> {
        Box::pin(self.accounts.run("read the state of the mail queue", async |client| {
            let row = client.query_one(BACKLOG, &[]).await?;
            let (mails, oldest) = (row.count("mails")?, row.optional_at("created_at")?);
            Ok(MailBacklog { mails, oldest, last_error: row.try_get("last_error")? })
        }))
    }
}
