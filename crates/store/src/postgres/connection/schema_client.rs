//! Statements on the tables of one schema.
//!
//! A statement has no name, and its parameters have types: it takes one round trip, also behind a pooler.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Row, RowStream};

use crate::postgres::connection::database_connection::{DatabaseConnection, SchemaName};
use crate::postgres::connection::engine_features::EngineFeatures;
use crate::sql::rows::BadRecord;
use crate::sql::tables::SqlField;
use crate::stored::millis;
use crate::{StoreError, TransferError};

/// Why a call fails, and its transaction is rolled back.
#[derive(Debug)]
pub(crate) enum ChangeFault<E = StoreError> {
    /// A statement failed.
    Sql(tokio_postgres::Error),
    /// The change is refused.
    Refused(E),
    /// A record cannot be read.
    Unreadable(String),
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

impl<E> From<BadRecord> for ChangeFault<E> {
    fn from(bad: BadRecord) -> Self {
        Self::Unreadable(bad.0)
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
            ChangeFault::Unreadable(reason) => Self::Unreadable(reason),
        }
    }
}

/// A connection, or the transaction in progress on it. Each `{schema}` in a statement is replaced by the name, and what a
/// server may lack by the form for this one.
#[derive(Clone, Copy)]
pub(crate) struct SchemaClient<'c> {
    pub(crate) client: &'c Client,
    pub(crate) schema: &'c SchemaName,
    pub(crate) features: EngineFeatures,
}

impl DatabaseConnection {
    /// The tables of a schema.
    pub(crate) fn tables<'c>(&'c self, schema: &'c SchemaName) -> SchemaClient<'c> {
        SchemaClient {
            client: &self.client,
            schema,
            features: self.features,
        }
    }

    /// The result of work on the connection; an error if a statement failed. Tables with an unreadable record may have been
    /// replaced, which the check of the next connection finds.
    pub(crate) fn settled<T, E: From<StoreError>>(
        &self,
        done: SqlResult<T, E>,
    ) -> Result<Result<T, E>, tokio_postgres::Error> {
        match done {
            Ok(done) => Ok(Ok(done)),
            Err(ChangeFault::Sql(error)) => Err(error),
            Err(ChangeFault::Refused(refusal)) => Ok(Err(refusal)),
            Err(ChangeFault::Unreadable(reason)) => {
                self.discard();
                let path = "the database".into();
                Ok(Err(StoreError::Damaged { path, reason }.into()))
            }
        }
    }
}

impl SchemaClient<'_> {
    pub(crate) async fn execute(self, text: &str, values: &[SqlField<'_>]) -> SqlResult<u64> {
        let text = self.statement(text);
        Ok(self.client.execute_typed(&text, &typed(values)).await?)
    }

    pub(crate) async fn query(self, text: &str, values: &[SqlField<'_>]) -> SqlResult<Vec<Row>> {
        let text = self.statement(text);
        Ok(self.client.query_typed(&text, &typed(values)).await?)
    }

    pub(crate) async fn query_opt(
        self,
        text: &str,
        values: &[SqlField<'_>],
    ) -> SqlResult<Option<Row>> {
        let text = self.statement(text);
        Ok(self.client.query_typed_opt(&text, &typed(values)).await?)
    }

    pub(crate) async fn query_one(self, text: &str, values: &[SqlField<'_>]) -> SqlResult<Row> {
        let text = self.statement(text);
        Ok(self.client.query_typed_one(&text, &typed(values)).await?)
    }

    /// The rows as they arrive.
    pub(crate) async fn stream(
        self,
        text: &str,
        values: &[SqlField<'_>],
    ) -> Result<RowStream, tokio_postgres::Error> {
        let text = self.statement(text);
        self.client.query_typed_raw(&text, typed(values)).await
    }

    /// Statements without parameters.
    pub(crate) async fn batch_execute(self, text: &str) -> SqlResult<()> {
        Ok(self.client.batch_execute(&self.statement(text)).await?)
    }

    pub(crate) fn statement(self, text: &str) -> String {
        self.features.statement(self.schema.statement(text))
    }
}

fn typed<'v>(values: &'v [SqlField<'v>]) -> Vec<(&'v (dyn ToSql + Sync), Type)> {
    values
        .iter()
        .map(|value| (value as &(dyn ToSql + Sync), value.sql_type()))
        .collect()
}

impl SqlField<'_> {
    /// Its type on the server.
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
