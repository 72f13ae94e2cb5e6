//! The exported tables, with the columns of the schema.

use serde_json::{Map, Value};

use crate::{
    IncidentState,
    statements::schema::{ONLY_DATABASE, STEPS},
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, OwnerId, check_website},
    limits::OwnLimits,
};

/// Maximum length of the name of an endpoint or outcome.
const MAX_NAME: usize = 64;

/// An exported table.
pub struct DumpTable {
    pub name: &'static str,
    /// Number of key columns. The key columns come first.
    pub key: usize,
}

/// All exported tables, in the order in which they can be written into an empty store. Not exported: links, sessions,
/// mail, idempotency keys, secrets of webhooks, mailbox digests of closed applications, and evidence.
pub static TABLES: [DumpTable; 12] = [
    DumpTable::new("applications", 1),
    DumpTable::new("keys", 2),
    DumpTable::new("limits_until", 1),
    DumpTable::new("ledger_days", 2),
    DumpTable::new("request_days", 4),
    DumpTable::new("request_nodes", 5),
    DumpTable::new("usage_terms", 2),
    DumpTable::new("audit", 1),
    DumpTable::new("status_minutes", 1),
    DumpTable::new("status_messages", 1),
    DumpTable::new("owners", 1),
    DumpTable::new("owned_applications", 1),
];

/// A column of a table, with its type in the schema.
#[derive(Clone, Copy)]
pub struct DumpColumn {
    pub name: &'static str,
    pub sql_type: &'static str,
}

impl DumpTable {
    const fn new(name: &'static str, key: usize) -> Self {
        Self { name, key }
    }

    /// The columns, in the order of the schema.
    pub fn columns(&self) -> Vec<DumpColumn> {
        let both = STEPS
            .iter()
            .filter_map(|step| step.split(ONLY_DATABASE).next());
        let mut is_wanted = false;
        let mut columns = Vec::new();
        for line in both.flat_map(str::lines) {
            if let Some((_, table)) = line.split_once("TABLE {schema}.") {
                is_wanted = table.split(' ').next() == Some(self.name);
                continue;
            }
            let column = line.trim_start();
            let mut words = column.trim_start_matches("ADD COLUMN ").split_whitespace();
            if is_wanted
                && column.len() < line.len()
                && let Some(name) = words.next().filter(|name| *name != "PRIMARY")
            {
                let sql_type = words.next().unwrap_or_default().trim_end_matches(',');
                columns.push(DumpColumn { name, sql_type });
            }
        }
        columns
    }

    /// Checks the columns of a row and their values. Returns an error about the first invalid column or value.
    pub fn check(&self, columns: &[DumpColumn], row: &Map<String, Value>) -> Result<(), String> {
        for DumpColumn { name, sql_type } in columns {
            let value = row.get(*name).ok_or_else(|| format!("{name} is missing"))?;
            let is_valid = match value {
                Value::Null => true, // the schema states which columns may be null
                Value::String(text) => *sql_type != "bigint" && self.is_text(name, text),
                Value::Number(number) => {
                    ["bigint", "boolean"].contains(sql_type)
                        && number
                            .as_i64()
                            .is_some_and(|number| is_number(name, number))
                }
                Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
            };
            if !is_valid {
                return Err(format!("{name} is {value}"));
            }
        }
        let mut names = row.keys();
        match names.find(|name| columns.iter().all(|column| column.name != **name)) {
            Some(unknown) => Err(format!("{unknown} is unknown")),
            None => Ok(()),
        }
    }

    /// Whether a string is valid for its column. Names from a newer release are accepted.
    fn is_text(&self, column: &str, text: &str) -> bool {
        match (self.name, column) {
            ("applications", "id") => text.parse::<ApplicationId>().is_ok(),
            ("owners", "id") => text.parse::<OwnerId>().is_ok(),
            ("status_messages", "state") => IncidentState::parse(text).is_some(),
            (_, "own_limits") => OwnLimits::from_text(text).is_ok(),
            (_, "url") => check_website(text).is_ok(),
            (_, "digest") => Digest::from_hex(text).is_some(),
            (_, "day") => Day::parse(text).is_some(),
            (_, "endpoint" | "outcome") => {
                (1..=MAX_NAME).contains(&text.len())
                    && text.bytes().all(|byte| {
                        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
                    })
            }
            _ => true,
        }
    }
}

/// Whether a number is valid for its column: a time, a limit, or a number of units.
fn is_number(column: &str, number: i64) -> bool {
    let unsigned = u64::try_from(number).ok();
    match column {
        "at" | "until" => is_time(unsigned),
        "granted" | "day" => u32::try_from(number).is_ok(),
        "minute" | "requests" => unsigned.is_some(),
        _ if column.ends_with("_at") => is_time(unsigned),
        _ => true,
    }
}

fn is_time(millis: Option<u64>) -> bool {
    millis.is_some_and(|millis| Wall::from_millis(millis).millis() == millis)
}
