//! `/models/:id`: one model over the last 24 hours, by axis and by suite.
//!
//! `latestScore` is the only field for paid keys only: it is always included here, and removed by the gateway.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::changes::ModelChange;
use super::super::count::RunCounts;
use super::super::figures::{Score, Status, Trend, outwards, points, share};
use super::super::measure::Measure;
use super::super::method::INTERVAL_TAIL;
use super::super::model_state::{ModelState, PeriodSummary};
use super::super::ranks::differences::ComparedScore;
use super::super::run::{Axis, SuiteEntry};
use super::super::student::TailQuantiles;

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
    comparisons: Vec<ModelComparison<'a>>,
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

/// The difference from a neighbour in the ranking.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelComparison<'a> {
    model_id: &'a str,
    difference: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference_upper: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probability_better: Option<f64>,
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

/// The detail, with the models of the ranking over 24 hours.
pub(super) fn item<'a>(
    model_state: &'a ModelState,
    change: ModelChange,
    ranked: &[&'a ModelState],
) -> ModelDetail<'a> {
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
        comparisons: comparisons(model_state, ranked),
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

/// The differences from the next better model and the next worse one.
fn comparisons<'a>(model_state: &ModelState, ranked: &[&'a ModelState]) -> Vec<ModelComparison<'a>> {
    let Some(place) = ranked.iter().position(|ranked| ranked.id() == model_state.id()) else {
        return Vec::new();
    };
    let neighbours = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
    let neighbours = neighbours.filter_map(|place| ranked.get(place).copied());
    neighbours.filter_map(|neighbour| comparison(model_state, neighbour)).collect()
}

fn comparison<'a>(model_state: &ModelState, neighbour: &'a ModelState) -> Option<ModelComparison<'a>> {
    let [score, other] = [model_state, neighbour].map(|model| model.over(Period::Day).score);
    let [compared, with] =
        [model_state, neighbour].map(|model| ComparedScore::of(model, Period::Day, Measure::Combined));
    let difference = compared.zip(with).map(|(compared, with)| compared.less(with));
    let bounds = difference.and_then(|difference| difference.bounds(&TailQuantiles::of(INTERVAL_TAIL)));
    let bounds = bounds.map(outwards);
    Some(ModelComparison {
        model_id: neighbour.id(),
        difference: points(score?.score - other?.score),
        difference_lower: bounds.map(|(lower, _)| lower),
        difference_upper: bounds.map(|(_, upper)| upper),
        probability_better: difference.and_then(|difference| difference.probability()).map(share),
    })
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
