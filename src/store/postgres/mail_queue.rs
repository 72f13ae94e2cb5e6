//! Mail to be sent. The rules are in `store::mail_queue`.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::connection::{Parameter, SchemaName};
use super::owners::{OwnerResult, OwnerTransaction};
use super::{PostgresStore, audit};
use crate::clock::Wall;
use crate::store::{
    ClaimedMail, MailAttempt, MailBacklog, MailClaim, MailKind, MailOutcome, MailQueue, NewMail, NewNotice,
    StoreFuture,
};

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
pub(super) async fn add(
    client: &Client,
    schema: &SchemaName,
    mails: &[NewMail],
) -> Result<(), tokio_postgres::Error> {
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
    let rows: [Parameter<'_>; 8] = [
        (&message_ids, Type::TEXT_ARRAY),
        (&kinds, Type::TEXT_ARRAY),
        (&recipients, Type::TEXT_ARRAY),
        (&subjects, Type::TEXT_ARRAY),
        (&bodies, Type::TEXT_ARRAY),
        (&html, Type::TEXT_ARRAY),
        (&created_at, Type::INT8_ARRAY),
        (&expires_at, Type::INT8_ARRAY),
    ];
    client.execute_typed(&schema.statement(ADD), &rows).await.map(drop)
}

impl OwnerTransaction<'_> {
    /// Queues the first mails of a notice with its audit record.
    async fn queue_notice(&self, notice: &NewNotice) -> OwnerResult<()> {
        self.execute(audit::LOCK, &[]).await?;
        add(self.transaction.client(), self.schema, &notice.mails).await?;
        let words = [notice.who.as_str(), NewNotice::WORD, "", &notice.audited()];
        audit::add(self.transaction, self.schema, notice.at, words).await
    }
}

async fn claim(
    client: &Client,
    schema: &SchemaName,
    claim: MailClaim,
) -> Result<Vec<ClaimedMail>, tokio_postgres::Error> {
    let [now, until] = [claim.now, claim.until].map(millis);
    let limit = i64::try_from(claim.limit).unwrap_or(i64::MAX);
    let bounds: [Parameter<'_>; 3] = [(&now, Type::INT8), (&until, Type::INT8), (&limit, Type::INT8)];
    let rows = client.query_typed(&schema.statement(CLAIM), &bounds).await?;
    rows.iter().filter_map(|row| mail(row).transpose()).collect()
}

/// The mail of a row. A kind of a newer release is skipped.
fn mail(row: &Row) -> Result<Option<ClaimedMail>, tokio_postgres::Error> {
    let Some(kind) = MailKind::parse(row.try_get("kind")?) else { return Ok(None) };
    let at = |column| row.try_get::<_, i64>(column).map(wall);
    let mail = NewMail {
        kind,
        recipient: row.try_get("recipient")?,
        subject: row.try_get("subject")?,
        text: row.try_get("text")?,
        html: row.try_get("html")?,
        message_id: row.try_get("message_id")?,
        created_at: at("created_at")?,
        expires_at: at("expires_at")?,
    };
    let attempt = row.try_get::<_, i32>("attempts")?.unsigned_abs();
    Ok(Some(ClaimedMail { mail, attempt }))
}

async fn record(
    client: &Client,
    schema: &SchemaName,
    attempts: &[MailAttempt],
) -> Result<(), tokio_postgres::Error> {
    for MailAttempt { message_id, attempt, outcome } in attempts {
        let attempt = attempt.cast_signed();
        let mail: [Parameter<'_>; 2] = [(message_id, Type::TEXT), (&attempt, Type::INT4)];
        match outcome {
            MailOutcome::Remove => client.execute_typed(&schema.statement(REMOVE), &mail).await?,
            MailOutcome::Retry { at, reason } => {
                let ([id, attempt], at) = (mail, millis(*at));
                let row = [id, attempt, (&at, Type::INT8), (reason, Type::TEXT)];
                client.execute_typed(&schema.statement(RETRY), &row).await?
            }
        };
    }
    Ok(())
}

async fn backlog(client: &Client, schema: &SchemaName) -> Result<MailBacklog, tokio_postgres::Error> {
    let row = client.query_typed_one(&schema.statement(BACKLOG), &[]).await?;
    Ok(MailBacklog {
        mails: row.try_get::<_, i64>("mails")?.unsigned_abs(),
        oldest: row.try_get::<_, Option<i64>>("created_at")?.map(wall),
        last_error: row.try_get("last_error")?,
    })
}

fn wall(millis: i64) -> Wall {
    Wall::from_millis(millis.unsigned_abs())
}

const fn millis(at: Wall) -> i64 {
    at.millis().cast_signed()
}

impl MailQueue for PostgresStore {
    fn queue_mail(&self, mails: Vec<NewMail>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| add(client, schema, &mails).await;
            Ok(self.accounts.link.run("queue mail", work).await?)
        })
    }

    fn queue_notice(&self, notice: NewNotice) -> StoreFuture<'_, ()> {
        Box::pin(
            self.accounts.change("queue mail", async move |transaction| {
                transaction.queue_notice(&notice).await.map(Ok)
            }),
        )
    }

    fn claim_mail(&self, wanted: MailClaim) -> StoreFuture<'_, Vec<ClaimedMail>> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| claim(client, schema, wanted).await;
            Ok(self.accounts.link.run("claim mail", work).await?)
        })
    }

    fn record_attempts(&self, attempts: Vec<MailAttempt>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| record(client, schema, &attempts).await;
            Ok(self.accounts.link.run("record the results of sent mail", work).await?)
        })
    }

    fn mail_backlog(&self) -> StoreFuture<'_, MailBacklog> {
        Box::pin(async move {
            let schema = &self.accounts.schema;
            let work = async |client: &mut Client| backlog(client, schema).await;
            Ok(self.accounts.link.run("read the state of the mail queue", work).await?)
        })
    }
}
