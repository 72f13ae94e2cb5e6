//! The work that both engines do with the same statements (`store::sql`), in this one. No statement waits.

use futures_util::FutureExt as _;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::fault::StoreFault;
use super::statements::AnyText;
use super::{ledger, records, statements};
use crate::sql::tables::{SiteLock, SqlField, SqlRow, SqlTables};
use crate::stored::millis;
use crate::{StoreChange, StoredApplication};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;

/// The result of work on a connection.
pub(crate) fn done<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never().expect("statements on a file do not wait")
}

/// A statement as this engine has it.
fn statement(text: &str) -> String {
    text.replace("{schema}.", "").replace("::text::date", "").replace('$', "?")
}

impl SqlTables for &Connection {
    type Fault = StoreFault;

    const LEDGER: &'static str = "ledger";
    const POSITION: &'static str = "instr";
    const ADD_AUDIT: &'static str =
        "INSERT INTO audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)";
    /// The one data set of this engine, which has no clock of its own.
    const SOURCE: &'static str = "'file'";
    const CLOCK: &'static str = "NULL";
    const SKIP_LOCKED: &'static str = "";
    const DELETED_AT_ONCE: &'static str = "LIMIT 500";
    const MERGED_AT_ONCE: u32 = 250;

    async fn run(self, text: &str, values: &[SqlField<'_>]) -> Result<u64, StoreFault> {
        statements::run(self, &statement(text), params_from_iter(values))
    }

    async fn find<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<StoreFault>) -> Result<T, StoreFault>,
    ) -> Result<Option<T>, StoreFault> {
        let mut statement = self.prepare_cached(&statement(text))?;
        let mut rows = statement.query(params_from_iter(values))?;
        rows.next()?.map(|row| read(row)).transpose()
    }

    async fn list<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<StoreFault>) -> Result<Option<T>, StoreFault>,
    ) -> Result<Vec<T>, StoreFault> {
        let rows = statements::readable(self, &statement(text), params_from_iter(values), |row| read(row))?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// One thread writes.
    async fn lock_site(self, _: SiteLock) -> Result<bool, StoreFault> {
        Ok(true)
    }

    async fn today(self) -> Result<Option<Day>, StoreFault> {
        ledger::day(self)
    }

    async fn application(self, id: ApplicationId, day: Day) -> Result<Option<StoredApplication>, StoreFault> {
        records::application(self, id, day)
    }

    async fn changed(self, change: &StoreChange) -> Result<Option<StoredApplication>, StoreFault> {
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
    fn text(&self, column: &str) -> Result<String, StoreFault> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn optional_text(&self, column: &str) -> Result<Option<String>, StoreFault> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn any_text(&self, column: &str) -> Result<String, StoreFault> {
        let AnyText(text) = self.get(column)?;
        Ok(text)
    }

    fn bytes(&self, column: &str) -> Result<Vec<u8>, StoreFault> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn signed(&self, column: &str) -> Result<i64, StoreFault> {
        records::text(self, self.as_ref().column_index(column)?, column)
    }

    fn optional_number(&self, column: &str) -> Result<Option<u64>, StoreFault> {
        let number = records::number(self, self.as_ref().column_index(column)?, column)?;
        let bad = |_| StoreFault::Record(format!("{column} is negative"));
        number.map(u64::try_from).transpose().map_err(bad)
    }

    fn optional_time(&self, column: &str) -> Result<Option<Wall>, StoreFault> {
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
            Self::Limit(limit) => limit.to_sql(),
            Self::Time(at) => Ok(millis(*at).into()),
            Self::OptionalTime(at) => Ok(ToSqlOutput::Owned(at.map(millis).into())),
            Self::Digest(digest) => digest.as_bytes().to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
        }
    }
}
