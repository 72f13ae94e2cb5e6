//! The work that both engines do with the same statements (`store::sql`), in this one.

use std::pin::pin;

use futures_util::TryStreamExt as _;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::postgres::connection::schema_client::{ChangeFault, SchemaClient, SqlResult};
use crate::postgres::outdated::OUTDATED;
use crate::sql::rows::{EngineRow, SqlRow, SqlValue};
use crate::sql::tables::{DumpTerms, SiteLock, SqlField, SqlTables};
use scoregate_base::clock::Day;

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
    const OUTDATED: &'static [&'static str] = OUTDATED;
    const DUMP: DumpTerms = DumpTerms {
        object: "json_build_object",
        to_hex: "encode({column}, 'hex')",
        from_hex: "decode({text}, 'hex')",
        // The numbers of audit records are kept.
        rows: "OVERRIDING SYSTEM VALUE SELECT {values} FROM json_array_elements($1::text::json) AS r (value)",
    };
    /// `OFFSET 0` keeps the planner from joining each page by a scan of all keys, which is quadratic in all pages together.
    const JOINED: &'static str = "
LEFT JOIN LATERAL (SELECT * FROM {schema}.keys WHERE application = a.id OFFSET 0) k ON true
LEFT JOIN LATERAL (SELECT granted FROM {schema}.ledger_days WHERE day = $1::text::date AND application = a.id OFFSET 0) l
    ON true";

    async fn run(self, text: &str, values: &[SqlField<'_>]) -> SqlResult<u64> {
        self.execute(text, values).await
    }

    async fn each(
        self,
        text: &str,
        values: &[SqlField<'_>],
        mut take: impl FnMut(&SqlRow<'_>),
    ) -> SqlResult<()> {
        let mut rows = pin!(self.stream(text, values).await?);
        while let Some(row) = rows.try_next().await? {
            take(&SqlRow::new(&row));
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
        let select = format!("SELECT FROM {{schema}}.site FOR {strength}");
        Ok(self.execute(&select, &[]).await? > 0)
    }

    async fn today(self) -> SqlResult<Option<Day>> {
        let day = self.find(TODAY, &[], |row| row.text("day")).await?;
        Ok(day.as_deref().and_then(Day::parse))
    }
}

impl EngineRow for Row {
    fn column_count(&self) -> usize {
        self.len()
    }

    fn column_name(&self, column: usize) -> &str {
        self.columns()
            .get(column)
            .map_or("", |column| column.name())
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        let Some(found) = self.columns().get(column) else {
            return SqlValue::Null;
        };
        match *found.type_() {
            Type::INT8 => value(self.try_get(column), SqlValue::Number),
            Type::INT4 => value(self.try_get(column), |number: i32| {
                SqlValue::Number(number.into())
            }),
            Type::BOOL => value(self.try_get(column), |flag: bool| {
                SqlValue::Number(flag.into())
            }),
            Type::TEXT => {
                let text = self.try_get::<_, Option<&str>>(column);
                value(text.map(|text| text.map(str::as_bytes)), SqlValue::Text)
            }
            Type::BYTEA => value(self.try_get(column), SqlValue::Bytes),
            _ => SqlValue::Other,
        }
    }
}

fn value<'r, T>(
    read: Result<Option<T>, tokio_postgres::Error>,
    known: impl Fn(T) -> SqlValue<'r>,
) -> SqlValue<'r> {
    match read {
        Ok(Some(found)) => known(found),
        Ok(None) => SqlValue::Null,
        Err(_) => SqlValue::Other,
    }
}
