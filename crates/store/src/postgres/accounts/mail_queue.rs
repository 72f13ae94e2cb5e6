//! Mail to be sent. The rules are in `store::mail_queue`.

use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::mail_queue;
use crate::sql::tables::{SqlField, SqlTables as _};
use crate::stored::stored;
use crate::{ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailQueue, NewMail, NewNotice, StoreFuture};

/// Gateways skip each other's mails instead of waiting. Links come first: they expire soon.
const CLAIM: &str = "
WITH due AS (
    SELECT message_id FROM {schema}.mail_queue WHERE due_at <= $1 AND (kind = 'webhook') = $4
    ORDER BY kind <> 'sign_in', due_at, message_id LIMIT $3 FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE {schema}.mail_queue m SET due_at = $2, attempts = attempts + 1 FROM due WHERE m.message_id = due.message_id
    RETURNING m.*
)
SELECT message_id, kind, recipient, subject, text, html, created_at, expires_at, attempts::int8
FROM claimed ORDER BY kind <> 'sign_in', created_at, message_id";

impl MailQueue for PostgresStore {
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()> {
        Box::pin(self.accounts.run("queue mail", async move |client| client.queue_mail(&mails).await))
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
                SqlField::Flag(claim.webhooks),
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
