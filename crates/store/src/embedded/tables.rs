//! The work that both engines do with the same statements (`store::sql`), in this one. No statement waits.

use futures_util::FutureExt as _;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::fault::{FileResult, StoreFault};
use super::ledger;
use crate::sql::records;
use crate::sql::rows::{EngineRow, SqlRow, SqlValue};
use crate::sql::tables::{DumpTerms, SiteLock, SqlField, SqlTables};
use crate::stored::millis;
use scoregate_base::clock::Day;

/// The result of work on a connection.
pub(crate) fn done<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never()
        .expect("statements on a file do not wait")
}

/// A statement as this engine has it.
fn statement(text: &str) -> String {
    text.replace("{schema}.", "")
        .replace("::text::date", "")
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
    const OUTDATED: &'static [&'static str] = &[];
    const DUMP: DumpTerms = DumpTerms {
        object: "json_object",
        to_hex: "lower(hex({column}))",
        from_hex: "unhex({text})",
        rows: "SELECT {values} FROM json_each($1)",
    };
    /// All three tables have the order of applications, so the search for a row begins near the one before.
    const JOINED: &'static str = records::JOINED;

    async fn run(self, text: &str, values: &[SqlField<'_>]) -> FileResult<u64> {
        let mut statement = self.prepare_cached(&statement(text))?;
        Ok(statement.execute(params_from_iter(values))? as u64)
    }

    async fn each(
        self,
        text: &str,
        values: &[SqlField<'_>],
        mut take: impl FnMut(&SqlRow<'_>),
    ) -> FileResult<()> {
        let mut statement = self.prepare_cached(&statement(text))?;
        let names = statement.column_names();
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            let row = FileRow { row, names: &names };
            take(&SqlRow::new(&row));
        }
        Ok(())
    }

    /// One thread writes.
    async fn lock_site(self, _: SiteLock) -> FileResult<bool> {
        Ok(true)
    }

    async fn today(self) -> FileResult<Option<Day>> {
        ledger::day(self).await
    }
}

/// A row with the names of its columns, which SQLite would return one by one.
struct FileRow<'r> {
    row: &'r Row<'r>,
    names: &'r [String],
}

impl EngineRow for FileRow<'_> {
    fn column_count(&self) -> usize {
        self.names.len()
    }

    fn column_name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Null) => SqlValue::Null,
            Ok(ValueRef::Integer(number)) => SqlValue::Number(number),
            Ok(ValueRef::Text(text)) => SqlValue::Text(text),
            Ok(ValueRef::Blob(bytes)) => SqlValue::Bytes(bytes),
            Ok(ValueRef::Real(_)) | Err(_) => SqlValue::Other,
        }
    }
}

impl ToSql for SqlField<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::OptionalText(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::OptionalNumber(number) => number.to_sql(),
            Self::Time(at) => Ok(millis(*at).into()),
            Self::OptionalTime(at) => Ok(ToSqlOutput::Owned(at.map(millis).into())),
            Self::Digest(digest) => digest.as_bytes().to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
            Self::Texts(_) | Self::OptionalTexts(_) | Self::Numbers(_) => {
                let error = "a file has no lists";
                Err(rusqlite::Error::ToSqlConversionFailure(error.into()))
            }
        }
    }
}
