//! The work that both engines do with the same statements (`store::sql`), in this one.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{ChangeFault, Parameter, SchemaClient, SqlResult};
use crate::postgres::keys::records;
use crate::sql::tables::{SqlField, SqlRow, SqlTables};
use crate::stored::millis;
use crate::{NewMail, StoreError, StoredApplication};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;

/// Taken before any change with an audit record, so that the numbers of records are in commit order.
const LOCK: &str = "SELECT FROM {schema}.site FOR NO KEY UPDATE";
/// The audit record, whose number is that of the change, and a hint to listeners. Only the id is sent.
const AUDIT: &str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)
RETURNING {notify}(left('{schema}_changes', 63), application)";

const QUEUE_MAIL: &str = "
INSERT INTO {schema}.mail_queue
    (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
SELECT m.*, m.created_at, 0
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int8[], $8::int8[])
    AS m (message_id, kind, recipient, subject, text, html, created_at, expires_at)
ON CONFLICT DO NOTHING";

impl SqlTables for SchemaClient<'_> {
    type Fault = ChangeFault;

    const LEDGER: &'static str = "ledger_days";
    const POSITION: &'static str = "strpos";

    async fn run(self, text: &str, values: &[SqlField<'_>]) -> SqlResult<u64> {
        let values: Vec<_> = values.iter().map(parameter).collect();
        self.execute(text, &borrowed(&values)).await
    }

    async fn find<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<ChangeFault>) -> SqlResult<T>,
    ) -> SqlResult<Option<T>> {
        let values: Vec<_> = values.iter().map(parameter).collect();
        self.query_opt(text, &borrowed(&values)).await?.map(|row| read(&row)).transpose()
    }

    async fn list<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<ChangeFault>) -> SqlResult<Option<T>>,
    ) -> SqlResult<Vec<T>> {
        let values: Vec<_> = values.iter().map(parameter).collect();
        let rows = self.query(text, &borrowed(&values)).await?;
        rows.iter().filter_map(|row| read(row).transpose()).collect()
    }

    /// Locks the row of `site`. Reports of gateways do not wait for it.
    async fn lock(self) -> SqlResult<()> {
        self.execute(LOCK, &[]).await.map(drop)
    }

    async fn audit(self, at: Wall, words: [&str; 4]) -> SqlResult<()> {
        let [who, what, application, detail] = &words;
        self.execute(AUDIT, &[&millis(at), who, what, application, detail]).await.map(drop)
    }

    async fn application(self, id: ApplicationId, day: Day) -> SqlResult<Option<StoredApplication>> {
        records::application(self, id, day).await
    }

    async fn queue_mail(self, mails: &[NewMail]) -> SqlResult<()> {
        let texts = |of: fn(&NewMail) -> &str| mails.iter().map(of).collect::<Vec<&str>>();
        let times =
            |of: fn(&NewMail) -> Wall| mails.iter().map(|mail| millis(of(mail))).collect::<Vec<i64>>();
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
        self.execute(QUEUE_MAIL, &rows).await.map(drop)
    }
}

fn parameter<'v>(value: &'v SqlField<'v>) -> Box<dyn Parameter + Send + 'v> {
    match value {
        SqlField::Text(text) => Box::new(*text),
        SqlField::OptionalText(text) => Box::new(*text),
        SqlField::Number(number) => Box::new(*number),
        SqlField::Limit(limit) => Box::new(limit.map(i64::from)),
        SqlField::Time(at) => Box::new(millis(*at)),
        SqlField::OptionalTime(at) => Box::new(at.map(millis)),
        SqlField::Digest(digest) => Box::new(digest.as_bytes().as_slice()),
        SqlField::Bytes(bytes) => Box::new(*bytes),
        SqlField::Flag(flag) => Box::new(*flag),
    }
}

fn borrowed<'v>(values: &'v [Box<dyn Parameter + Send + 'v>]) -> Vec<&'v dyn Parameter> {
    values.iter().map(|value| &**value as &dyn Parameter).collect()
}

/// The engine writes valid values only.
impl SqlRow<ChangeFault> for Row {
    fn text(&self, column: &str) -> SqlResult<String> {
        Ok(self.try_get(column)?)
    }

    fn optional_text(&self, column: &str) -> SqlResult<Option<String>> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: &str) -> SqlResult<Vec<u8>> {
        Ok(self.try_get(column)?)
    }

    fn optional_number(&self, column: &str) -> SqlResult<Option<u64>> {
        let number: Option<i64> = self.try_get(column)?;
        Ok(number.map(|number| u64::try_from(number).unwrap_or(0)))
    }

    fn optional_time(&self, column: &str) -> SqlResult<Option<Wall>> {
        Ok(SqlRow::optional_number(self, column)?.map(Wall::from_millis))
    }

    fn missing(&self, column: &str) -> ChangeFault {
        let reason = format!("{column} is missing");
        StoreError::Damaged { path: "the database".into(), reason }.into()
    }
}
