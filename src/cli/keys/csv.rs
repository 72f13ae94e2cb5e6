//! Keys in CSV format: RFC 4180, except that a field cannot contain a line break.
//!
//! A separate parser because of this exception: an unclosed quote invalidates one line and not the rest of the file.
//! Does not validate the fields; see `admin`.
//!
//! Names and contacts may come from anyone who signs up, and spreadsheets run a cell that begins like a formula. Such cells
//! are written with an apostrophe in front, which is removed when they are read.

use serde_json::Value;

use crate::admin::{FIELDS, LineObject, REQUIRED, known_field};
use crate::registry::{BadField, KeyRecord};

/// The characters with which spreadsheets begin a formula, the wide forms of East Asian scripts included.
const FORMULA: [char; 10] = [
    '=', '+', '-', '@', '\t', '\r', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// The field of each column, from the header line.
#[derive(Debug)]
pub(super) struct Columns(Vec<&'static str>);

impl Columns {
    /// Parses the header line; an error contains all problems.
    pub(super) fn read(line: &str) -> Result<Self, Vec<BadField>> {
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
    pub(super) fn record(&self, line: &str) -> Result<KeyRecord, BadField> {
        let cells = cells(line)?;
        let found = cells.len();
        let named = self.0.len();
        if found != named {
            let reason = format!("has {found} fields, and the header line names {named}");
            return Err(BadField::new("line", reason));
        }
        let pairs = self
            .0
            .iter()
            .zip(cells)
            .filter(|(_, cell)| !cell.is_empty());
        LineObject(
            pairs
                .map(|(name, cell)| ((*name).to_owned(), Value::from(cell)))
                .collect(),
        )
        .read()
    }
}

/// The header line of an export.
pub(super) fn header() -> String {
    FIELDS.join(",")
}

/// Formats a key as a line of an export.
pub(super) fn line(fields: &LineObject) -> String {
    let cells: Vec<String> = FIELDS
        .iter()
        .map(|name| quoted(&fields.cell(name)))
        .collect();
    cells.join(",")
}

/// A cell as it is written.
fn quoted(cell: &str) -> String {
    let cell = &if is_formula(cell) {
        format!("'{cell}")
    } else {
        cell.to_owned()
    };
    let is_plain = !cell.contains([',', '"', '\r', '\n']) && cell.trim() == cell;
    if is_plain {
        cell.to_owned()
    } else {
        format!("\"{}\"", cell.replace('"', "\"\""))
    }
}

/// Whether a spreadsheet would run a cell, or it would be read as one that was escaped.
fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULA)
}

/// A cell without the apostrophe that keeps it from being run.
fn unescaped(cell: String) -> String {
    match cell.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest.to_owned(),
        _ => cell,
    }
}

fn cells(line: &str) -> Result<Vec<String>, BadField> {
    let bad = |reason: &str| BadField::new("line", reason);
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, after) = if let Some(inside) = rest.strip_prefix('"') {
            unquoted(inside)
                .ok_or_else(|| bad("has a quote that is not closed on the same line"))?
        } else {
            let (cell, after) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
            (cell.to_owned(), after)
        };
        if !(after.is_empty() || after.starts_with(',')) {
            return Err(bad("has text instead of a comma after a closing quote"));
        }
        cells.push(unescaped(cell));
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(cells),
        }
    }
}

/// Splits at the closing quote into the unescaped cell and the rest.
fn unquoted(inside: &str) -> Option<(String, &str)> {
    let mut cell = String::new();
    let mut left = inside;
    loop {
        let (before, after) = left.split_once('"')?;
        cell.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                cell.push('"');
                left = more;
            }
            None => return Some((cell, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn cells_are_split_at_commas_outside_quotes() {
        for (line, expected) in [
            ("", &[""][..]),
            ("a,b", &["a", "b"]),
            (",", &["", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"say \"\"hi\"\"\",\"\"", &["say \"hi\"", ""]),
            ("a \"b\" c,d", &["a \"b\" c", "d"]),
        ] {
            assert_eq!(cells(line).unwrap(), expected, "{line}");
        }
        for (line, words) in [
            ("\"a", "not closed"),
            ("a,\"b\"\"", "not closed"),
            ("\"a\"b", "comma"),
        ] {
            assert!(cells(line).unwrap_err().reason.contains(words), "{line}");
        }
    }

    #[test]
    fn columns_are_accepted_in_any_order_and_all_errors_are_reported_at_once() {
        let columns = Columns::read(" tier,\"name\",sha256,note").unwrap();
        let record = columns
            .record(&format!("pro,\"One, two\",{DIGEST},"))
            .unwrap();
        assert_eq!(
            (
                record.name.as_str(),
                record.tier.as_str(),
                record.description.note
            ),
            ("One, two", "pro", None)
        );
        let wrong = Columns::read("name,key,name,tiers").unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|bad| bad.field.as_str()).collect();
        assert_eq!(fields, ["key", "name", "tiers", "sha256", "tier"]);
    }

    #[test]
    fn a_line_with_another_number_of_fields_or_a_bad_field_is_refused() {
        let columns = Columns::read("sha256,name,tier,day_limit").unwrap();
        for (line, field, words) in [
            (
                format!("{DIGEST},n,pro"),
                "line",
                "has 3 fields, and the header line names 4",
            ),
            (format!("{DIGEST},n,pro,7,"), "line", "has 5"),
            (format!("{DIGEST},\"n,pro,7"), "line", "quote"),
            (format!("{DIGEST},,pro,7"), "name", "missing"),
            (format!("{DIGEST},n,,7"), "tier", "missing"),
            (",n,pro,7".into(), "sha256", "missing"),
            (format!("{DIGEST} ,n,pro,7"), "sha256", "64 hexadecimal"),
            (
                format!("{DIGEST},n,pro,seven"),
                "day_limit",
                "an integer from",
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
            ("\t", "\"'\t\""),
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
        fn any_cells_are_read_back_as_they_were_written(expected in proptest::collection::vec("[^\r\n]*", 1..5)) {
            let line = expected.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",");
            prop_assert_eq!(cells(&line).unwrap(), expected);
        }

        #[test]
        fn no_line_causes_a_panic(line in "\\PC*") {
            drop(cells(&line));
        }
    }
}
