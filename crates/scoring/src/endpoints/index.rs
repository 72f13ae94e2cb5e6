//! `/index`: the mean of all models with a score over the last 24 hours, and its trend.
//!
//! A model without a score is counted and not averaged.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::figures::{Trend, points};
use super::super::hour::Hour;
use super::super::measure::Measure;
use super::super::method;
use super::super::model_state::ModelState;
use super::super::snapshot::Snapshot;
use super::super::statistics::{Estimate, SampleSums, chance_of_change};
use super::models;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BenchmarkIndex<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    trend: Trend,
    models: u32,
    unavailable: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    best_model: Option<&'a str>,
    history: Vec<IndexPoint>,
    #[serde(serialize_with = "super::maybe_instant", skip_serializing_if = "Option::is_none")]
    last_updated: Option<Wall>,
}

#[derive(Serialize)]
struct IndexPoint {
    #[serde(serialize_with = "super::instant")]
    timestamp: Wall,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    models: u32,
}

/// The index.
pub(super) fn item(snapshot: &Snapshot) -> BenchmarkIndex<'_> {
    let days = || snapshot.model_states.iter().map(|model_state| model_state.over(Period::Day));
    let scores: SampleSums = days().filter_map(|day| Some(day.score?.score)).collect();
    let best = models::ranked(snapshot, Period::Day, |day| Some(day.score?.score)).into_iter().next();
    let hours = snapshot.hour.last(method::CURRENT_HOURS).hours();
    BenchmarkIndex {
        value: scores.mean().map(points),
        trend: trend(snapshot),
        models: scores.count,
        unavailable: days().map(|day| u32::from(day.score.is_none())).sum(),
        best_model: best.filter(|best| best.over(Period::Day).score.is_some()).map(ModelState::id),
        history: hours.map(|hour| point(snapshot, hour)).collect(),
        last_updated: days()
            .filter(|day| day.score.is_some())
            .filter_map(|day| day.reading.last_scored())
            .max(),
    }
}

/// From models with a score on both days, so that a new or removed model is not mistaken for a movement.
fn trend(snapshot: &Snapshot) -> Trend {
    let both = snapshot.model_states.iter().filter_map(|model_state| {
        let (now, before) = model_state.over(Period::Day).estimates(Measure::Combined);
        let known = |estimate: &Estimate| estimate.spread.is_some();
        Some((before.filter(known)?, now.filter(known)?))
    });
    let (before, now): (Vec<Estimate>, Vec<Estimate>) = both.unzip();
    match mean(&now).zip(mean(&before)) {
        None => Trend::Unavailable,
        // One comparison: no correction.
        Some((now, before)) => Trend::between(before, now, chance_of_change(before, now)),
    }
}

fn mean(estimates: &[Estimate]) -> Option<Estimate> {
    let share = 1.0 / f64::from(u32::try_from(estimates.len()).ok().filter(|count| *count > 0)?);
    let parts: Vec<(f64, Estimate)> = estimates.iter().map(|estimate| (share, *estimate)).collect();
    Some(Estimate::weighted(&parts))
}

fn point(snapshot: &Snapshot, hour: Hour) -> IndexPoint {
    let round = |model_state: &ModelState| {
        let begins = model_state.round_length.round_of(hour).from;
        model_state.rounds.iter().rev().find(|round| round.hour == begins).map(|round| round.score)
    };
    let scores: SampleSums = snapshot.model_states.iter().filter_map(round).collect();
    IndexPoint { timestamp: hour.start(), value: scores.mean().map(points), models: scores.count }
}
