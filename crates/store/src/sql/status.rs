//! The history of the status page, and messages about incidents. The rules are in `store::status`.

use std::collections::BTreeMap;

use super::store::{
    Access::{Change, Read},
    Store,
};
use crate::{
    IncidentState, MessageSubject, NewStatusMessage, StatusDay, StatusHistory, StatusMessage,
    StatusMinute, StoreError, StoreResult,
    statements::{
        Done, RowResult,
        SqlField::{Flag, Number, Text, Time},
        SqlRow, Tables,
    },
    status::{DAY_MINUTES, day_of_minute, first_kept},
    stored::stored,
};

/// Unchanged rows are not written.
const RECORD: &str = "
INSERT INTO {schema}.status_minutes AS m (minute, is_ready, is_fresh) VALUES {rows}
ON CONFLICT (minute) DO UPDATE
SET is_ready = m.is_ready OR excluded.is_ready, is_fresh = m.is_fresh OR excluded.is_fresh
WHERE (excluded.is_ready AND NOT m.is_ready) OR (excluded.is_fresh AND NOT m.is_fresh)";

/// Every row contains the first minute. If there are no days, there is one row, without a day.
const HISTORY: &str = "
SELECT f.first_minute, d.day, d.ready, d.fresh
FROM (SELECT min(minute) AS first_minute FROM {schema}.status_minutes) f
LEFT JOIN (
    SELECT minute / $3 AS day, count(*) FILTER (WHERE is_ready) AS ready, count(*) FILTER (WHERE is_fresh) AS fresh
    FROM {schema}.status_minutes WHERE minute >= $1 AND minute < $2 GROUP BY minute / $3
) d ON true
ORDER BY d.day";
const MESSAGES: &str = "
SELECT id, incident, at, state, title, message FROM {schema}.status_messages
WHERE id IN (SELECT id FROM {schema}.status_messages ORDER BY id DESC LIMIT $1)
   OR incident NOT IN (SELECT incident FROM {schema}.status_messages WHERE state = 'resolved')
ORDER BY id DESC";
const NEXT: &str = "SELECT coalesce(max(id), 0) + 1 AS id FROM {schema}.status_messages";
const LAST: &str = "SELECT title, state FROM {schema}.status_messages WHERE incident = $1 ORDER BY id DESC LIMIT 1";
const INSERT: &str = "
INSERT INTO {schema}.status_messages (id, incident, at, state, title, message) VALUES ($1, $2, $3, $4, $5, $6)";

impl Store {
    /// Stores minutes as seen by one gateway. A minute counts as ready, or its data as fresh, if any gateway recorded
    /// that. Minutes that are no longer kept are ignored.
    pub async fn record_minutes(&self, minutes: Vec<StatusMinute>) -> StoreResult<()> {
        let doing = "record the status of this gateway";
        self.run(Change, doing, async move |tables| {
            let first = first_kept(tables.today().await?);
            let mut combined = BTreeMap::new();
            for StatusMinute {
                minute,
                is_ready,
                is_fresh,
            } in minutes.iter().filter(|minute| minute.minute >= first)
            {
                let (ready, fresh) = combined.entry(minute).or_insert((false, false));
                (*ready, *fresh) = (*ready || *is_ready, *fresh || *is_fresh);
            }
            let values: Vec<_> = combined
                .into_iter()
                .flat_map(|(minute, (ready, fresh)): (&u64, _)| {
                    [Number(minute.cast_signed()), Flag(ready), Flag(fresh)]
                })
                .collect();
            tables.write_rows(RECORD, "", 3, &values).await
        })
        .await
    }

    /// The minutes from `first` up to, but not including, `end`, summed by day.
    pub async fn status_history(&self, first: u64, end: u64) -> StoreResult<StatusHistory> {
        let doing = "read the history of the status page";
        self.run(Read, doing, async move |tables| {
            let bounds = [first, end, DAY_MINUTES].map(|number| Number(number.cast_signed()));
            let rows = tables.list(HISTORY, &bounds, history_row).await?;
            Ok(StatusHistory {
                first_minute: rows.first().and_then(|(first_minute, _)| *first_minute),
                days: rows.into_iter().filter_map(|(_, day)| day).collect(),
            })
        })
        .await
    }

    /// The newest messages, up to `limit`, and all messages of incidents that are not resolved; newest first.
    /// Unreadable messages are skipped.
    pub async fn status_messages(&self, limit: usize) -> StoreResult<Vec<StatusMessage>> {
        self.run(Read, "read status messages", async move |tables| {
            tables
                .list(MESSAGES, &[Number(stored(limit))], message)
                .await
        })
        .await
    }

    /// Stores a message and its audit record durably, in one transaction. Other changes are locked out, so numbers can
    /// be assigned here.
    pub async fn post_status(&self, new: NewStatusMessage) -> StoreResult<StatusMessage> {
        self.run(Change, "post a status message", async move |tables| {
            tables.lock().await?;
            let id = tables.find(NEXT, &[], |row| row.number("id"));
            let id = id.await?.unwrap_or_default();
            let (incident, title, state) = match new.subject {
                MessageSubject::New(title) => (id, title, None),
                MessageSubject::Known(incident) => {
                    let (title, state) = last(tables, incident).await?;
                    (incident, title, Some(state))
                }
            };
            let posted = StatusMessage {
                id,
                incident,
                at: new.at,
                state: new.state.or(state).unwrap_or(IncidentState::Investigating),
                title,
                message: new.message,
            };
            let row = [
                Number(id.cast_signed()),
                Number(incident.cast_signed()),
                Time(new.at),
                Text(posted.state.word()),
                Text(&posted.title),
                Text(&posted.message),
            ];
            tables.run(INSERT, &row).await?;
            let (what, detail) = posted.audited();
            tables.audit(new.at, [&new.who, what, "", &detail]).await?;
            Ok(posted)
        })
        .await
    }
}

fn history_row(row: &SqlRow<'_>) -> RowResult<Option<(Option<u64>, Option<StatusDay>)>> {
    let day = match row.optional_number("day")? {
        Some(day) => Some(StatusDay {
            day: day_of_minute(day.saturating_mul(DAY_MINUTES)),
            ready: row.number("ready")?,
            fresh: row.number("fresh")?,
        }),
        None => None,
    };
    Ok(Some((row.optional_number("first_minute")?, day)))
}

/// The message of a row. Unknown states come from manual edits.
fn message(row: &SqlRow<'_>) -> RowResult<Option<StatusMessage>> {
    let Some(state) = IncidentState::parse(&row.text("state")?) else {
        return Ok(None);
    };
    Ok(Some(StatusMessage {
        id: row.number("id")?,
        incident: row.number("incident")?,
        at: row.time("at")?,
        state,
        title: row.text("title")?,
        message: row.text("message")?,
    }))
}

/// Title and state of an incident, unless it is resolved.
async fn last(tables: Tables<'_>, incident: u64) -> Done<(String, IncidentState)> {
    let found = tables
        .find(
            LAST,
            &[Number(incident.cast_signed())],
            |row: &SqlRow<'_>| Ok((row.text("title")?, row.text("state")?)),
        )
        .await?;
    let (title, state) = found.ok_or(StoreError::UnknownIncident(incident))?;
    match IncidentState::parse(&state) {
        Some(IncidentState::Resolved) => Err(StoreError::IncidentResolved(incident).into()),
        // Unknown states come from manual edits.
        state => Ok((title, state.unwrap_or(IncidentState::Investigating))),
    }
}
