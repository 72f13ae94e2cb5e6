//! A line of an import: a run is accepted exactly if a literal reading of the format accepts it, has the
//! content of the line, and is written in the same way after it was read again.

use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_scoring::{
    BadRun, ExportLine, IdentifiedRun, MAX_TRIALS, RunFailure, RunOutcome, SuiteEntry, SuiteTable,
    Trial,
};
use serde_json::{Map, Value};

const SUITES: [&str; 3] = ["coding", "reasoning", "tooling"];
const AXES: [&str; 7] = [
    "correctness",
    "spec",
    "codeQuality",
    "efficiency",
    "stability",
    "refusal",
    "recovery",
];
const REASONS: [&str; 5] = ["timeout", "throttled", "unreachable", "unusable", "harness"];

/// A run as the format defines it, in the order of its fields. Failed trials have their reason only.
#[derive(Debug, PartialEq)]
struct LiteralRun {
    id: String,
    model: (String, String, String, Option<f64>, Option<f64>),
    suite: String,
    time: Wall,
    scored: Vec<([f64; 7], Option<f64>, Option<f64>)>,
    failed: Vec<String>,
    failure: Option<(String, Option<String>)>,
}

/// Fails if the program reads this line differently.
pub fn check(bytes: &[u8]) {
    let Ok(line) = std::str::from_utf8(bytes) else {
        return;
    };
    let now = Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap();
    let table = SuiteTable::default();
    let read = accepted(line, now, &table);
    match &read {
        Ok(line) => {
            let written = write(line);
            assert!(!written.contains(['\n', '\r']), "{written}");
            // Times are written in whole milliseconds, as they are stored.
            let again = accepted(&written, now, &table).unwrap();
            assert_eq!(write(&again), written);
        }
        Err(bad) => assert!(!bad.problem.is_empty(), "{line}"),
    }
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        assert!(read.is_err(), "{line}");
        return;
    };
    // The literal reading knows neither repeated fields nor fields by position, both of which are rare in practice.
    if is_repeated_or_positional(line, &value) {
        return;
    }
    match read {
        Ok(AcceptedLine::Run(record)) => {
            assert_eq!(Some(of_program(&record)), literal(&value, now), "{line}");
        }
        // Weights are normalised, and axes and feeds are sorted.
        Ok(AcceptedLine::Suites(table)) => {
            let rows = value["suites"]
                .as_array()
                .unwrap()
                .iter()
                .map(|suite| suite["name"].as_str().unwrap());
            let names = table.suites().iter().map(SuiteEntry::name_text);
            assert!(rows.eq(names), "{line}");
        }
        Err(_) => assert_eq!(literal(&value, now), None, "{line}"),
    }
}

/// A line that an import accepts.
#[derive(Debug)]
enum AcceptedLine {
    Suites(SuiteTable),
    Run(IdentifiedRun),
}

fn accepted(line: &str, now: Wall, table: &SuiteTable) -> Result<AcceptedLine, BadRun> {
    match ExportLine::parse(line)? {
        ExportLine::Suites(table) => Ok(AcceptedLine::Suites(table)),
        ExportLine::Run(run) => run.check(now, table).map(AcceptedLine::Run),
    }
}

fn write(line: &AcceptedLine) -> String {
    match line {
        AcceptedLine::Suites(table) => table.write_line(),
        AcceptedLine::Run(record) => record.write(),
    }
}

