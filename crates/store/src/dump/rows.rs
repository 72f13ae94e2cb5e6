//! Rows as lines, and back. The columns of a row are the fields of its line, with times as numbers.

use serde_json::{Map, Value};

use super::lines::DumpLine;
use scoregate_base::clock::Wall;
use scoregate_base::keys::ApplicationId;

/// Fields with a time: RFC 3339 in a line, milliseconds since 1970 in a row.
const TIMES: [&str; 8] = [
    "at",
    "created_at",
    "expires_at",
    "first",
    "last_used_at",
    "revoked_at",
    "suspended_at",
    "terms_accepted_at",
];

impl DumpLine {
    /// The line of a row, whose columns are the fields of this kind.
    pub(crate) fn of_row(kind: &str, mut row: Map<String, Value>) -> Result<Self, String> {
        for name in TIMES {
            let Some(field) = row.get_mut(name).filter(|field| !field.is_null()) else {
                continue;
            };
            let Some(at) = time_of(field) else {
                return Err(format!(
                    "{name} is {field}, which is not a timestamp between 1970 and 2554"
                ));
            };
            *field = at.rfc3339().into();
        }
        let line = Map::from_iter([(kind.to_owned(), Value::Object(row))]);
        let line: Self = serde_json::from_value(line.into()).map_err(|error| error.to_string())?;
        match &line {
            Self::Application(line) => {
                line.id
                    .parse::<ApplicationId>()
                    .map_err(|error| error.to_string())?;
            }
            // What was edited by hand is exported.
            Self::Availability(_) | Self::Owner(_) | Self::End(_) => {}
            Self::Key(_)
            | Self::Ledger(_)
            | Self::Requests(_)
            | Self::Audit(_)
            | Self::StatusMessage(_) => line.verify()?,
        }
        Ok(line)
    }

    /// The kind and the row of a verified line.
    pub(crate) fn row(&self) -> (String, Map<String, Value>) {
        let line = serde_json::to_value(self).unwrap_or_default();
        let Some((kind, Value::Object(row))) = line.as_object().and_then(|line| line.iter().next())
        else {
            return (String::new(), Map::new());
        };
        let kind = kind.clone();
        let mut row = row.clone();
        for name in TIMES {
            let Some(field) = row.get_mut(name) else {
                continue;
            };
            let at = field.as_str().and_then(Wall::parse_rfc3339);
            *field = at.map(Wall::millis).into();
        }
        (kind, row)
    }
}

/// The time of a field of a row.
pub(crate) fn time_of(field: &Value) -> Option<Wall> {
    let millis = field.as_u64()?;
    Some(Wall::from_millis(millis)).filter(|at| at.millis() == millis)
}
