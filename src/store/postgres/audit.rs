//! Records of the audit trail, each written in the transaction of its change.

use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

use super::connection::{Parameter, SchemaName};
use crate::clock::Wall;

/// Taken before any change with an audit record, so that the numbers of records are in commit order.
pub(super) const LOCK: &str = "SELECT FROM {schema}.site FOR UPDATE";

/// The audit record, whose number is that of the change, and a hint to listeners. Only the id is sent.
const ADD: &str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)
RETURNING pg_notify(left('{schema}_changes', 63), application)";

/// Adds an audit record: actor, action, application, details.
pub(super) async fn add(
    transaction: &Transaction<'_>,
    schema: &SchemaName,
    at: Wall,
    [who, what, application, detail]: [&str; 4],
) -> Result<(), tokio_postgres::Error> {
    let at = at.millis().cast_signed();
    let record: [Parameter<'_>; 5] = [
        (&at, Type::INT8),
        (&who, Type::TEXT),
        (&what, Type::TEXT),
        (&application, Type::TEXT),
        (&detail, Type::TEXT),
    ];
    transaction.client().execute_typed(&schema.statement(ADD), &record).await.map(drop)
}
