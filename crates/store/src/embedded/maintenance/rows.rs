//! Rows of a store file as lines of an export, and back. The columns of a row are the fields of its line.

use data_encoding::HEXLOWER;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::{Map, Value};

use crate::dump::{AvailabilityLine, DumpLine, time_of};
use crate::embedded::fault::{FileResult, StoreFault, is_conflict};
use scoregate_base::keys::Digest;

/// The minutes of a line.
const MINUTES: &str = "
WITH RECURSIVE m (minute) AS (SELECT ?1 UNION ALL SELECT minute + 1 FROM m WHERE minute + 1 < ?1 + ?2)
INSERT INTO status_minutes (minute, is_ready, is_fresh) SELECT minute, ?3, ?4 FROM m WHERE true";

/// The line of a row.
pub(super) fn read(kind: &str, row: &Row<'_>) -> FileResult<DumpLine> {
    let mut fields = Map::new();
    for (column, name) in row.as_ref().column_names().enumerate() {
        let field = field(name, row.get_ref(column)?);
        // Optional: an unreadable value must not cost the key.
        let is_optional = kind == "key" && ["name", "last_used_at"].contains(&name);
        let field = if is_optional {
            field.unwrap_or_default()
        } else {
            field.map_err(StoreFault::Record)?
        };
        fields.insert(name.into(), field);
    }
    DumpLine::of_row(kind, fields).map_err(StoreFault::Record)
}

fn field(name: &str, value: ValueRef<'_>) -> Result<Value, String> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) if name == "ready" || name == "fresh" => Ok((number != 0).into()),
        ValueRef::Integer(number)
            if name == "last_used_at" && time_of(&number.into()).is_none() =>
        {
            Err(format!("{name} is {number}"))
        }
        ValueRef::Integer(number) => Ok(number.into()),
        ValueRef::Real(_) => Err(format!("{name} is not a number")),
        ValueRef::Text(text) => {
            let text =
                str::from_utf8(text).map_err(|error| format!("{name} cannot be read: {error}"))?;
            if name != "applications" {
                return Ok(text.into());
            }
            serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))
        }
        ValueRef::Blob(bytes) => Ok(HEXLOWER.encode(bytes).into()),
    }
}

/// Writes a verified line into a store.
pub(super) fn insert(line: &DumpLine, store: &Connection) -> FileResult<()> {
    match insert_row(line, store) {
        Err(error) if is_conflict(&error) => {
            Err(StoreFault::Record(format!("{}: {error}", line.label())))
        }
        inserted => Ok(inserted?),
    }
}

fn insert_row(line: &DumpLine, store: &Connection) -> rusqlite::Result<()> {
    let (_, mut row) = line.row();
    let table = match line {
        DumpLine::Application(_) => "applications",
        DumpLine::Key(_) => "keys",
        DumpLine::Ledger(_) => "ledger_days",
        DumpLine::Requests(_) => "request_days",
        DumpLine::Audit(line) => {
            row.remove("number");
            row.insert("id".into(), line.number.into());
            "audit"
        }
        DumpLine::Availability(line) => return insert_minutes(line, store, ""),
        DumpLine::StatusMessage(_) => "status_messages",
        DumpLine::Owner(line) => {
            row.remove("applications");
            let mut own = store.prepare_cached(
                "INSERT INTO owned_applications (application, owner) VALUES (?1, ?2)",
            )?;
            line.applications
                .iter()
                .try_for_each(|id| own.execute([id, &line.id]).map(drop))?;
            "owners"
        }
        DumpLine::End(_) => return Ok(()),
    };
    let columns: Vec<&str> = row.keys().map(String::as_str).collect();
    let marks: Vec<String> = (1..=row.len()).map(|mark| format!("?{mark}")).collect();
    let statement = format!(
        "INSERT INTO {table} ({}) VALUES ({})",
        columns.join(", "),
        marks.join(", ")
    );
    let values = params_from_iter(row.iter().map(|(name, field)| stored(name, field)));
    store.prepare_cached(&statement)?.execute(values).map(drop)
}

/// Inserts the minutes of a line; `conflict` decides about those that are known.
pub(super) fn insert_minutes(
    line: &AvailabilityLine,
    store: &Connection,
    conflict: &str,
) -> rusqlite::Result<()> {
    let first = line.first_minute().unwrap_or_default().cast_signed();
    let row = params![first, line.minutes.cast_signed(), line.ready, line.fresh];
    store
        .prepare_cached(&format!("{MINUTES} {conflict}"))?
        .execute(row)
        .map(drop)
}

fn stored(name: &str, field: &Value) -> SqlValue {
    match (field, field.as_str()) {
        (_, Some(text)) if name == "digest" => Digest::from_hex(text)
            .map_or(SqlValue::Null, |digest| digest.as_bytes().to_vec().into()),
        (_, Some(text)) => text.to_owned().into(),
        (number, None) => number.as_i64().map_or(SqlValue::Null, SqlValue::Integer),
    }
}
