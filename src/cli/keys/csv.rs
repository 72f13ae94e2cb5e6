//! Keys in CSV format: RFC 4180, except that a field cannot contain a line break. An unclosed quote therefore
//! invalidates one line, not the rest of the file.
//!
//! Does not validate the fields; see `admin`.
//!
//! Anyone who signs up can choose names and contacts, and spreadsheets evaluate a cell that begins like a formula. An
//! export therefore adds an apostrophe before such a cell. An import removes it.

use csv::{ReaderBuilder, Terminator, Writer};
use serde_json::{Map, Value, json};

use crate::{
    admin::{FIELDS, REQUIRED, known_field, read_json},
    registry::{BadField, KeyRecord},
};

/// The characters that start a formula in spreadsheets, including the full-width forms of East Asian scripts.
const FORMULA: [char; 10] = [
    '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// The field of each column, from the header line.
#[derive(Debug)]
pub struct Columns(Vec<&'static str>);

impl Columns {
    /// Parses the header line; an error contains all problems.
    pub fn read(line: &str) -> Result<Self, Vec<BadField>> {
        let cells = cells(line).map_err(|bad| vec![bad])?;
        let mut names = Vec::new();
        let mut wrong = Vec::new();
        for cell in &cells {
            match known_field(cell.trim()) {
                Ok(name) if names.contains(&name) => {
                    wrong.push(BadField::new(name, "is given twice"));
                }
                Ok(name) => names.push(name),
                Err(bad) => wrong.push(bad),
            }
        }
        let missing = REQUIRED.into_iter().filter(|name| !names.contains(name));
        wrong.extend(missing.map(|name| BadField::new(name, "is missing from the header line")));
        if wrong.is_empty() {
            Ok(Self(names))
        } else {
            Err(wrong)
        }
    }

    /// Parses a line. An empty cell counts as absent.
    pub fn record(&self, line: &str) -> Result<KeyRecord, BadField> {
        let cells = cells(line)?;
        let found = cells.len();
        let named = self.0.len();
        if found != named {
            let reason = format!("has {found} fields; the header line has {named}");
            return Err(BadField::new("line", reason));
        }
        let fields: Map<String, Value> = self
            .0
            .iter()
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| ((*name).to_owned(), value(name, cell)))
            .collect();
        read_json(&Value::Object(fields).to_string())
    }
}

/// Converts a cell to JSON: limits are JSON, and all other fields are strings.
fn value(name: &str, cell: String) -> Value {
    match serde_json::from_str(&cell) {
        Ok(limits) if name == "own_limits" => limits,
        Ok(_) | Err(_) => cell.into(),
    }
}

/// The header line of an export.
pub fn header() -> String {
    line_of(FIELDS.map(str::to_owned))
}

/// Formats a key as a line of an export.
pub fn line(key: &KeyRecord) -> String {
    let fields = json!(key);
    line_of(FIELDS.map(|name| match fields.get(name) {
        None => String::new(),
        Some(Value::String(text)) => escaped(text),
        Some(other) => other.to_string(),
    }))
}

fn line_of(cells: impl IntoIterator<Item = String>) -> String {
    let mut writer = Writer::from_writer(Vec::new());
    let written = writer.write_record(cells.into_iter().map(String::into_bytes));
    written.expect("writing to memory does not fail");
    let line = writer.into_inner();
    let line = line.expect("writing to memory does not fail");
    String::from_utf8_lossy(&line).into_owned()
}

/// Escapes a cell for an export.
fn escaped(cell: &str) -> String {
    if is_formula(cell) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    }
}

/// Whether a spreadsheet would evaluate a cell, or an import would read it as an escaped cell.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA)
}

/// Removes the apostrophe that prevents evaluation.
fn unescaped(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest,
        _ => cell,
    }
}

