//! Minutes in which the service was ready, and messages about its incidents. The rules are in `store::status`.
//!
//! A message is posted while the row of `site` is locked, like every change with an audit record; so numbers are assigned
//! here and not by a sequence.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::status;
use crate::sql::tables::SqlRow as _;
use crate::status::{DAY_MINUTES, STATUS_DAYS_KEPT};
use crate::stored::stored;
use crate::{
    IncidentState, NewStatusMessage, StatusHistory, StatusMessage, StatusMinute, StatusStore, StoreFuture,
};

/// A row that would not change is not written.
const RECORD: &str = "
INSERT INTO {schema}.status_minutes AS m (minute, is_ready, is_fresh)
SELECT r.minute, bool_or(r.is_ready), bool_or(r.is_fresh)
FROM unnest($1::int8[], $2::bool[], $3::bool[]) AS r (minute, is_ready, is_fresh)
JOIN {schema}.calendar c ON r.minute >= (c.day - date '1970-01-01' + 1 - $4::int4)::int8 * $5
GROUP BY r.minute ORDER BY r.minute
ON CONFLICT (minute) DO UPDATE
SET is_ready = m.is_ready OR excluded.is_ready, is_fresh = m.is_fresh OR excluded.is_fresh
WHERE (excluded.is_ready AND NOT m.is_ready) OR (excluded.is_fresh AND NOT m.is_fresh)";

const MESSAGES: &str = "
SELECT id, incident, at, state, title, message FROM {schema}.status_messages
WHERE id IN (SELECT id FROM {schema}.status_messages ORDER BY id DESC LIMIT $1)
   OR incident NOT IN (SELECT incident FROM {schema}.status_messages WHERE state = 'resolved')
ORDER BY id DESC";

/// The first minute of all is kept: it shows that the service has a history.
const DELETE: &str = "
DELETE FROM {schema}.status_minutes WHERE minute IN (
    SELECT minute FROM {schema}.status_minutes
    WHERE minute < (SELECT (day - date '1970-01-01' + 1 - $1::int4)::int8 * $2 FROM {schema}.calendar)
      AND minute > (SELECT min(minute) FROM {schema}.status_minutes)
    ORDER BY minute LIMIT $3 FOR UPDATE SKIP LOCKED)";

const KEPT: i32 = STATUS_DAYS_KEPT.cast_signed();
const OF_A_DAY: i64 = DAY_MINUTES.cast_signed();

/// Deletes a batch of outdated minutes. Returns their number.
pub(crate) async fn delete_outdated(client: SchemaClient<'_>, batch: i64) -> SqlResult<u64> {
    client.execute(DELETE, &[&KEPT, &OF_A_DAY, &batch]).await
}

/// The message of a row.
fn message(row: &Row) -> SqlResult<StatusMessage> {
    Ok(StatusMessage {
        id: row.number("id")?,
        incident: row.number("incident")?,
        at: row.time("at")?,
        state: state(row.try_get("state")?),
        title: row.try_get("title")?,
        message: row.try_get("message")?,
    })
}

/// The engine writes known words only.
fn state(word: &str) -> IncidentState {
    IncidentState::parse(word).unwrap_or(IncidentState::Investigating)
}

impl StatusStore for PostgresStore {
    fn record_minutes(&self, minutes: Vec<StatusMinute>) -> StoreFuture<'_, ()> {
        let doing = "record the status of this gateway";
        Box::pin(self.connection.run(doing, async move |client| {
            let numbers: Vec<i64> = minutes.iter().map(|minute| minute.minute.cast_signed()).collect();
            let ready: Vec<bool> = minutes.iter().map(|minute| minute.is_ready).collect();
            let fresh: Vec<bool> = minutes.iter().map(|minute| minute.is_fresh).collect();
            client.execute(RECORD, &[&numbers, &ready, &fresh, &KEPT, &OF_A_DAY]).await.map(drop)
        }))
    }

    fn status_history(&self, first: u64, end: u64) -> StoreFuture<'_, StatusHistory> {
        let doing = "read the history of the status page";
        Box::pin(self.connection.run(doing, async move |client| status::history(client, first, end).await))
    }

    fn post_status(&self, new: NewStatusMessage) -> StoreFuture<'_, StatusMessage> {
        let doing = "post a status message";
        Box::pin(self.connection.change(doing, async move |client| status::post(client, &new).await))
    }

    fn status_messages(&self, limit: usize) -> StoreFuture<'_, Vec<StatusMessage>> {
        let doing = "read status messages";
        Box::pin(self.connection.run(doing, async move |client| {
            client.query(MESSAGES, &[&stored(limit)]).await?.iter().map(message).collect()
        }))
    }
}
