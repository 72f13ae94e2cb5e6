//! A run as a row of the archive.
//!
//! Trials are stored as little-endian 8-byte numbers, so that a run is read back exactly as it was stored. A missing
//! number is stored as NaN. Parsing JSON would take several seconds, because a refresh reads hundreds of thousands of runs.

use std::sync::Arc;

use rusqlite::{Connection, Row, ToSql};

use scoregate_base::{clock::Wall, routes::ModelId};

use super::Trouble;
use crate::{
    run::{IdentifiedRun, Run, RunFailure, RunId, RunOutcome, TestedModel, Trial},
    suite::Suite,
};

const NUMBERS_OF_A_TRIAL: usize = 9;

/// The result of inserting a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunInsertion {
    /// The run is new and has been stored.
    New,
    /// An identical run was already stored.
    AlreadyThere,
    /// A different run with this id was already stored, and is kept.
    OtherContent,
}

/// The columns that [`record`] reads; [`run`] reads the first four.
pub const COLUMNS: &str =
    "at, suite, trials, failures, id, model, name, provider, price_input, price_output, detail";

/// The parameters for these columns.
const VALUES: &str = "(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Inserts a run, unless there is already a run with its id.
pub fn insert(file: &Connection, record: &IdentifiedRun) -> rusqlite::Result<RunInsertion> {
    let run = &record.run;
    let model = run.model();
    let trials = match run.outcome() {
        RunOutcome::Scored(trials) => Some(trials.iter().flat_map(bytes).collect::<Vec<u8>>()),
        RunOutcome::Failed(_) => None,
    };
    let failures: Vec<&str> = run
        .failures()
        .iter()
        .map(|failure| failure.word())
        .collect();
    let values: [&dyn ToSql; 11] = [
        &milliseconds(run.at()),
        &run.suite().to_string(),
        &trials,
        &failures.join(" "),
        &record.id.as_str(),
        &model.id().as_str(),
        &model.name(),
        &model.provider(),
        &model.price_input(),
        &model.price_output(),
        &record.detail,
    ];
    let mut insert = file.prepare_cached(&format!(
        "INSERT OR IGNORE INTO run ({COLUMNS}) VALUES {VALUES}"
    ))?;
    if insert.execute(&values[..])? == 1 {
        return Ok(RunInsertion::New);
    }
    let mut compare = file.prepare_cached(&format!(
        "SELECT ({COLUMNS}) IS {VALUES} FROM run WHERE id = ?5"
    ))?;
    Ok(if compare.query_row(&values[..], |row| row.get(0))? {
        RunInsertion::AlreadyThere
    } else {
        RunInsertion::OtherContent
    })
}

/// Decodes a run with its id and model.
pub fn record(row: &Row<'_>) -> Result<IdentifiedRun, Trouble> {
    let id: String = row.get(4)?;
    let model: String = row.get(5)?;
    let name: String = row.get(6)?;
    let provider: String = row.get(7)?;
    let input = row.get(8)?;
    let output = row.get(9)?;
    let model = ModelId::new(&model)
        .and_then(|id| TestedModel::new(id, &name, &provider, input, output).ok())
        .ok_or_else(undecodable)?;
    Ok(IdentifiedRun {
        id: RunId::new(&id).ok_or_else(undecodable)?,
        run: run(row, &Arc::new(model))?,
        detail: row.get(10)?,
    })
}

/// Decodes a run of this model.
pub fn run(row: &Row<'_>, model: &Arc<TestedModel>) -> Result<Run, Trouble> {
    let at = instant(row.get(0)?)?;
    let suite = Suite::new(row.get_ref(1)?.as_str()?).ok_or_else(undecodable)?;
    let words = row.get_ref(3)?.as_str()?.split_ascii_whitespace();
    let mut failures: Vec<RunFailure> = words
        .map(RunFailure::parse)
        .collect::<Option<_>>()
        .ok_or_else(undecodable)?;
    let outcome = match row.get_ref(2)?.as_blob_or_null()? {
        Some(bytes) => trials(bytes).map(RunOutcome::Scored),
        None => failures.pop().map(RunOutcome::Failed),
    };
    let outcome = outcome.ok_or_else(undecodable)?;
    Run::with_failed_trials(Arc::clone(model), suite, at, outcome, failures)
        .map_err(|_| undecodable())
}

/// The stored form of a time.
pub fn milliseconds(at: Wall) -> i64 {
    i64::try_from(at.millis()).unwrap_or(i64::MAX)
}

/// Decodes a stored time.
pub fn instant(at: i64) -> Result<Wall, Trouble> {
    u64::try_from(at)
        .map(Wall::from_millis)
        .map_err(|_| Trouble::Damage("a time cannot be decoded".into()))
}

fn undecodable() -> Trouble {
    Trouble::Damage("a stored run cannot be decoded".into())
}

fn bytes(trial: &Trial) -> Vec<u8> {
    let numbers = trial.scores().iter().copied();
    numbers
        .chain([trial.latency_ms(), trial.cost()])
        .flat_map(|number| number.unwrap_or(f64::NAN).to_le_bytes())
        .collect()
}

fn trials(bytes: &[u8]) -> Option<Vec<Trial>> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    let (trials, more) = numbers.as_chunks::<NUMBERS_OF_A_TRIAL>();
    if !rest.is_empty() || !more.is_empty() {
        return None;
    }
    trials.iter().map(trial).collect()
}

fn trial(numbers: &[[u8; 8]; NUMBERS_OF_A_TRIAL]) -> Option<Trial> {
    let [scores @ .., latency, cost] =
        numbers.map(|bytes| Some(f64::from_le_bytes(bytes)).filter(|number| !number.is_nan()));
    Trial::on_axes(scores, latency, cost).ok()
}
