//! The history of the status page, and messages about incidents. The rules are in `store::status`.

use std::collections::BTreeMap;

use super::rows::SqlRow;
use super::tables::SqlField::{Flag, Number, Text, Time};
use super::tables::{SqlDone, SqlTables, write_rows};
use crate::status::{DAY_MINUTES, day_of_minute, first_kept};
use crate::stored::stored;
use crate::{
    IncidentState, MessageSubject, NewStatusMessage, StatusDay, StatusHistory, StatusMessage,
    StatusMinute, StoreError,
};

/// A row that would not change is not written.
const RECORD: &str = "
INSERT INTO {schema}.status_minutes AS m (minute, is_ready, is_fresh) VALUES {rows}
ON CONFLICT (minute) DO UPDATE
SET is_ready = m.is_ready OR excluded.is_ready, is_fresh = m.is_fresh OR excluded.is_fresh
WHERE (excluded.is_ready AND NOT m.is_ready) OR (excluded.is_fresh AND NOT m.is_fresh)";

/// A row without a day if there is none, for the first minute.
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

/// Stores minutes. What is stored of a minute by several processes, or twice, is combined.
pub(crate) async fn record<T: SqlTables>(tables: T, minutes: &[StatusMinute]) -> SqlDone<T, ()> {
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
    let row = |(minute, (ready, fresh)): (&u64, _)| {
        [Number(minute.cast_signed()), Flag(ready), Flag(fresh)]
    };
    let values: Vec<_> = combined.into_iter().flat_map(row).collect();
    write_rows(tables, RECORD, "", 3, &values).await
}

/// The newest messages, and all of incidents that are not resolved; newest first. Unreadable ones are skipped.
pub(crate) async fn messages<T: SqlTables>(
    tables: T,
    limit: usize,
) -> SqlDone<T, Vec<StatusMessage>> {
    let read = |row: &SqlRow<'_>| {
        // Other words come from manual edits.
        let Some(state) = IncidentState::parse(&row.text("state")?) else {
            return Ok(None);
        };
        let id = row.number("id")?;
        let incident = row.number("incident")?;
        let at = row.time("at")?;
        let title = row.text("title")?;
        let message = row.text("message")?;
        Ok(Some(StatusMessage {
            id,
            incident,
            at,
            state,
            title,
            message,
        }))
    };
    tables.list(MESSAGES, &[Number(stored(limit))], read).await
}

/// Minutes from `first` up to `end`, added up by day.
pub(crate) async fn history<T: SqlTables>(
    tables: T,
    first: u64,
    end: u64,
) -> SqlDone<T, StatusHistory> {
    let bounds = [first, end, DAY_MINUTES].map(|number| Number(number.cast_signed()));
    let read = |row: &SqlRow<'_>| {
        let day = match row.optional_number("day")? {
            Some(day) => Some(StatusDay {
                day: day_of_minute(day.saturating_mul(DAY_MINUTES)),
                ready: row.number("ready")?,
                fresh: row.number("fresh")?,
            }),
            None => None,
        };
        Ok(Some((row.optional_number("first_minute")?, day)))
    };
    let (first_minutes, days): (Vec<_>, Vec<_>) = tables
        .list(HISTORY, &bounds, read)
        .await?
        .into_iter()
        .unzip();
    let first_minute = first_minutes.first().copied().flatten();
    Ok(StatusHistory {
        first_minute,
        days: days.into_iter().flatten().collect(),
    })
}

/// Posts a message with its audit record. Other changes are excluded, so numbers are assigned here.
pub(crate) async fn post<T: SqlTables>(
    tables: T,
    new: &NewStatusMessage,
) -> SqlDone<T, StatusMessage> {
    tables.lock().await?;
    let id = tables
        .find(NEXT, &[], |row| row.number("id"))
        .await?
        .unwrap_or_default();
    let (incident, title, state) = match &new.subject {
        MessageSubject::New(title) => (id, title.clone(), None),
        MessageSubject::Known(incident) => {
            let (title, state) = last(tables, *incident).await?;
            (*incident, title, Some(state))
        }
    };
    let state = new.state.or(state).unwrap_or(IncidentState::Investigating);
    let posted = StatusMessage {
        id,
        incident,
        at: new.at,
        state,
        title,
        message: new.message.clone(),
    };
    let StatusMessage { title, message, .. } = &posted;
    let [number, incident] = [id, incident].map(|number| Number(number.cast_signed()));
    let row = [
        number,
        incident,
        Time(new.at),
        Text(state.word()),
        Text(title),
        Text(message),
    ];
    tables.run(INSERT, &row).await?;
    let (what, detail) = posted.audited();
    tables.audit(new.at, [&new.who, what, "", &detail]).await?;
    Ok(posted)
}

/// Title and state of an incident, unless it is resolved.
async fn last<T: SqlTables>(tables: T, incident: u64) -> SqlDone<T, (String, IncidentState)> {
    let read = |row: &SqlRow<'_>| Ok((row.text("title")?, row.text("state")?));
    let found = tables
        .find(LAST, &[Number(incident.cast_signed())], read)
        .await?;
    let (title, state) = found.ok_or(StoreError::UnknownIncident(incident))?;
    match IncidentState::parse(&state) {
        Some(IncidentState::Resolved) => Err(StoreError::IncidentResolved(incident).into()),
        // Other words come from manual edits.
        state => Ok((title, state.unwrap_or(IncidentState::Investigating))),
    }
}