/// Whether an object has a field twice, or an array is where the format has an object.
fn is_repeated_or_positional(line: &str, value: &Value) -> bool {
    fn fields(value: &Value) -> usize {
        match value {
            Value::Object(map) => map.len() + map.values().map(fields).sum::<usize>(),
            Value::Array(list) => list.iter().map(fields).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }
    fn has_array(value: &Value, is_list: bool) -> bool {
        match value {
            Value::Object(map) => map
                .iter()
                .any(|(name, value)| has_array(value, name == "trials")),
            Value::Array(list) => !is_list || list.iter().any(|value| has_array(value, false)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
    has_array(value, false) || fields(value) != colons(line)
}

/// The number of fields in the text: colons outside strings.
fn colons(line: &str) -> usize {
    let mut count = 0;
    let mut is_string = false;
    let mut is_escaped = false;
    for byte in line.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b':' if !is_string => count += 1,
            _ => {}
        }
    }
    count
}

fn of_program(record: &IdentifiedRun) -> LiteralRun {
    let run = &record.run;
    let model = record.run.model();
    let numbers = |trial: &Trial| {
        (
            trial.scores().map(Option::unwrap),
            trial.latency_ms(),
            trial.cost(),
        )
    };
    let failure = match run.outcome() {
        RunOutcome::Scored(_) => None,
        RunOutcome::Failed(failure) => Some((failure.word().to_owned(), record.detail.clone())),
    };
    LiteralRun {
        id: record.id.to_string(),
        model: (
            model.id().to_string(),
            model.name().to_owned(),
            model.provider().to_owned(),
            model.price_input(),
            model.price_output(),
        ),
        suite: run.suite().name().to_owned(),
        time: run.at(),
        scored: run.trials().iter().map(numbers).collect(),
        failed: run
            .failed_trials()
            .iter()
            .copied()
            .map(RunFailure::word)
            .map(str::to_owned)
            .collect(),
        failure,
    }
}

/// The run that the format defines; `None` if it rejects the line.
fn literal(value: &Value, now: Wall) -> Option<LiteralRun> {
    let run = object(
        value,
        &["id", "model", "suite", "time", "trials", "failure"],
    )?;
    let id = text(run, "id").filter(|id| {
        (1..=128).contains(&id.len()) && id.bytes().all(|byte| (b'!'..=b'~').contains(&byte))
    })?;
    let model = object(
        run.get("model")?,
        &["id", "name", "provider", "priceInput", "priceOutput"],
    )?;
    let model_id = text(model, "id").filter(|id| {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
        id.starts_with(|c: char| c.is_ascii_alphanumeric())
            && id.len() <= 128
            && id.chars().all(is_allowed)
    })?;
    let prices = amounts(model, ["priceInput", "priceOutput"])?;
    let suite = text(run, "suite").filter(|suite| SUITES.contains(&suite.as_str()))?;
    let time = Wall::parse_rfc3339(&text(run, "time")?)?;
    if time > now.plus(Duration::from_mins(1)) {
        return None;
    }
    let mut scored = Vec::new();
    let mut failed = Vec::new();
    let failure = match (present(run, "trials"), present(run, "failure")) {
        (Some(trials), None) => {
            for trial in trials.as_array()? {
                match read_trial(trial)? {
                    Ok(trial) => scored.push(trial),
                    Err(reason) => failed.push(reason),
                }
            }
            if !(1..=MAX_TRIALS).contains(&(scored.len() + failed.len())) {
                return None;
            }
            None
        }
        (None, Some(failure)) => Some(read_failure(failure)?),
        (Some(_), Some(_)) | (None, None) => return None,
    };
    let (name, provider) = (name(model, "name")?, name(model, "provider")?);
    let model = (model_id, name, provider, prices[0], prices[1]);
    Some(LiteralRun {
        id,
        model,
        suite,
        time,
        scored,
        failed,
        failure,
    })
}

type LiteralTrial = ([f64; 7], Option<f64>, Option<f64>);

/// The trial, or the reason of its failure.
fn read_trial(value: &Value) -> Option<Result<LiteralTrial, String>> {
    let trial = object(value, &["scores", "latencyMs", "cost", "failure"])?;
    // Of the failed ones too, the type is checked.
    for field in ["latencyMs", "cost"] {
        present(trial, field).map_or(Some(0.0), Value::as_f64)?;
    }
    match (present(trial, "scores"), present(trial, "failure")) {
        (Some(scores), None) => {
            let scores = object(scores, &AXES)?;
            let mut numbers = [0.0; 7];
            for (number, axis) in numbers.iter_mut().zip(AXES) {
                *number = scores
                    .get(axis)?
                    .as_f64()
                    .filter(|score| *score >= 0.0 && *score <= 1.0)?;
            }
            let [latency, cost] = amounts(trial, ["latencyMs", "cost"])?;
            Some(Ok((numbers, latency, cost)))
        }
        (None, Some(failure)) => Some(Err(read_failure(failure)?.0)),
        (Some(_), Some(_)) | (None, None) => None,
    }
}

fn read_failure(value: &Value) -> Option<(String, Option<String>)> {
    let failure = object(value, &["reason", "detail"])?;
    let reason = text(failure, "reason").filter(|reason| REASONS.contains(&reason.as_str()))?;
    let detail = match present(failure, "detail") {
        None => None,
        Some(detail) => Some(
            detail
                .as_str()
                .filter(|detail| detail.chars().count() <= 500)?
                .to_owned(),
        ),
    };
    Some((reason, detail))
}

/// An object that has only these fields.
fn object<'a>(value: &'a Value, known: &[&str]) -> Option<&'a Map<String, Value>> {
    value
        .as_object()
        .filter(|object| object.keys().all(|name| known.contains(&name.as_str())))
}

/// A field that is there and not `null`.
fn present<'a>(object: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null())
}

fn text(object: &Map<String, Value>, field: &str) -> Option<String> {
    object.get(field)?.as_str().map(str::to_owned)
}

/// Optional numbers of at least zero.
fn amounts(object: &Map<String, Value>, fields: [&str; 2]) -> Option<[Option<f64>; 2]> {
    let mut amounts = [None; 2];
    for (amount, field) in amounts.iter_mut().zip(fields) {
        if let Some(value) = present(object, field) {
            *amount = Some(value.as_f64().filter(|number| *number >= 0.0)?);
        }
    }
    Some(amounts)
}

/// A name that can be shown.
fn name(model: &Map<String, Value>, field: &str) -> Option<String> {
    text(model, field).filter(|name| {
        let is_invisible = |c: char| {
            matches!(c, '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}')
                || matches!(c, '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
                || matches!(c, '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}')
                || matches!(c, '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}')
                || matches!(c, '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
        };
        !name.trim().is_empty()
            && name.chars().count() <= 200
            && !name.chars().any(|c| c.is_control() || is_invisible(c))
    })
}
