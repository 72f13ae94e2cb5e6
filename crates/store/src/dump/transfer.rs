//! Reads all exported tables of an engine, and fills empty ones. The engine writes and reads the rows as JSON.

use std::io::Write;

use serde_json::Value;

use super::reader::DumpReader;
use super::tables::{DumpColumn, DumpTable, TABLES};
use super::writer::DumpWriter;
use super::{RowCounts, TransferError};
use crate::sql::rows::SqlRow;
use crate::sql::tables::{SqlField, SqlTables};
use scoregate_base::clock::Wall;

/// Number of rows that are written with one statement.
const AT_ONCE: usize = 2_000;

/// Exports everything in the snapshot of a transaction.
pub(crate) async fn export<T: SqlTables, E>(
    tables: T,
    out: &mut dyn Write,
    now: Wall,
) -> Result<RowCounts, E>
where
    E: From<T::Fault> + From<TransferError>,
{
    let mut writer = DumpWriter::new(out, now).map_err(TransferError::from)?;
    for table in &TABLES {
        let columns = table.columns();
        let mut written = Ok(());
        let write = |row: &SqlRow<'_>| {
            if written.is_ok() {
                written = writer.push(table, &columns, row);
            }
        };
        tables
            .each(&select::<T>(table, &columns), &[], write)
            .await?;
        written?;
    }
    Ok(writer.finish().map_err(TransferError::from)?)
}

/// Fills empty tables in a transaction, which must be rolled back after an error.
pub(crate) async fn fill<T: SqlTables, E>(tables: T, mut reader: DumpReader) -> Result<RowCounts, E>
where
    E: From<T::Fault> + From<TransferError>,
{
    loop {
        let mut rows = reader.rows(AT_ONCE)?;
        if rows.is_empty() {
            return Ok(reader.counts());
        }
        for table in &TABLES {
            if let Some(rows) = rows.remove(table.name) {
                let rows = Value::Array(rows).to_string();
                tables
                    .run(&insert::<T>(table), &[SqlField::Text(&rows)])
                    .await?;
            }
        }
    }
}

/// The statement that returns each row of a table as an object of JSON, in the order of its key.
fn select<T: SqlTables>(table: &DumpTable, columns: &[DumpColumn]) -> String {
    let fields = columns.iter().map(|DumpColumn { name, sql_type }| {
        let value = match *sql_type {
            "bytea" => T::DUMP.to_hex.replace("{column}", name),
            "boolean" => format!("CAST({name} AS integer)"),
            _ => (*name).into(),
        };
        format!("'{name}', {value}")
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    let key = columns.iter().take(table.key).map(|column| column.name);
    format!(
        "SELECT CAST({}({fields}) AS text) AS line FROM {{schema}}.{} ORDER BY {}",
        T::DUMP.object,
        table.name,
        key.collect::<Vec<_>>().join(", ")
    )
}

/// The statement that inserts the rows of an array of JSON.
fn insert<T: SqlTables>(table: &DumpTable) -> String {
    let columns = table.columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let values = columns.iter().map(|DumpColumn { name, sql_type }| {
        let text = format!("value ->> '{name}'");
        match *sql_type {
            "bytea" => T::DUMP.from_hex.replace("{text}", &text),
            "boolean" => format!("CAST(CAST({text} AS integer) AS boolean)"),
            "date" => format!("({text})::text::date"),
            other => format!("CAST({text} AS {other})"),
        }
    });
    format!(
        "INSERT INTO {{schema}}.{} ({}) {}",
        table.name,
        names.join(", "),
        T::DUMP
            .rows
            .replace("{values}", &values.collect::<Vec<_>>().join(", "))
    )
}
