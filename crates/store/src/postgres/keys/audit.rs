//! Records of the audit trail, each written in the transaction of its change.

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::stored::millis;
use scoregate_base::clock::Wall;

/// Taken before any change with an audit record, so that the numbers of records are in commit order.
const LOCK: &str = "SELECT FROM {schema}.site FOR NO KEY UPDATE";

/// The audit record, whose number is that of the change, and a hint to listeners. Only the id is sent.
const ADD: &str = "
INSERT INTO {schema}.audit (at, who, what, application, detail) VALUES ($1, $2, $3, $4, $5)
RETURNING {notify}(left('{schema}_changes', 63), application)";

/// Locks the row of `site` until the transaction ends. Reports of gateways do not wait for it.
pub(crate) async fn lock(client: SchemaClient<'_>) -> SqlResult<()> {
    client.execute(LOCK, &[]).await.map(drop)
}

/// Adds an audit record: actor, action, application, details.
pub(crate) async fn add(client: SchemaClient<'_>, at: Wall, words: [&str; 4]) -> SqlResult<()> {
    let [who, what, application, detail] = &words;
    client.execute(ADD, &[&millis(at), who, what, application, detail]).await.map(drop)
}
