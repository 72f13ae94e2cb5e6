//! The tables of the store within one call or transaction of either engine, and the parameters of statements.
//!
//! In a statement, `{schema}.` precedes the name of each table, `$1` is the first parameter, and a day is written as
//! `$1::text::date`. Each engine replaces the other parts in braces with its own form.

use std::pin::pin;

use futures_util::TryStreamExt as _;

use super::{
    fault::Done,
    fields::SqlField,
    file_connection::{self, FileConnection},
    rows::{RowResult, SqlRow},
    schema_client::SchemaClient,
};
use crate::NewMail;
use scoregate_base::clock::{Day, Wall};

const QUEUE_MAIL: &str = "
INSERT INTO {schema}.mail_queue
    (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
VALUES {rows} ON CONFLICT DO NOTHING";

/// The number of an audit record is also the number of the change. Listeners get a hint with the id of the application.
const ADD_AUDIT: &str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5){notify}";

const TODAY: &str =
    "SELECT CAST(max(day) AS text) AS day FROM {schema}.calendar WHERE day > '1970-01-01'";

/// The tables of an engine.
#[derive(Clone, Copy)]
pub enum Tables<'t> {
    File(&'t FileConnection),
    Database(SchemaClient<'t>),
}

impl Tables<'_> {
    /// Runs a statement, and returns the number of changed rows.
    pub async fn run(self, text: &str, values: &[SqlField<'_>]) -> Done<u64> {
        match self {
            Self::File(file) => file_connection::run(file, text, values),
            Self::Database(client) => client.execute(text, values).await,
        }
    }

    /// Passes each row to `take` as it arrives.
    pub async fn each(
        self,
        text: &str,
        values: &[SqlField<'_>],
        mut take: impl FnMut(&SqlRow<'_>),
    ) -> Done<()> {
        match self {
            Self::File(file) => file_connection::each(file, text, values, take),
            Self::Database(client) => {
                let mut rows = pin!(client.stream(text, values).await?);
                while let Some(row) = rows.try_next().await? {
                    take(&SqlRow::new(&row));
                }
                Ok(())
            }
        }
    }

    /// The first row, if there is one.
    pub async fn find<R>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&SqlRow<'_>) -> RowResult<R>,
    ) -> Done<Option<R>> {
        let mut found = None;
        self.each(text, values, |row| found = Some(read(row)))
            .await?;
        Ok(found.transpose()?)
    }

    /// All readable rows that `read` accepts.
    pub async fn list<R>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&SqlRow<'_>) -> RowResult<Option<R>>,
    ) -> Done<Vec<R>> {
        let mut found = Vec::new();
        self.each(text, values, |row| found.extend(read(row).ok().flatten()))
            .await?;
        Ok(found)
    }

    /// Locks out other changes that have an audit record until the transaction ends, so that record numbers are in
    /// commit order.
    pub async fn lock(self) -> Done<()> {
        self.lock_site(SiteLock::Change).await.map(drop)
    }

    /// Takes a lock that is held until the transaction ends. Returns whether it was taken.
    pub async fn lock_site(self, lock: SiteLock) -> Done<bool> {
        let Self::Database(client) = self else {
            // Only one thread writes, so there is nothing to lock.
            return Ok(true);
        };
        let strength = match lock {
            SiteLock::Change => "NO KEY UPDATE",
            SiteLock::Report => "KEY SHARE",
            SiteLock::Merge => "UPDATE SKIP LOCKED",
        };
        let select = format!("SELECT FROM {{schema}}.site FOR {strength}");
        Ok(client.execute(&select, &[]).await? > 0)
    }

    /// The current day of the ledger, if there is one.
    pub async fn today(self) -> Done<Option<Day>> {
        let day = self
            .find(TODAY, &[], |row| row.optional_text("day"))
            .await?;
        Ok(day.flatten().as_deref().and_then(Day::parse))
    }

    /// Adds an audit record: actor, action, application, details.
    pub async fn audit(self, at: Wall, words: [&str; 4]) -> Done<()> {
        let [who, what, application, detail] = words.map(SqlField::Text);
        let record = [SqlField::Time(at), who, what, application, detail];
        self.run(ADD_AUDIT, &record).await.map(drop)
    }

    /// Queues emails that are not queued yet.
    pub async fn queue_mail(self, mails: &[NewMail]) -> Done<()> {
        let mut values = Vec::with_capacity(10 * mails.len());
        for mail in mails {
            let NewMail {
                kind,
                recipient,
                subject,
                text,
                html,
                message_id,
                created_at,
                expires_at,
                ..
            } = mail;
            values.extend(
                [message_id, kind.word(), recipient, subject, text, html].map(SqlField::Text),
            );
            values.extend([created_at, expires_at, created_at].map(|at| SqlField::Time(*at)));
            values.push(SqlField::Number(0));
        }
        self.write_rows(QUEUE_MAIL, "", 10, &values).await
    }

    /// Runs a statement on rows with this number of columns. `cast` converts the first value of each row.
    pub async fn write_rows(
        self,
        statement: &str,
        cast: &str,
        columns: usize,
        values: &[SqlField<'_>],
    ) -> Done<()> {
        for values in values.chunks(ROWS_AT_ONCE * columns) {
            let rows = (1..=values.len()).step_by(columns).map(|first| {
                let rest = parameters(first + 1, columns - 1);
                format!("(${first}{cast}, {rest})")
            });
            let statement = statement.replace("{rows}", &rows.collect::<Vec<_>>().join(", "));
            self.run(&statement, values).await?;
        }
        Ok(())
    }
}

/// A lock that all gateways respect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteLock {
    /// Locks out other changes and merges.
    Change,
    /// Locks out only merges.
    Report,
    /// Locks out changes and reports, which wait for it. It is not acquired while any other lock is held.
    Merge,
}

/// Maximum number of rows in one statement.
pub const ROWS_AT_ONCE: usize = 500;

/// A list of `count` parameters.
pub fn parameters(first: usize, count: usize) -> String {
    (first..first + count)
        .map(|number| format!("${number}"))
        .collect::<Vec<_>>()
        .join(", ")
}
