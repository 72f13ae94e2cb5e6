//! Statements on the tables of one schema, and the columns of their rows.
//!
//! A statement has no name, and its parameters have types: it takes one round trip, also behind a pooler.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, RowStream};

use crate::postgres::connection::database_connection::SchemaName;
use crate::postgres::connection::engine_features::EngineFeatures;
use crate::{StoreError, TransferError};
use scoregate_base::clock::Wall;

/// The reply to a statement.
pub(crate) type SqlResult<T> = Result<T, tokio_postgres::Error>;

/// Why a transaction is rolled back.
#[derive(Debug)]
pub(crate) enum ChangeFault<E = StoreError> {
    /// A statement failed.
    Sql(tokio_postgres::Error),
    /// The change is refused.
    Refused(E),
}

/// The result of the statements of a change.
pub(crate) type ChangeResult<T, E = StoreError> = Result<T, ChangeFault<E>>;

impl<E> From<tokio_postgres::Error> for ChangeFault<E> {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for ChangeFault {
    fn from(refusal: StoreError) -> Self {
        Self::Refused(refusal)
    }
}

impl From<TransferError> for ChangeFault<TransferError> {
    fn from(refusal: TransferError) -> Self {
        Self::Refused(refusal)
    }
}

/// A parameter of a statement.
pub(crate) trait Parameter: Sync {
    /// The value, with the type that it has on the server.
    fn typed(&self) -> (&(dyn ToSql + Sync), Type);
}

/// A type that has one type on the server.
pub(crate) trait ParameterType: ToSql + Sync {
    fn sql_type() -> Type;
}

impl<T: ParameterType> Parameter for T {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        (self, T::sql_type())
    }
}

impl<T: ParameterType> ParameterType for Option<T> {
    fn sql_type() -> Type {
        T::sql_type()
    }
}

macro_rules! parameter_types {
    ($($rust:ty: $sql:ident),+ $(,)?) => {
        $(impl ParameterType for $rust {
            fn sql_type() -> Type {
                Type::$sql
            }
        })+
    };
}

parameter_types! {
    bool: BOOL,
    i32: INT4,
    i64: INT8,
    String: TEXT,
    &str: TEXT,
    &[u8]: BYTEA,
    Vec<bool>: BOOL_ARRAY,
    Vec<i64>: INT8_ARRAY,
    Vec<Option<i64>>: INT8_ARRAY,
    Vec<&[u8]>: BYTEA_ARRAY,
    Vec<String>: TEXT_ARRAY,
    Vec<Option<String>>: TEXT_ARRAY,
    Vec<&str>: TEXT_ARRAY,
}

/// A connection, or the transaction in progress on it. Each `{schema}` in a statement is replaced by the name, and what a
/// server may lack by the form for this one.
#[derive(Clone, Copy)]
pub(crate) struct SchemaClient<'c> {
    pub(crate) client: &'c Client,
    pub(crate) schema: &'c SchemaName,
    pub(crate) features: EngineFeatures,
}

impl SchemaClient<'_> {
    pub(crate) async fn execute(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<u64> {
        self.client.execute_typed(&self.statement(text), &typed(values)).await
    }

    pub(crate) async fn query(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<Vec<Row>> {
        self.client.query_typed(&self.statement(text), &typed(values)).await
    }

    pub(crate) async fn query_opt(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<Option<Row>> {
        self.client.query_typed_opt(&self.statement(text), &typed(values)).await
    }

    pub(crate) async fn query_one(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<Row> {
        self.client.query_typed_one(&self.statement(text), &typed(values)).await
    }

    /// The rows as they arrive. The statement has one parameter.
    pub(crate) async fn stream(self, text: &str, value: String) -> SqlResult<RowStream> {
        self.client.query_typed_raw(&self.statement(text), [(value, Type::TEXT)]).await
    }

    /// Statements without parameters.
    pub(crate) async fn batch_execute(self, text: &str) -> SqlResult<()> {
        self.client.batch_execute(&self.statement(text)).await
    }

    fn statement(self, text: &str) -> String {
        self.features.statement(self.schema.statement(text))
    }
}

fn typed<'v>(values: &[&'v dyn Parameter]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| value.typed()).collect()
}

/// The columns of a row as the program has them. The engine writes valid values only.
pub(crate) trait RowColumns {
    /// A number that is not negative.
    fn count(&self, column: &str) -> SqlResult<u64>;

    /// The same, at most the largest that the program has.
    fn small_count(&self, column: &str) -> SqlResult<u32> {
        Ok(u32::try_from(self.count(column)?).unwrap_or(u32::MAX))
    }

    /// A time.
    fn at(&self, column: &str) -> SqlResult<Wall> {
        self.count(column).map(Wall::from_millis)
    }

    /// A time, if there is one.
    fn optional_at(&self, column: &str) -> SqlResult<Option<Wall>>;
}

impl RowColumns for Row {
    fn count(&self, column: &str) -> SqlResult<u64> {
        Ok(u64::try_from(self.try_get::<_, i64>(column)?).unwrap_or(0))
    }

    fn optional_at(&self, column: &str) -> SqlResult<Option<Wall>> {
        let millis: Option<i64> = self.try_get(column)?;
        Ok(millis.map(|millis| Wall::from_millis(u64::try_from(millis).unwrap_or(0))))
    }
}
