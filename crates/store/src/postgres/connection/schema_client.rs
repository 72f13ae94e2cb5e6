//! Statements on the tables of one schema, and the columns of their rows.
//!
//! A statement has no name, and its parameters have types: it takes one round trip, also behind a pooler.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row, RowStream};

use crate::postgres::connection::database_connection::SchemaName;
use crate::postgres::connection::engine_features::EngineFeatures;
use crate::{StoreError, TransferError};

/// Why a call fails, and its transaction is rolled back.
#[derive(Debug)]
pub(crate) enum ChangeFault<E = StoreError> {
    /// A statement failed.
    Sql(tokio_postgres::Error),
    /// The change is refused.
    Refused(E),
}

/// The result of statements.
pub(crate) type SqlResult<T, E = StoreError> = Result<T, ChangeFault<E>>;

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

impl From<ChangeFault> for ChangeFault<TransferError> {
    fn from(fault: ChangeFault) -> Self {
        match fault {
            ChangeFault::Sql(error) => Self::Sql(error),
            ChangeFault::Refused(refusal) => Self::Refused(refusal.into()),
        }
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
    i64: INT8,
    String: TEXT,
    &str: TEXT,
    &[u8]: BYTEA,
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
        Ok(self
            .client
            .execute_typed(&self.statement(text), &typed(values))
            .await?)
    }

    pub(crate) async fn query(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<Vec<Row>> {
        Ok(self
            .client
            .query_typed(&self.statement(text), &typed(values))
            .await?)
    }

    pub(crate) async fn query_opt(
        self,
        text: &str,
        values: &[&dyn Parameter],
    ) -> SqlResult<Option<Row>> {
        Ok(self
            .client
            .query_typed_opt(&self.statement(text), &typed(values))
            .await?)
    }

    pub(crate) async fn query_one(self, text: &str, values: &[&dyn Parameter]) -> SqlResult<Row> {
        Ok(self
            .client
            .query_typed_one(&self.statement(text), &typed(values))
            .await?)
    }

    /// The rows as they arrive. The parameters are texts.
    pub(crate) async fn stream<const N: usize>(
        self,
        text: &str,
        values: [String; N],
    ) -> Result<RowStream, tokio_postgres::Error> {
        let values = values.map(|value| (value, Type::TEXT));
        self.client
            .query_typed_raw(&self.statement(text), values)
            .await
    }

    /// Statements without parameters.
    pub(crate) async fn batch_execute(self, text: &str) -> SqlResult<()> {
        Ok(self.client.batch_execute(&self.statement(text)).await?)
    }

    pub(crate) fn statement(self, text: &str) -> String {
        self.features.statement(self.schema.statement(text))
    }
}

fn typed<'v>(values: &[&'v dyn Parameter]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values.iter().map(|value| value.typed()).collect()
}
