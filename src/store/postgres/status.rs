//! Minutes in which the service was ready, and messages about its incidents. The rules are in `store::status`.
//!
//! A message is posted while the row of `site` is locked, like every change with an audit record; so numbers are assigned
//! here and not by a sequence.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row, Transaction};

use super::PostgresStore;
use super::audit;
use super::connection::{Parameter, SchemaName};
use crate::clock::Wall;
use crate::store::status::{DAY_MINUTES, STATUS_DAYS_KEPT, day_of_minute};
use crate::store::{
    IncidentState, MessageSubject, NewStatusMessage, StatusDay, StatusHistory, StatusMessage, StatusMinute,
    StatusStore, StoreError, StoreFuture,
};

/// Operations named in error messages.
const RECORD: &str = "record the status of this gateway";
const HISTORY: &str = "read the history of the status page";
const POST: &str = "post a status message";
const MESSAGES: &str = "read status messages";

/// The statements, with the schema's name.
pub(super) struct StatusStatements {
    schema: SchemaName,
    record: String,
    history: String,
    lock: String,
    last: String,
    insert: String,
    messages: String,
    delete: String,
}

/// Why a message was not posted.
enum PostRefusal {
    Unknown(u64),
    Resolved(u64),
}

/// A row that would not change is not written.
const RECORD_MINUTES: &str = "
INSERT INTO {schema}.status_minutes AS m (minute, is_ready, is_fresh)
SELECT r.minute, bool_or(r.is_ready), bool_or(r.is_fresh)
FROM unnest($1::int8[], $2::bool[], $3::bool[]) AS r (minute, is_ready, is_fresh)
JOIN {schema}.calendar c ON r.minute >= (c.day - date '1970-01-01' + 1 - $4::int4)::int8 * $5
GROUP BY r.minute ORDER BY r.minute
ON CONFLICT (minute) DO UPDATE
SET is_ready = m.is_ready OR excluded.is_ready, is_fresh = m.is_fresh OR excluded.is_fresh
WHERE (excluded.is_ready AND NOT m.is_ready) OR (excluded.is_fresh AND NOT m.is_fresh)";

/// A row without a day if there is none, for the first minute.
const READ_HISTORY: &str = "
SELECT f.first_minute, d.day, d.ready, d.fresh
FROM (SELECT min(minute) AS first_minute FROM {schema}.status_minutes) f
LEFT JOIN (
    SELECT minute / $3 AS day, count(*) FILTER (WHERE is_ready) AS ready, count(*) FILTER (WHERE is_fresh) AS fresh
    FROM {schema}.status_minutes WHERE minute >= $1 AND minute < $2 GROUP BY minute / $3
) d ON true
ORDER BY d.day";

const LAST: &str =
    "SELECT title, state FROM {schema}.status_messages WHERE incident = $1 ORDER BY id DESC LIMIT 1";

const INSERT: &str = "
INSERT INTO {schema}.status_messages (id, incident, at, state, title, message)
SELECT n.id, coalesce($1, n.id), $2, $3, $4, $5
FROM (SELECT coalesce(max(id), 0) + 1 AS id FROM {schema}.status_messages) n
RETURNING id, incident, at, state, title, message";

const READ_MESSAGES: &str = "
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
    ORDER BY minute LIMIT $3)";

const KEPT: i32 = STATUS_DAYS_KEPT.cast_signed();
const OF_A_DAY: i64 = DAY_MINUTES.cast_signed();

