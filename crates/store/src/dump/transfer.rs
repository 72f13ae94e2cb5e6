//! Reads all exported tables of an engine, and fills empty tables. The engine writes and reads the rows as JSON.

use std::io::Write;

use serde_json::Value;

use super::{
    RowCounts,
    reader::DumpReader,
    tables::{DumpColumn, DumpTable, TABLES},
    writer::DumpWriter,
};
use crate::statements::{Done, SqlField, SqlRow, Tables};
use scoregate_base::clock::Wall;

/// Number of rows written by one statement.
const AT_ONCE: usize = 2_000;

/// Exports all tables from the snapshot of a transaction.
pub async fn export(tables: Tables<'_>, out: &mut dyn Write, now: Wall) -> Done<RowCounts> {
    let mut writer = DumpWriter::new(out, now)?;
    for table in &TABLES {
        let columns = table.columns();
        let mut written = Ok(());
        let select = select(tables, table, &columns);
        tables
            .each(&select, &[], |row: &SqlRow<'_>| {
                if written.is_ok() {
                    written = writer.push(table, &columns, row);
                }
            })
            .await?;
        written?;
    }
    Ok(writer.finish()?)
}

/// Fills empty tables in a transaction, which must be rolled back after an error.
pub async fn fill(tables: Tables<'_>, mut reader: DumpReader) -> Done<RowCounts> {
    loop {
        let mut rows = reader.rows(AT_ONCE)?;
        if rows.is_empty() {
            return Ok(reader.counts());
        }
        for table in &TABLES {
            if let Some(rows) = rows.remove(table.name) {
                let rows = Value::Array(rows).to_string();
                let insert = insert(tables, table);
                tables.run(&insert, &[SqlField::Text(&rows)]).await?;
            }
        }
    }
}

/// The statement that returns each row of a table as a JSON object, ordered by key.
fn select(tables: Tables<'_>, table: &DumpTable, columns: &[DumpColumn]) -> String {
    let fields = columns.iter().map(|DumpColumn { name, sql_type }| {
        let value = match (*sql_type, tables) {
            ("bytea", Tables::File(_)) => format!("lower(hex({name}))"),
            ("bytea", Tables::Database(_)) => format!("encode({name}, 'hex')"),
            ("boolean", _) => format!("CAST({name} AS integer)"),
            _ => (*name).into(),
        };
        format!("'{name}', {value}")
    });
    let fields = fields.collect::<Vec<_>>().join(", ");
    let key = columns.iter().take(table.key).map(|column| column.name);
    let object = match tables {
        Tables::File(_) => "json_object",
        Tables::Database(_) => "json_build_object",
    };
    format!(
        "SELECT CAST({object}({fields}) AS text) AS line FROM {{schema}}.{} ORDER BY {}",
        table.name,
        key.collect::<Vec<_>>().join(", ")
    )
}

/// The statement that inserts the rows of a JSON array. Audit records keep their numbers.
fn insert(tables: Tables<'_>, table: &DumpTable) -> String {
    let columns = table.columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let values = columns.iter().map(|DumpColumn { name, sql_type }| {
        let text = format!("value ->> '{name}'");
        match (*sql_type, tables) {
            ("bytea", Tables::File(_)) => format!("unhex({text})"),
            ("bytea", Tables::Database(_)) => format!("decode({text}, 'hex')"),
            ("boolean", _) => format!("CAST(CAST({text} AS integer) AS boolean)"),
            ("date", _) => format!("({text})::text::date"),
            (other, _) => format!("CAST({text} AS {other})"),
        }
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let rows = match tables {
        Tables::File(_) => format!("SELECT {values} FROM json_each($1)"),
        Tables::Database(_) => format!(
            "OVERRIDING SYSTEM VALUE SELECT {values} FROM json_array_elements($1::text::json) AS r (value)"
        ),
    };
    format!(
        "INSERT INTO {{schema}}.{} ({}) {rows}",
        table.name,
        names.join(", "),
    )
}
