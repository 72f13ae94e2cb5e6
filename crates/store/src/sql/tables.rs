//! The needs of the statements of both engines: the tables of one, its rows, and the values of a statement.

use crate::{NewMail, StoreChange, StoreError, StoredApplication};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest};

/// The tables of an engine, within one call or transaction.
///
/// In a statement `{schema}.` is before the name of each table, `$1` is the first value, and a day is written as
/// `$1::text::date`.
pub(crate) trait SqlTables: Copy {
    /// Why a statement failed, or why the change is refused. The caller rolls the transaction back.
    type Fault: From<StoreError>;

    /// The table of the units granted for each day.
    const LEDGER: &'static str;
    /// The function for the position of a text in another: the other one, then the text.
    const POSITION: &'static str;

    /// Runs a statement, and returns the number of changed rows.
    async fn run(self, text: &str, values: &[SqlField<'_>]) -> Result<u64, Self::Fault>;

    /// The first row, if there is one.
    async fn find<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<Self::Fault>) -> Result<T, Self::Fault>,
    ) -> Result<Option<T>, Self::Fault>;

    /// All rows that `read` accepts.
    async fn list<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<Self::Fault>) -> Result<Option<T>, Self::Fault>,
    ) -> Result<Vec<T>, Self::Fault>;

    /// Excludes other changes with an audit record until the transaction ends, so that their numbers are in commit order.
    async fn lock(self) -> Result<(), Self::Fault>;

    /// Adds an audit record: actor, action, application, details.
    async fn audit(self, at: Wall, words: [&str; 4]) -> Result<(), Self::Fault>;

    /// An application, with the units granted for `day`.
    async fn application(self, id: ApplicationId, day: Day)
    -> Result<Option<StoredApplication>, Self::Fault>;

    /// The application after this change.
    async fn changed(self, change: &StoreChange) -> Result<Option<StoredApplication>, Self::Fault> {
        self.application(change.application, change.at.day()).await
    }

    /// Queues mails that are not queued yet.
    async fn queue_mail(self, mails: &[NewMail]) -> Result<(), Self::Fault>;
}

/// A row, by the names of its columns.
pub(crate) trait SqlRow<F> {
    fn text(&self, column: &str) -> Result<String, F>;

    fn optional_text(&self, column: &str) -> Result<Option<String>, F>;

    /// A text of any bytes, as far as it can be shown.
    fn any_text(&self, column: &str) -> Result<String, F> {
        self.text(column)
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, F>;

    /// A number that is not negative.
    fn optional_number(&self, column: &str) -> Result<Option<u64>, F>;

    fn number(&self, column: &str) -> Result<u64, F> {
        self.optional_number(column)?.ok_or_else(|| self.missing(column))
    }

    /// The same, at most the largest that the program has.
    fn small_number(&self, column: &str) -> Result<u32, F> {
        Ok(u32::try_from(self.number(column)?).unwrap_or(u32::MAX))
    }

    fn optional_time(&self, column: &str) -> Result<Option<Wall>, F>;

    fn time(&self, column: &str) -> Result<Wall, F> {
        self.optional_time(column)?.ok_or_else(|| self.missing(column))
    }

    /// The fault of a column without a value.
    fn missing(&self, column: &str) -> F;
}

/// A value of a statement.
#[derive(Clone, Copy)]
pub(crate) enum SqlField<'v> {
    Text(&'v str),
    OptionalText(Option<&'v str>),
    Number(i64),
    Limit(Option<u32>),
    Time(Wall),
    OptionalTime(Option<Wall>),
    Digest(&'v Digest),
    Bytes(&'v [u8]),
    Flag(bool),
}