impl StatusStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [record, history, lock, last, insert, messages, delete] =
            [RECORD_MINUTES, READ_HISTORY, audit::LOCK, LAST, INSERT, READ_MESSAGES, DELETE]
                .map(|text| schema.statement(text));
        Self { schema: schema.clone(), record, history, lock, last, insert, messages, delete }
    }

    async fn record(&self, client: &Client, minutes: &[StatusMinute]) -> Result<(), tokio_postgres::Error> {
        let numbers: Vec<i64> = minutes.iter().map(|minute| minute.minute.cast_signed()).collect();
        let ready: Vec<bool> = minutes.iter().map(|minute| minute.is_ready).collect();
        let fresh: Vec<bool> = minutes.iter().map(|minute| minute.is_fresh).collect();
        let parameters: [Parameter<'_>; 5] = [
            (&numbers, Type::INT8_ARRAY),
            (&ready, Type::BOOL_ARRAY),
            (&fresh, Type::BOOL_ARRAY),
            (&KEPT, Type::INT4),
            (&OF_A_DAY, Type::INT8),
        ];
        client.execute_typed(&self.record, &parameters).await.map(drop)
    }

    async fn history(
        &self,
        client: &Client,
        first: u64,
        end: u64,
    ) -> Result<StatusHistory, tokio_postgres::Error> {
        let (first, end) = (first.cast_signed(), end.cast_signed());
        let parameters: [Parameter<'_>; 3] =
            [(&first, Type::INT8), (&end, Type::INT8), (&OF_A_DAY, Type::INT8)];
        let mut history = StatusHistory::default();
        for row in client.query_typed(&self.history, &parameters).await? {
            history.first_minute = row.try_get::<_, Option<i64>>("first_minute")?.map(i64::unsigned_abs);
            let Some(day) = row.try_get::<_, Option<i64>>("day")? else { continue };
            let count = |column| Ok(row.try_get::<_, i64>(column)?.unsigned_abs());
            history.days.push(StatusDay {
                day: day_of_minute(day.unsigned_abs().saturating_mul(DAY_MINUTES)),
                ready: count("ready")?,
                fresh: count("fresh")?,
            });
        }
        Ok(history)
    }

    async fn post(
        &self,
        client: &mut Client,
        new: &NewStatusMessage,
    ) -> Result<Result<StatusMessage, PostRefusal>, tokio_postgres::Error> {
        let transaction = client.transaction().await?;
        transaction.execute_typed(&self.lock, &[]).await?;
        let (incident, title, state) = match &new.subject {
            MessageSubject::New(title) => (None, title.clone(), None),
            MessageSubject::Known(incident) => match self.last(&transaction, *incident).await? {
                Ok((title, state)) => (Some(incident.cast_signed()), title, Some(state)),
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        let state = new.state.or(state).unwrap_or(IncidentState::Investigating);
        let (at, word) = (new.at.millis().cast_signed(), state.word());
        let row: [Parameter<'_>; 5] = [
            (&incident, Type::INT8),
            (&at, Type::INT8),
            (&word, Type::TEXT),
            (&title, Type::TEXT),
            (&new.message, Type::TEXT),
        ];
        let posted = message(&transaction.query_typed_one(&self.insert, &row).await?)?;
        let (what, detail) = posted.audited();
        audit::add(&transaction, &self.schema, new.at, [&new.who, what, "", &detail]).await?;
        transaction.commit().await?;
        Ok(Ok(posted))
    }

    /// Title and state of an incident, unless it is resolved.
    async fn last(
        &self,
        transaction: &Transaction<'_>,
        incident: u64,
    ) -> Result<Result<(String, IncidentState), PostRefusal>, tokio_postgres::Error> {
        let number = incident.cast_signed();
        let parameters: [Parameter<'_>; 1] = [(&number, Type::INT8)];
        let Some(row) = transaction.client().query_typed_opt(&self.last, &parameters).await? else {
            return Ok(Err(PostRefusal::Unknown(incident)));
        };
        let state = state(row.try_get("state")?);
        if state == IncidentState::Resolved {
            return Ok(Err(PostRefusal::Resolved(incident)));
        }
        Ok(Ok((row.try_get("title")?, state)))
    }

    async fn messages(
        &self,
        client: &Client,
        limit: usize,
    ) -> Result<Vec<StatusMessage>, tokio_postgres::Error> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 1] = [(&limit, Type::INT8)];
        client.query_typed(&self.messages, &parameters).await?.iter().map(message).collect()
    }

    /// Deletes a batch of outdated minutes. Returns their number.
    pub(super) async fn delete_outdated(
        &self,
        transaction: &Transaction<'_>,
        batch: i64,
    ) -> Result<u64, tokio_postgres::Error> {
        let parameters: [Parameter<'_>; 3] =
            [(&KEPT, Type::INT4), (&OF_A_DAY, Type::INT8), (&batch, Type::INT8)];
        transaction.execute_typed(&self.delete, &parameters).await
    }
}

/// The message of a row.
pub(super) fn message(row: &Row) -> Result<StatusMessage, tokio_postgres::Error> {
    let number = |column| Ok(row.try_get::<_, i64>(column)?.unsigned_abs());
    Ok(StatusMessage {
        id: number("id")?,
        incident: number("incident")?,
        at: Wall::from_millis(number("at")?),
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
        Box::pin(async move {
            let work = async |client: &mut Client| self.status.record(client, &minutes).await;
            Ok(self.connection.run(RECORD, work).await?)
        })
    }

    fn status_history(&self, first: u64, end: u64) -> StoreFuture<'_, StatusHistory> {
        Box::pin(async move {
            let work = async |client: &mut Client| self.status.history(client, first, end).await;
            Ok(self.connection.run(HISTORY, work).await?)
        })
    }

    fn post_status(&self, new: NewStatusMessage) -> StoreFuture<'_, StatusMessage> {
        Box::pin(async move {
            let work = async |client: &mut Client| self.status.post(client, &new).await;
            self.connection.run(POST, work).await?.map_err(|refusal| match refusal {
                PostRefusal::Unknown(incident) => StoreError::UnknownIncident(incident),
                PostRefusal::Resolved(incident) => StoreError::IncidentResolved(incident),
            })
        })
    }

    fn status_messages(&self, limit: usize) -> StoreFuture<'_, Vec<StatusMessage>> {
        Box::pin(async move {
            let work = async |client: &mut Client| self.status.messages(client, limit).await;
            Ok(self.connection.run(MESSAGES, work).await?)
        })
    }
}
