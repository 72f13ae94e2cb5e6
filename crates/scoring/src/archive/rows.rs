//! A run as a row of the archive.
//!
//! Trials are stored as little-endian numbers of 8 bytes, so that a run is read back exactly as it was stored. A missing
//! one is stored as not-a-number.
//! Aggregates are in `sums`.

use std::sync::Arc;

use rusqlite::{Connection, Row};

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;

use super::Trouble;
use super::suites::StoredSuites;
use crate::run::{IdentifiedRun, Run, RunFailure, RunId, RunOutcome, TestedModel, Trial};

const NUMBERS_OF_A_TRIAL: usize = 9;

/// A stored run without its model, description and id.
#[derive(Debug, PartialEq)]
pub(super) struct StoredRun {
    pub(super) at_ms: i64,
    pub(super) suite: i64,
    pub(super) trials: Option<Vec<u8>>,
    pub(super) failed_trials: Option<Vec<u8>>,
    pub(super) failure: Option<i64>,
    pub(super) detail: Option<String>,
}

impl StoredRun {
    /// The columns that [`StoredRun::read`] reads.
    pub(super) const COLUMNS: &str = "at_ms, suite, trials, failed_trials, failure, detail";

    /// The query of the id and the number of the model of runs, the columns that [`model`] reads, and these columns.
    pub(super) fn with_model() -> String {
        format!(
            "SELECT run.id, run.model, model.id, name, provider, price_input, price_output, {}
             FROM run JOIN model ON model.number = run.model JOIN description ON description.number = run.description",
            Self::COLUMNS
        )
    }

    /// Encodes a run of the suite with this number.
    pub(super) fn of(record: &IdentifiedRun, suite: i64) -> Self {
        let run = &record.run;
        let (trials, failure) = match run.outcome() {
            RunOutcome::Scored(trials) => (Some(trials.iter().flat_map(bytes).collect()), None),
            RunOutcome::Failed(failure) => (None, Some(i64::from(number(*failure)))),
        };
        let failed: Vec<u8> = run.failed_trials().iter().copied().map(number).collect();
        Self {
            at_ms: milliseconds(run.at()),
            suite,
            trials,
            failed_trials: Some(failed).filter(|failed| !failed.is_empty()),
            failure,
            detail: record.detail.clone(),
        }
    }

    /// Reads its columns, the first of which has the index `first`.
    pub(super) fn read(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            at_ms: row.get(first)?,
            suite: row.get(first + 1)?,
            trials: row.get(first + 2)?,
            failed_trials: row.get(first + 3)?,
            failure: row.get(first + 4)?,
            detail: row.get(first + 5)?,
        })
    }

    /// Decodes the run.
    pub(super) fn run(
        &self,
        model: &Arc<TestedModel>,
        suites: &StoredSuites,
    ) -> Result<Run, Trouble> {
        let damage = || Trouble::Damage("a stored run cannot be decoded".into());
        let failure = |number: u8| {
            RunFailure::ALL
                .get(usize::from(number))
                .copied()
                .ok_or_else(damage)
        };
        let at = instant(self.at_ms).ok_or_else(damage)?;
        let outcome = match (&self.trials, self.failure) {
            (Some(bytes), None) => RunOutcome::Scored(trials(bytes).ok_or_else(damage)?),
            (None, Some(number)) => RunOutcome::Failed(
                u8::try_from(number)
                    .map_err(|_| damage())
                    .and_then(failure)?,
            ),
            (Some(_), Some(_)) | (None, None) => return Err(damage()),
        };
        let failed: Result<Vec<RunFailure>, Trouble> = self
            .failed_trials
            .iter()
            .flatten()
            .map(|number| failure(*number))
            .collect();
        let suite = suites.suite(self.suite)?;
        Run::with_failed_trials(Arc::clone(model), suite, at, outcome, failed?)
            .map_err(|_| damage())
    }

    /// Decodes the run with its id.
    pub(super) fn record(
        &self,
        id: &str,
        model: &Arc<TestedModel>,
        suites: &StoredSuites,
    ) -> Result<IdentifiedRun, Trouble> {
        let id = RunId::new(id)
            .ok_or_else(|| Trouble::Damage("a run has an invalid identifier".into()))?;
        Ok(IdentifiedRun {
            id,
            run: self.run(model, suites)?,
            detail: self.detail.clone(),
        })
    }
}

/// Reads a model from the columns `model.id, name, provider, price_input, price_output`.
pub(super) fn model(row: &Row<'_>, first: usize) -> Result<Arc<TestedModel>, Trouble> {
    let [id, name, provider]: [String; 3] =
        [row.get(first)?, row.get(first + 1)?, row.get(first + 2)?];
    let input = row.get(first + 3)?;
    let output = row.get(first + 4)?;
    let model =
        ModelId::new(&id).and_then(|id| TestedModel::new(id, &name, &provider, input, output).ok());
    model
        .map(Arc::new)
        .ok_or_else(|| Trouble::Damage(format!("the stored model {id:?} cannot be decoded")))
}

/// The model of the description, or of one of the descriptions, that a condition on one number selects.
pub(super) fn described_model(
    file: &Connection,
    condition: &str,
    number: i64,
) -> Result<Arc<TestedModel>, Trouble> {
    let mut one = file.prepare_cached(&format!(
        "SELECT id, name, provider, price_input, price_output
         FROM model JOIN description ON description.model = model.number WHERE {condition} LIMIT 1"
    ))?;
    one.query_row([number], |row| Ok(model(row, 0)))?
}

/// A time as stored.
pub(super) fn milliseconds(at: Wall) -> i64 {
    i64::try_from(at.millis()).unwrap_or(i64::MAX)
}

/// A stored time.
pub(super) fn instant(at: i64) -> Option<Wall> {
    u64::try_from(at).map(Wall::from_millis).ok()
}

fn number(failure: RunFailure) -> u8 {
    RunFailure::ALL
        .iter()
        .zip(0..)
        .find(|(one, _)| **one == failure)
        .map_or(0, |(_, number)| number)
}

fn bytes(trial: &Trial) -> impl Iterator<Item = u8> {
    let numbers = trial
        .scores()
        .iter()
        .copied()
        .chain([trial.latency_ms(), trial.cost()]);
    let numbers = numbers.map(|number| number.unwrap_or(f64::NAN));
    numbers
        .flat_map(f64::to_le_bytes)
        .collect::<Vec<u8>>()
        .into_iter()
}

fn trials(bytes: &[u8]) -> Option<Vec<Trial>> {
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || numbers.len() % NUMBERS_OF_A_TRIAL != 0 {
        return None;
    }
    let (trials, _) = numbers.as_chunks::<NUMBERS_OF_A_TRIAL>();
    let number =
        |bytes: &[u8; 8]| Some(f64::from_le_bytes(*bytes)).filter(|number| !number.is_nan());
    let trial = |numbers: &[[u8; 8]; NUMBERS_OF_A_TRIAL]| {
        let (scores, rest) = numbers.split_first_chunk::<7>()?;
        let [latency, cost] = rest.as_array()?;
        Trial::on_axes(scores.each_ref().map(number), number(latency), number(cost)).ok()
    };
    trials.iter().map(trial).collect()
}
