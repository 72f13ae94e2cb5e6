//! `/analytics/transparency`: how each score was computed.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{Period, SortBy};

use super::super::count::RunCounts;
use super::super::figures::points;
use super::super::method;
use super::super::model_state::ModelState;
use super::super::run::{Axis, SuiteEntry};
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
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum_detectable_effect: Option<f64>,
    suite_weights: Vec<ScoreWeight<'a>>,
    axis_weights: Vec<ScoreWeight<'a>>,
    suites: Vec<SuiteWeights<'a>>,
    samples: Vec<SampleCounts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    freshness_seconds: Option<u64>,
    method_version: &'a str,
    synthetic: bool,
}

#[derive(Serialize)]
struct ScoreWeight<'a> {
    name: &'a str,
    weight: f64,
}

#[derive(Serialize)]
struct SuiteWeights<'a> {
    name: &'a str,
    weight: f64,
    axes: Vec<ScoreWeight<'a>>,
    feeds: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SampleCounts<'a> {
    suite: &'a str,
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

fn item<'a>(snapshot: &'a Snapshot, model_state: &'a ModelState, period: Period) -> Transparency<'a> {
    let summary = model_state.over(period);
    let suites = || snapshot.suites.suites().iter();
    let age = |at: Wall| snapshot.at.since(at).as_secs();
    Transparency {
        model_id: model_state.id(),
        model_name: model_state.model.name(),
        provider: model_state.model.provider(),
        current_score: summary.score.map(|score| score.score),
        standard_error: summary.standard_error().map(points),
        minimum_detectable_effect: summary.least_visible_change().map(points),
        suite_weights: suites()
            .zip(snapshot.suites.weights(SortBy::Combined))
            .map(|(suite, weight)| ScoreWeight { name: suite.name_text(), weight: *weight })
            .collect(),
        axis_weights: method::AXIS_WEIGHTS
            .map(|(axis, weight): (Axis, f64)| ScoreWeight { name: axis.word(), weight })
            .into(),
        suites: suites().map(weights).collect(),
        samples: summary.reading.suites().map(|(suite, count)| samples(suite, count)).collect(),
        freshness_seconds: summary.reading.last_scored().map(age),
        method_version: &snapshot.method_version,
        synthetic: snapshot.synthetic,
    }
}

fn weights(suite: &SuiteEntry) -> SuiteWeights<'_> {
    let axes = Axis::ALL.into_iter().zip(suite.axis_weights()).zip(suite.axes().flags());
    let declared = axes.filter(|(_, is_declared)| *is_declared);
    SuiteWeights {
        name: suite.name_text(),
        weight: suite.weight(),
        axes: declared
            .map(|((axis, weight), _)| ScoreWeight { name: axis.word(), weight: *weight })
            .collect(),
        feeds: suite.feeds().iter().map(|value| value.word()).collect(),
    }
}

fn samples<'a>(suite: &'a SuiteEntry, count: &RunCounts) -> SampleCounts<'a> {
    SampleCounts {
        suite: suite.name_text(),
        runs: count.runs,
        failed_runs: count.failed,
        trials: count.trials_in_score(),
        failed_trials: count.failed_trials,
        last_run: count.last_scored,
    }
}
