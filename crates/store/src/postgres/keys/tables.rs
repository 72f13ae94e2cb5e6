//! The work that both engines do with the same statements (`store::sql`), in this one.

use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{ChangeFault, Parameter, SchemaClient, SqlResult};
use crate::postgres::keys::records;
use crate::sql::tables::{DumpTerms, SiteLock, SqlField, SqlRow, SqlTables};
use crate::stored::millis;
use crate::{StoreError, StoredApplication};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;

const TODAY: &str = "SELECT day::text FROM {schema}.calendar WHERE day > '1970-01-01'";

impl SqlTables for SchemaClient<'_> {
    type Fault = ChangeFault;

    const POSITION: &'static str = "strpos";
    /// The audit record, whose number is that of the change, and a hint to listeners. Only the id is sent.
    const ADD_AUDIT: &'static str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)
RETURNING pg_notify(left('{schema}_changes', 63), application)";
    /// The history changes with every failover and restore: a server that lost changes may assign their numbers again. `NULL`
    /// once the tables were replaced by a dump.
    const SOURCE: &'static str = "(SELECT s.id::text || '/' || c.restored_at || '/' || {history}
        FROM {schema}.site s CROSS JOIN {schema}.calendar c WHERE c.own_oid = c.tableoid)";
    const CLOCK: &'static str = "(extract(epoch FROM clock_timestamp()) * 1000)::int8";
    /// Gateways skip each other's records.
    const SKIP_LOCKED: &'static str = "FOR UPDATE SKIP LOCKED";
    const DELETED_AT_ONCE: &'static str = "ORDER BY {key} LIMIT 1000 FOR UPDATE SKIP LOCKED";
    const MERGED_AT_ONCE: u32 = 1_000;
    const DUMP: DumpTerms = DumpTerms {
        object: "json_build_object",
        to_hex: "encode({column}, 'hex')",
        from_hex: "decode({text}, 'hex')",
        // The numbers of audit records are kept.
        rows: "OVERRIDING SYSTEM VALUE SELECT {values} FROM json_array_elements($1::text::json) AS r (value)",
    };

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
        self.query_opt(text, &borrowed(&values))
            .await?
            .map(|row| read(&row))
            .transpose()
    }

    async fn list<T>(
        self,
        text: &str,
        values: &[SqlField<'_>],
        read: impl Fn(&dyn SqlRow<ChangeFault>) -> SqlResult<Option<T>>,
    ) -> SqlResult<Vec<T>> {
        let values: Vec<_> = values.iter().map(parameter).collect();
        let rows = self.query(text, &borrowed(&values)).await?;
        rows.iter()
            .filter_map(|row| read(row).transpose())
            .collect()
    }

    async fn each_text<E: From<ChangeFault>>(
        self,
        text: &str,
        take: &mut dyn FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = self.stream(text, []).await.map_err(ChangeFault::from)?;
        let mut rows = pin!(rows);
        while let Some(row) = rows.try_next().await.map_err(ChangeFault::from)? {
            take(row.try_get(0).map_err(ChangeFault::from)?)?;
        }
        Ok(())
    }

    /// Locks the row of `site`.
    async fn lock_site(self, lock: SiteLock) -> SqlResult<bool> {
        let strength = match lock {
            SiteLock::Change => "NO KEY UPDATE",
            SiteLock::Report => "KEY SHARE",
            SiteLock::Merge => "UPDATE SKIP LOCKED",
        };
        Ok(self
            .execute(&format!("SELECT FROM {{schema}}.site FOR {strength}"), &[])
            .await?
            > 0)
    }

    async fn today(self) -> SqlResult<Option<Day>> {
        Ok(self
            .find(TODAY, &[], |row| row.text("day"))
            .await?
            .as_deref()
            .and_then(Day::parse))
    }

    async fn application(
        self,
        id: ApplicationId,
        day: Day,
    ) -> SqlResult<Option<StoredApplication>> {
        records::application(self, id, day).await
    }
}

fn parameter<'v>(value: &'v SqlField<'v>) -> Box<dyn Parameter + Send + 'v> {
    match value {
        SqlField::Text(text) => Box::new(*text),
        SqlField::OptionalText(text) => Box::new(*text),
        SqlField::Number(number) => Box::new(*number),
        SqlField::Time(at) => Box::new(millis(*at)),
        SqlField::OptionalTime(at) => Box::new(at.map(millis)),
        SqlField::Digest(digest) => Box::new(digest.as_bytes().as_slice()),
        SqlField::Bytes(bytes) => Box::new(*bytes),
        SqlField::Flag(flag) => Box::new(*flag),
    }
}

fn borrowed<'v>(values: &'v [Box<dyn Parameter + Send + 'v>]) -> Vec<&'v dyn Parameter> {
    values
        .iter()
        .map(|value| &**value as &dyn Parameter)
        .collect()
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

    fn signed(&self, column: &str) -> SqlResult<i64> {
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
        StoreError::Damaged {
            path: "the database".into(),
            reason,
        }
        .into()
    }
}
