//! Mail to be sent. The rules are in `store::mail_queue`.

use crate::postgres::connection::schema_client::{Parameter, SchemaClient, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::mail_queue;
use crate::sql::tables::{SqlField, SqlTables as _};
use crate::stored::{millis, stored};
use crate::{ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailQueue, NewMail, NewNotice, StoreFuture};
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
SELECT message_id, kind, recipient, subject, text, html, created_at, expires_at, attempts::int8
FROM claimed ORDER BY kind <> 'sign_in', created_at, message_id";

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

impl MailQueue for PostgresStore {
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()> {
        Box::pin(self.accounts.run("queue mail", async move |client| add(client, &mails).await))
    }

    fn queue_notice(&self, notice: NewNotice) -> StoreFuture<'_, ()> {
        let work = async move |client: SchemaClient<'_>| mail_queue::add_notice(client, &notice).await;
        Box::pin(self.accounts.change("queue mail", work))
    }

    fn claim_mail(&self, claim: MailClaim) -> StoreFuture<'_, Vec<ClaimedMail>> {
        Box::pin(self.accounts.run("claim mail", async move |client| {
            let values = [
                SqlField::Time(claim.now),
                SqlField::Time(claim.until),
                SqlField::Number(stored(claim.limit)),
            ];
            client.list(CLAIM, &values, mail_queue::mail).await
        }))
    }

    fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreFuture<'_, ()> {
        let doing = "record the results of sent mail";
        Box::pin(self.accounts.run(doing, async move |client| mail_queue::record(client, &attempts).await))
    }

    fn mail_backlog(&self) -> StoreFuture<'_, MailBacklog> {
        let doing = "read the state of the mail queue";
        Box::pin(self.accounts.run(doing, async |client| mail_queue::backlog(client).await))
    }
}
