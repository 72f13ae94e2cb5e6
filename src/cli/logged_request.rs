//! A request as the access log states it.

use std::io::{self, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use crate::config::Config;
use crate::gateway::Explanation;

use super::command_error::{CommandError, CommandOutcome};
use super::input_file::InputFile;
use super::input_lines::InputLines;

/// Longer lines are not of the access log.
const MAX_LINE: usize = 65_536;
/// The fields of a line by the stage that decided them.
const STAGES: [(&str, &[&str]); 4] = [
    ("request", &["client", "mcp", "trace_id"]),
    ("application", &["application", "key"]),
    ("document", &["endpoint", "document", "outcome", "age_ms"]),
    (
        "answer",
        &[
            "status",
            "client_disconnected",
            "code",
            "day",
            "duration_us",
        ],
    ),
];
const NOT_LOGGED: &str = "the key, the target and the headers as sent; the limits before and after; what the backend was asked";

/// The last request with this id in a log.
pub(super) fn find(id: &str, log: &Path, config: &Config) -> CommandOutcome<Explanation> {
    let unreadable = |error: io::Error| CommandError::Input(format!("{}: {error}", log.display()));
    let reader = BufReader::new(InputFile::open(log).map_err(unreadable)?.reader);
    let mut found = None;
    for line in InputLines::new(reader, MAX_LINE) {
        let line = line.map_err(unreadable)?;
        let Some(text) = line.text.ok().filter(|text| text.contains(id)) else {
            continue;
        };
        let fields = serde_json::from_str::<Map<String, Value>>(&text).ok();
        if fields.is_none()
            && text
                .split(' ')
                .any(|field| field.strip_prefix("request_id=") == Some(id))
        {
            let number = line.number;
            let error =
                format!("line {number} has this id and is not JSON: set `log.format = \"json\"`");
            return Err(CommandError::Input(error));
        }
        let is_meant =
            |fields: &Map<String, Value>| fields.get("request_id").is_some_and(|sent| sent == id);
        found = fields.filter(is_meant).or(found);
    }
    found
        .map(|fields| explanation(id, &fields))
        .ok_or_else(|| missing(id, log, config))
}

fn explanation(id: &str, fields: &Map<String, Value>) -> Explanation {
    let text = |name: &str| {
        let value = fields.get(name).filter(|value| !value.is_null())?;
        Some(
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        )
    };
    let at = text("at").unwrap_or_default();
    let mut explanation = Explanation {
        request: id.into(),
        at,
        ..Explanation::default()
    };
    for (stage, names) in STAGES {
        explanation.add(
            stage,
            names.iter().filter_map(|name| Some((*name, text(name)?))),
        );
    }
    explanation.add("not logged", [("", NOT_LOGGED.into())]);
    explanation
}

fn missing(id: &str, log: &Path, config: &Config) -> CommandError {
    let sampling = match (config.access_log, config.sampling.one_in) {
        (false, _) => "the setting log.access is off".to_owned(),
        (true, 0) => {
            "log.sample_one_in is 0, so only failures and slow requests are logged".to_owned()
        }
        (true, 1) => {
            "log.sample_one_in is 1, so every request is logged: look in other files".to_owned()
        }
        (true, n) => {
            format!(
                "it may have been sampled out: of others than failures and slow requests, log.sample_one_in logs one in {n}"
            )
        }
    };
    CommandError::Input(format!("{} has no request {id}: {sampling}", log.display()))
}