fn cells(line: &str) -> Result<Vec<String>, BadField> {
    // Otherwise the parser would treat an open quote as closed at the end of the line.
    if !line.matches('"').count().is_multiple_of(2) {
        let reason = "has a quote that is not closed on the same line";
        return Err(BadField::new("line", reason));
    }
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .terminator(Terminator::Any(b'\n'))
        .buffer_capacity(line.len().max(1))
        .from_reader(line.as_bytes());
    let record = reader.records().next().transpose();
    let record = record.map_err(|bad| BadField::new("line", bad.to_string()))?;
    Ok(record
        .unwrap_or_default()
        .iter()
        .map(|cell| unescaped(cell).to_owned())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// A line that consists of one cell, without the line break.
    fn quoted(cell: &str) -> String {
        line_of([escaped(cell)]).trim_end_matches('\n').to_owned()
    }

    #[test]
    fn cells_are_split_at_commas_outside_quotes() {
        for (line, expected) in [
            ("x", &["x"][..]),
            ("a,b", &["a", "b"]),
            (",", &["", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"say \"\"hi\"\"\",\"\"", &["say \"hi\"", ""]),
            ("a \"b\" c,d", &["a \"b\" c", "d"]),
        ] {
            assert_eq!(cells(line).unwrap(), expected, "{line}");
        }
        for line in ["\"a", "a,\"b\"\"", "a \"b,c"] {
            let refused = cells(line).unwrap_err();
            assert!(refused.reason.contains("not closed"), "{line}");
        }
    }

    #[test]
    fn columns_are_accepted_in_any_order_and_all_errors_are_reported_at_once() {
        let columns = Columns::read(" tier,\"name\",sha256,note").unwrap();
        let record = columns
            .record(&format!("pro,\"One, two\",{DIGEST},"))
            .unwrap();
        assert_eq!(
            (record.name.as_str(), record.tier.as_str(), record.note),
            ("One, two", "pro", None)
        );
        let wrong = Columns::read("name,key,name,tiers").unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|bad| bad.field.as_str()).collect();
        assert_eq!(fields, ["key", "name", "tiers", "sha256", "tier"]);
    }

    #[test]
    fn a_line_with_another_number_of_fields_or_a_bad_field_is_refused() {
        let columns = Columns::read("sha256,name,tier,own_limits").unwrap();
        for (line, field, words) in [
            (
                format!("{DIGEST},n,pro"),
                "line",
                "has 3 fields; the header line has 4",
            ),
            (format!("{DIGEST},n,pro,{{}},"), "line", "has 5"),
            (format!("{DIGEST},\"n,pro,{{}}"), "line", "quote"),
            (format!("{DIGEST},,pro,{{}}"), "name", "missing"),
            (format!("{DIGEST},n,,{{}}"), "tier", "missing"),
            (",n,pro,{}".into(), "sha256", "missing"),
            (format!("{DIGEST} ,n,pro,{{}}"), "sha256", "64 hexadecimal"),
            (format!("{DIGEST},n,pro,seven"), "own_limits", "object"),
            (
                format!("{DIGEST},n,pro,\"{{\"\"day\"\":-1}}\""),
                "own_limits",
                "integer within",
            ),
        ] {
            let refused = columns.record(&line).unwrap_err();
            assert!(
                refused.field == field && refused.reason.contains(words),
                "{line}: {refused}"
            );
        }
    }

    #[test]
    fn a_cell_that_a_spreadsheet_would_run_is_escaped() {
        for (cell, written) in [
            ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\t", "'\t"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("'=1", "''=1"),
            ("=HYPERLINK(\"a\",b)", "\"'=HYPERLINK(\"\"a\"\",b)\""),
            ("a=b", "a=b"),
            ("'quoted'", "'quoted'"),
            ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(quoted(cell), written);
            assert_eq!(cells(written).unwrap(), [cell]);
        }
    }

    proptest! {
        #[test]
        fn no_written_cell_begins_like_a_formula(cell in "['=+@\\-\t\u{ff1d}a]{0,4}") {
            let line = quoted(&cell);
            prop_assert!(!line.trim_start_matches('"').starts_with(FORMULA), "{line}");
            prop_assert_eq!(cells(&line).unwrap(), [cell]);
        }

        #[test]
        fn any_cells_are_read_back_as_they_were_written(expected in proptest::collection::vec("[^\r\n\u{feff}]*", 1..5)) {
            let line = line_of(expected.iter().map(|cell| escaped(cell)));
            prop_assert_eq!(cells(&line).unwrap(), expected);
        }

        #[test]
        fn no_line_causes_a_panic(line in "\\PC*") {
            drop(cells(&line));
        }
    }
}
