//! `/models/:id`: one model over the last 24 hours, by axis and by suite.
//!
//! `latestScore` is the only field for paid keys only: it is always included here, and removed by the gateway.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::changes::ModelChange;
use super::super::count::RunCounts;
use super::super::figures::{Score, Status, Trend, points};
use super::super::measure::Measure;
use super::super::model_state::{ModelState, PeriodSummary};
use super::super::run::{Axis, SuiteEntry};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelDetail<'a> {
    id: &'a str,
    name: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_score: Option<f64>,
    trend: Trend,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_upper: Option<f64>,
    axes: Vec<AxisScore>,
    suites: Vec<SuiteScore<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price_input: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price_output: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    runs: u32,
    failed_runs: u32,
    #[serde(serialize_with = "super::instant")]
    last_updated: Wall,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AxisScore {
    axis: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_upper: Option<f64>,
    samples: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SuiteScore<'a> {
    suite: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    runs: u32,
    #[serde(serialize_with = "super::maybe_instant", skip_serializing_if = "Option::is_none")]
    last_run: Option<Wall>,
}

/// The detail.
pub(super) fn item(model_state: &ModelState, change: ModelChange) -> ModelDetail<'_> {
    let day = model_state.over(Period::Day);
    let (runs, failed_runs) = day.runs;
    ModelDetail {
        id: model_state.id(),
        name: model_state.model.name(),
        provider: model_state.model.provider(),
        current_score: day.score.map(|score| score.score),
        latest_score: model_state.over(Period::Latest).score.map(|score| score.score),
        trend: change.trend(Period::Day, Measure::Combined),
        status: Status::of(day.score),
        confidence_lower: day.score.as_ref().and_then(Score::lower),
        confidence_upper: day.score.as_ref().and_then(Score::upper),
        axes: axes(day),
        suites: day.reading.suites().map(|(suite, count)| suite_score(suite, count)).collect(),
        price_input: model_state.model.price_input(),
        price_output: model_state.model.price_output(),
        latency_ms: day.latency_ms(),
        runs,
        failed_runs,
        last_updated: model_state.last_updated(Period::Day),
    }
}

fn axes(day: &PeriodSummary) -> Vec<AxisScore> {
    let axes = Axis::ALL.into_iter().zip(&day.axes).zip(day.reading.trials_of_axes());
    axes.map(|((axis, score), trials)| AxisScore {
        axis: axis.word(),
        score: score.map(|score| score.score),
        confidence_lower: score.as_ref().and_then(Score::lower),
        confidence_upper: score.as_ref().and_then(Score::upper),
        samples: if score.is_some() { trials } else { 0 },
    })
    .collect()
}

fn suite_score<'a>(suite: &'a SuiteEntry, count: &RunCounts) -> SuiteScore<'a> {
    SuiteScore {
        suite: suite.name_text(),
        score: count.score().map(points),
        runs: count.scored,
        last_run: count.last_scored,
    }
}
