//! The needs of the statements of both engines: the tables of one, and the values of a statement.

use super::rows::{BadRecord, RowResult, SqlRow};
use crate::{NewMail, StoreError};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::Digest;

const QUEUE_MAIL: &str = "
INSERT INTO {schema}.mail_queue
    (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
VALUES {rows} ON CONFLICT DO NOTHING";

/// The tables of an engine, within one call or transaction.
///
/// In a statement `{schema}.` is before the name of each table, `$1` is the first value, and a day is written as
/// `$1::text::date`.
pub(crate) trait SqlTables: Copy {
    /// Why a statement failed, or why the change is refused. The caller rolls the transaction back.
    type Fault: From<StoreError> + From<BadRecord>;

    /// The function for the position of a text in another: the other one, then the text.
    const POSITION: &'static str;
    /// Adds an audit record, and tells others about it if this engine can.
    const ADD_AUDIT: &'static str;
    /// The data set and its history, and the clock in milliseconds.
    const SOURCE: &'static str;
    const CLOCK: &'static str;
    /// The end of a selection of rows that are changed, if others who change them are skipped.
    const SKIP_LOCKED: &'static str;
    /// The end of a selection of rows that are deleted in one transaction, in the order of `{key}`.
    const DELETED_AT_ONCE: &'static str;
    /// Number of totals that are merged in one transaction.
    const MERGED_AT_ONCE: u32;
    /// Statements that delete a batch of outdated records that only this engine has.
    const OUTDATED: &'static [&'static str];
    /// How exports and imports convert rows.
    const DUMP: DumpTerms;
    /// The form of `records::JOINED` for some applications of many.
    const JOINED: &'static str;

    /// Runs a statement, and returns the number of changed rows.
    async fn run(self, text: &str, values: &[SqlField<'_>]) -> Result<u64, Self::Fault>;

    /// Passes each row to `take`, as the rows arrive.
    async fn each(
        self,
        text: &str,
        values: &[SqlField<'_>],
        take: impl FnMut(&SqlRow<'_>),
    ) -> Result<(), Self::Fault>;

    /// The row, if there is one.
    async fn find<R>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&SqlRow<'_>) -> RowResult<R>,
    ) -> Result<Option<R>, Self::Fault> {
        let mut found = None;
        self.each(text, values, |row| found = Some(read(row)))
            .await?;
        Ok(found.transpose()?)
    }

    /// All rows that are readable and that `read` accepts.
    async fn list<R>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&SqlRow<'_>) -> RowResult<Option<R>>,
    ) -> Result<Vec<R>, Self::Fault> {
        let mut found = Vec::new();
        self.each(text, values, |row| found.extend(read(row).ok().flatten()))
            .await?;
        Ok(found)
    }

    /// Excludes other changes with an audit record until the transaction ends, so that their numbers are in commit order.
    async fn lock(self) -> Result<(), Self::Fault> {
        self.lock_site(SiteLock::Change).await.map(drop)
    }

    /// Takes a lock until the transaction ends. Returns whether it was taken.
    async fn lock_site(self, lock: SiteLock) -> Result<bool, Self::Fault>;

    /// The current day of the ledger, if there is one.
    async fn today(self) -> Result<Option<Day>, Self::Fault>;

    /// Adds an audit record: actor, action, application, details.
    async fn audit(self, at: Wall, words: [&str; 4]) -> Result<(), Self::Fault> {
        let [who, what, application, detail] = words.map(SqlField::Text);
        self.run(
            Self::ADD_AUDIT,
            &[SqlField::Time(at), who, what, application, detail],
        )
        .await
        .map(drop)
    }

    /// Queues mails that are not queued yet.
    async fn queue_mail(self, mails: &[NewMail]) -> Result<(), Self::Fault> {
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
        write_rows(self, QUEUE_MAIL, "", 10, &values).await
    }
}

/// Parts of the statements of exports and imports.
pub(crate) struct DumpTerms {
    /// The function that makes an object of JSON from names and values.
    pub(crate) object: &'static str,
    /// The bytes of `{column}` as hexadecimal digits.
    pub(crate) to_hex: &'static str,
    /// The bytes that the digits `{text}` state.
    pub(crate) from_hex: &'static str,
    /// The end of an insertion of rows with these `{values}` of each object in an array of JSON.
    pub(crate) rows: &'static str,
}

/// The result of statements on these tables.
pub(crate) type SqlDone<T, R> = Result<R, <T as SqlTables>::Fault>;

/// A lock of all gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SiteLock {
    /// Excludes other changes and merges.
    Change,
    /// Excludes merges only.
    Report,
    /// Excludes all others, which wait for it. It is not taken while there are others.
    Merge,
}

/// A value of a statement. Only a database has lists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SqlField<'v> {
    Text(&'v str),
    OptionalText(Option<&'v str>),
    Number(i64),
    OptionalNumber(Option<i64>),
    Time(Wall),
    OptionalTime(Option<Wall>),
    Digest(&'v Digest),
    Bytes(&'v [u8]),
    Flag(bool),
    Texts(&'v [String]),
    OptionalTexts(&'v [Option<String>]),
    Numbers(&'v [i64]),
}

/// Maximum number of rows in one statement.
pub(super) const ROWS_AT_ONCE: usize = 500;

/// Runs a statement on rows with this number of columns. The first value of each is converted by `cast`.
pub(super) async fn write_rows<T: SqlTables>(
    tables: T,
    statement: &str,
    cast: &str,
    columns: usize,
    values: &[SqlField<'_>],
) -> SqlDone<T, ()> {
    for values in values.chunks(ROWS_AT_ONCE * columns) {
        let rows = (1..=values.len()).step_by(columns).map(|first| {
            let rest = parameters(first + 1, columns - 1);
            format!("(${first}{cast}, {rest})")
        });
        let statement = statement.replace("{rows}", &rows.collect::<Vec<_>>().join(", "));
        tables.run(&statement, values).await?;
    }
    Ok(())
}

/// The list of this number of parameters.
pub(crate) fn parameters(first: usize, count: usize) -> String {
    (first..first + count)
        .map(|number| format!("${number}"))
        .collect::<Vec<_>>()
        .join(", ")
}
