//! `/models`: the rankings.

use std::cmp::Ordering;

use scoregate_base::routes::{Period, SortBy};

use super::super::figures::Status;
use super::super::measure::Measure;
use super::super::model_state::{ModelState, PeriodSummary};
use super::super::ranks::rank_bounds::{RankBounds, rank_bounds};
use super::super::snapshot::Snapshot;
use super::Item;

/// All models, ranked: those without a score last, ties by id.
pub(super) fn items(snapshot: &Snapshot, period: Period, sort_by: SortBy) -> Vec<Item> {
    let ranked = ranked(snapshot, period, |summary| rank(summary, sort_by));
    let is_by_score = !matches!(sort_by, SortBy::Speed | SortBy::Price);
    let bounds = if is_by_score { rank_bounds(&ranked, period, shown(sort_by)) } else { Vec::new() };
    let bounds = bounds.into_iter().chain(std::iter::repeat(None));
    ranked
        .into_iter()
        .zip(bounds)
        .map(|(model_state, bounds)| item(model_state, bounds, (period, sort_by)))
        .collect()
}

/// All models with a score over the last 24 hours, best first.
pub(super) fn of_day(snapshot: &Snapshot) -> Vec<&ModelState> {
    let mut ranked = ranked(snapshot, Period::Day, |day| Some(day.score()?.score));
    ranked.retain(|model_state| model_state.over(Period::Day).score().is_some());
    ranked
}

/// All models, best first; then those without a rank; ties by id.
pub(super) fn ranked(
    snapshot: &Snapshot,
    period: Period,
    merit: impl Fn(&PeriodSummary) -> Option<f64>,
) -> Vec<&ModelState> {
    let judged =
        snapshot.model_states.iter().map(|model_state| (merit(model_state.over(period)), model_state));
    let mut judged: Vec<(Option<f64>, &ModelState)> = judged.collect();
    judged.sort_by(|(a, left), (b, right)| better(*a, *b).then_with(|| left.id().cmp(right.id())));
    judged.into_iter().map(|(_, model_state)| model_state).collect()
}

fn better(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// The score that an item shows.
fn shown(sort_by: SortBy) -> Measure {
    match sort_by {
        SortBy::Combined | SortBy::Speed | SortBy::Price => Measure::Combined,
        SortBy::Coding => Measure::Coding,
        SortBy::Reasoning => Measure::Reasoning,
        SortBy::Tooling => Measure::Tooling,
        SortBy::SevenAxis => Measure::SevenAxis,
    }
}

/// The rank of a model by a sort key, from published numbers: higher is better. `None` without the shown score.
fn rank(summary: &PeriodSummary, sort_by: SortBy) -> Option<f64> {
    let score = summary.published(shown(sort_by))?;
    match sort_by {
        SortBy::Speed => summary.latency_ms().map(|latency| -latency),
        SortBy::Price => summary.cost_usd().map(|cost| -cost),
        SortBy::Combined | SortBy::Coding | SortBy::Reasoning | SortBy::Tooling | SortBy::SevenAxis => {
            Some(score.score)
        }
    }
}

fn item(model_state: &ModelState, bounds: Option<RankBounds>, (period, sort_by): (Period, SortBy)) -> Item {
    let (summary, measure) = (model_state.over(period), shown(sort_by));
    let score = summary.published(measure);
    let latency = score.filter(|_| sort_by == SortBy::Speed).and_then(|_| summary.latency_ms());
    let cost = score.filter(|_| sort_by == SortBy::Price).and_then(|_| summary.cost_usd());
    Item::default()
        .with("id", model_state.id())
        .with("name", model_state.model.name())
        .with("provider", model_state.model.provider())
        .maybe("currentScore", score.map(|score| score.score))
        .with("trend", model_state.change.trend(period, measure))
        .with("status", Status::of(score))
        .bounds("confidence", score.and_then(|score| score.bounds))
        .with("lastUpdated", model_state.last_updated(period).rfc3339())
        .maybe("latencyMs", latency)
        .maybe("costUsd", cost)
        .maybe("rankLower", bounds.map(|bounds| bounds.lower))
        .maybe("rankUpper", bounds.map(|bounds| bounds.upper))
        .maybe("tiedWithNext", bounds.and_then(|bounds| bounds.tied_with_next))
}
