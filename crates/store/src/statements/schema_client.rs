//! Statements on the tables of one schema.
//!
//! Statements are unnamed, and their parameters have explicit types, so each takes one round trip, even behind a
//! pooler.

use bytes::BytesMut;
use tokio_postgres::{
    Client, Row, RowStream,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use super::{
    engine_features::EngineFeatures,
    fault::Done,
    fields::SqlField,
    rows::{EngineRow, SqlValue},
    schema_name::SchemaName,
};
use crate::stored::millis;

/// Placeholders in statements, and their replacements for a database.
const TERMS: [(&str, &str); 7] = [
    ("{position}", "strpos"),
    (
        "{notify}",
        " RETURNING pg_notify(left('{schema}_changes', 63), application)",
    ),
    // The history changes with every failover and restore, because a server that lost changes may assign their numbers
    // again. `NULL` if a dump replaced the tables.
    (
        "{source}",
        "(SELECT s.id::text || '/' || c.restored_at || '/' || {history}
          FROM {schema}.site s CROSS JOIN {schema}.calendar c WHERE c.own_oid = c.tableoid)",
    ),
    (
        "{clock}",
        "(extract(epoch FROM clock_timestamp()) * 1000)::int8",
    ),
    // Concurrent gateways skip each other's records.
    ("{skip_locked}", "FOR UPDATE SKIP LOCKED"),
    ("{at_once}", "1000 FOR UPDATE SKIP LOCKED"),
    // `OFFSET 0` keeps the planner from joining each page with a scan of all keys, which would be quadratic over all
    // pages.
    (
        "{keys_and_units}",
        "
LEFT JOIN LATERAL (SELECT * FROM {schema}.keys WHERE application = a.id OFFSET 0) k ON true
LEFT JOIN LATERAL (SELECT granted FROM {schema}.ledger_days WHERE day = $1::text::date AND application = a.id OFFSET 0) l
    ON true",
    ),
];

/// A connection, or the transaction in progress on it. In statements, `{schema}` is replaced with the schema name. Features that
/// some servers lack are replaced with a form that this server accepts.
#[derive(Clone, Copy)]
pub struct SchemaClient<'c> {
    pub client: &'c Client,
    pub schema: &'c SchemaName,
    pub features: EngineFeatures,
}

impl SchemaClient<'_> {
    pub async fn execute(self, text: &str, values: &[SqlField<'_>]) -> Done<u64> {
        let text = self.statement(text);
        Ok(self.client.execute_typed(&text, &typed(values)).await?)
    }

    pub async fn query(self, text: &str, values: &[SqlField<'_>]) -> Done<Vec<Row>> {
        let text = self.statement(text);
        Ok(self.client.query_typed(&text, &typed(values)).await?)
    }

    pub async fn query_opt(self, text: &str, values: &[SqlField<'_>]) -> Done<Option<Row>> {
        let text = self.statement(text);
        Ok(self.client.query_typed_opt(&text, &typed(values)).await?)
    }

    pub async fn query_one(self, text: &str, values: &[SqlField<'_>]) -> Done<Row> {
        let text = self.statement(text);
        Ok(self.client.query_typed_one(&text, &typed(values)).await?)
    }

    /// The rows, as they arrive.
    pub async fn stream(
        self,
        text: &str,
        values: &[SqlField<'_>],
    ) -> Result<RowStream, tokio_postgres::Error> {
        let text = self.statement(text);
        self.client.query_typed_raw(&text, typed(values)).await
    }

    /// Runs statements without parameters.
    pub async fn batch_execute(self, text: &str) -> Done<()> {
        Ok(self.client.batch_execute(&self.statement(text)).await?)
    }

    pub fn statement(self, text: &str) -> String {
        let text = TERMS
            .iter()
            .fold(text.to_owned(), |text, (term, own)| text.replace(term, own));
        self.features.statement(self.schema.statement(&text))
    }
}

fn typed<'v>(values: &'v [SqlField<'v>]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values
        .iter()
        .map(|value| (value as &(dyn ToSql + Sync), value.sql_type()))
        .collect()
}

impl SqlField<'_> {
    /// The type of the parameter on the server.
    fn sql_type(&self) -> Type {
        match self {
            Self::Text(_) | Self::OptionalText(_) => Type::TEXT,
            Self::Number(_) | Self::OptionalNumber(_) | Self::Time(_) | Self::OptionalTime(_) => {
                Type::INT8
            }
            Self::Digest(_) | Self::Bytes(_) => Type::BYTEA,
            Self::Flag(_) => Type::BOOL,
            Self::Texts(_) | Self::OptionalTexts(_) => Type::TEXT_ARRAY,
            Self::Numbers(_) => Type::INT8_ARRAY,
        }
    }
}

impl ToSql for SqlField<'_> {
    fn to_sql(
        &self,
        sql_type: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Text(text) => text.to_sql(sql_type, out),
            Self::OptionalText(text) => text.to_sql(sql_type, out),
            Self::Number(number) => number.to_sql(sql_type, out),
            Self::OptionalNumber(number) => number.to_sql(sql_type, out),
            Self::Time(at) => millis(*at).to_sql(sql_type, out),
            Self::OptionalTime(at) => at.map(millis).to_sql(sql_type, out),
            Self::Digest(digest) => digest.as_bytes().as_slice().to_sql(sql_type, out),
            Self::Bytes(bytes) => bytes.to_sql(sql_type, out),
            Self::Flag(flag) => flag.to_sql(sql_type, out),
            Self::Texts(texts) => texts.to_sql(sql_type, out),
            Self::OptionalTexts(texts) => texts.to_sql(sql_type, out),
            Self::Numbers(numbers) => numbers.to_sql(sql_type, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
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
