//! The work that both engines do with the same statements (`store::sql`), in this one. No statement waits.

use futures_util::FutureExt as _;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::fault::{FileResult, StoreFault};
use super::statements::AnyText;
use super::{ledger, records, statements};
use crate::sql::tables::{DumpTerms, SiteLock, SqlField, SqlRow, SqlTables};
use crate::stored::millis;
use crate::{StoreChange, StoredApplication};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;

/// The result of work on a connection.
pub(crate) fn done<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never()
        .expect("statements on a file do not wait")
}

/// A statement as this engine has it.
fn statement(text: &str) -> String {
    text.replace("{schema}.", "")
        .replace("::text::date", "")
        .replace("::jsonb", "")
        .replace('$', "?")
}

impl SqlTables for &Connection {
    type Fault = StoreFault;

    const POSITION: &'static str = "instr";
    const ADD_AUDIT: &'static str =
        "INSERT INTO audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)";
    /// The one data set of this engine, which has no clock of its own.
    const SOURCE: &'static str = "'file'";
    const CLOCK: &'static str = "NULL";
    const SKIP_LOCKED: &'static str = "";
    const DELETED_AT_ONCE: &'static str = "LIMIT 500";
    const MERGED_AT_ONCE: u32 = 250;
    const DUMP: DumpTerms = DumpTerms {
        object: "json_object",
        to_hex: "lower(hex({column}))",
        from_hex: "unhex({text})",
        rows: "SELECT {values} FROM json_each($1)",
    };

    async fn run(self, text: &str, values: &[SqlField<'_>]) -> FileResult<u64> {
        statements::run(self, &statement(text), params_from_iter(values))
    }

    async fn find<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<StoreFault>) -> FileResult<T>,
    ) -> FileResult<Option<T>> {
        let mut statement = self.prepare_cached(&statement(text))?;
        let mut rows = statement.query(params_from_iter(values))?;
        rows.next()?.map(|row| read(row)).transpose()
    }

    async fn list<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<StoreFault>) -> FileResult<Option<T>>,
    ) -> FileResult<Vec<T>> {
        let rows = statements::readable(self, &statement(text), params_from_iter(values), |row| {
            read(row)
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    async fn each_text<E: From<StoreFault>>(
        self,
        text: &str,
        take: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.prepare(&statement(text)).map_err(StoreFault::from)?;
        let mut rows = statement.query([]).map_err(StoreFault::from)?;
        while let Some(row) = rows.next().map_err(StoreFault::from)? {
            let text: String = records::text(row, 0, "a row")?;
            take(&text)?;
        }
        Ok(())
    }

    /// One thread writes.
    async fn lock_site(self, _: SiteLock) -> FileResult<bool> {
        Ok(true)
    }

    async fn today(self) -> FileResult<Option<Day>> {
        ledger::day(self)
    }

    async fn application(
        self,
        id: ApplicationId,
        day: Day,
    ) -> FileResult<Option<StoredApplication>> {
        records::application(self, id, day)
    }

    async fn changed(self, change: &StoreChange) -> FileResult<Option<StoredApplication>> {
        match records::application(self, change.application, change.at.day()) {
            // Changes that revoke a key or repair a record must not fail because the record is unreadable. A new key would not
            // work.
            Err(StoreFault::Record(_)) if change.what.added_key().is_none() => {
                records::stand_in(self, change.application).map(Some)
            }
            read => read,
        }
    }
}

impl SqlRow<StoreFault> for Row<'_> {
    fn text(&self, column: &str) -> FileResult<String> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn optional_text(&self, column: &str) -> FileResult<Option<String>> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn any_text(&self, column: &str) -> FileResult<String> {
        let AnyText(text) = self.get(column)?;
        Ok(text)
    }

    fn bytes(&self, column: &str) -> FileResult<Vec<u8>> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn signed(&self, column: &str) -> FileResult<i64> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn optional_number(&self, column: &str) -> FileResult<Option<u64>> {
        let number = records::number(self, self.as_ref().column_index(column)?, column)?;
        let bad = |_| StoreFault::Record(format!("{column} is negative"));
        number.map(u64::try_from).transpose().map_err(bad)
    }

    fn optional_time(&self, column: &str) -> FileResult<Option<Wall>> {
        records::instant(self, self.as_ref().column_index(column)?, column)
    }

    fn missing(&self, column: &str) -> StoreFault {
        records::missing(column)
    }
}

impl ToSql for SqlField<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::OptionalText(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::Time(at) => Ok(millis(*at).into()),
            Self::OptionalTime(at) => Ok(ToSqlOutput::Owned(at.map(millis).into())),
            Self::Digest(digest) => digest.as_bytes().to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
        }
    }
}
