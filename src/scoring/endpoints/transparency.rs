//! `/analytics/transparency`: how each score was computed.

use serde::Serialize;

use crate::clock::Wall;
use crate::routes::Period;

use super::super::figures::points;
use super::super::measure::Measure;
use super::super::method;
use super::super::model_state::{ModelState, PeriodSummary};
use super::super::run::{Axis, Suite};
use super::super::snapshot::Snapshot;

/// A model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transparency<'a> {
    model_id: &'a str,
    model_name: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    standard_error: Option<f64>,
    suite_weights: Vec<ScoreWeight>,
    axis_weights: Vec<ScoreWeight>,
    samples: Vec<SampleCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    freshness_seconds: Option<u64>,
    method_version: &'static str,
    synthetic: bool,
}

#[derive(Serialize)]
struct ScoreWeight {
    name: &'static str,
    weight: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleCounts {
    suite: &'static str,
    runs: u32,
    failed_runs: u32,
    trials: u32,
    failed_trials: u32,
    #[serde(serialize_with = "super::maybe_instant", skip_serializing_if = "Option::is_none")]
    last_run: Option<Wall>,
}

/// All models, by id.
pub(super) fn items(snapshot: &Snapshot, period: Period) -> Vec<Transparency<'_>> {
    snapshot.model_states.iter().map(|model_state| item(snapshot, model_state, period)).collect()
}

fn item<'a>(snapshot: &Snapshot, model_state: &'a ModelState, period: Period) -> Transparency<'a> {
    let summary = model_state.over(period);
    let spread = summary.estimates(Measure::Combined).0.and_then(|estimate| estimate.spread);
    let age = |at: Wall| snapshot.at.since(at).as_secs();
    Transparency {
        model_id: model_state.id(),
        model_name: model_state.model.name(),
        provider: model_state.model.provider(),
        current_score: summary.score.map(|score| score.score),
        standard_error: spread.map(|spread| points(spread.variance.sqrt())),
        suite_weights: method::SUITE_WEIGHTS
            .map(|(suite, weight)| ScoreWeight { name: suite.word(), weight })
            .into(),
        axis_weights: method::AXIS_WEIGHTS
            .map(|(axis, weight): (Axis, f64)| ScoreWeight { name: axis.word(), weight })
            .into(),
        samples: Suite::ALL.map(|suite| samples(summary, suite)).into(),
        freshness_seconds: summary.reading.last_scored().map(age),
        method_version: method::METHOD_VERSION,
        synthetic: snapshot.synthetic,
    }
}

fn samples(summary: &PeriodSummary, suite: Suite) -> SampleCounts {
    let count = suite.of(&summary.reading.suites);
    SampleCounts {
        suite: suite.word(),
        runs: count.runs,
        failed_runs: count.failed,
        trials: count.trials_in_score(),
        failed_trials: count.failed_trials,
        last_run: count.last_scored,
    }
}
