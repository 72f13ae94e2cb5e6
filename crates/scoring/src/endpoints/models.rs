//! `/models`: the rankings.

use std::cmp::Ordering;

use scoregate_base::routes::{Period, SortBy};

use super::Item;
use crate::{
    figures::Status,
    hour::of_period,
    measure::Measure,
    model_state::{ModelState, PeriodSummary, RankBounds},
    ranks::differences::{ComparedScore, UsualNoise},
    snapshot::Snapshot,
};

/// All models, ranked. Models without a score are last. Ties are ordered by id.
pub fn items(snapshot: &Snapshot, period: Period, sort_by: SortBy) -> Vec<Item> {
    let ranked = ranked(snapshot, period, |summary| rank(summary, sort_by));
    let mut tied = tied(snapshot, &ranked, period, sort_by).into_iter();
    ranked
        .iter()
        .map(|model_state| {
            let item = item(model_state, period, sort_by);
            item.maybe("tiedWithNext", tied.next().flatten())
        })
        .collect()
}

/// All models with a score over the last 24 hours, best first.
pub fn of_day(snapshot: &Snapshot) -> Vec<&ModelState> {
    let mut ranked = ranked(snapshot, Period::Day, |day| Some(day.score()?.score));
    ranked.retain(|model_state| model_state.over(Period::Day).score().is_some());
    ranked
}

/// The model whose score over the last 24 hours has the highest lower bound.
pub fn best(snapshot: &Snapshot) -> Option<&str> {
    let best = ranked(snapshot, Period::Day, |day| Some(day.score()?.supported()));
    let best = best.first()?;
    best.over(Period::Day).score().map(|_| best.id())
}

/// All models, best first, then the models without a rank. Ties are ordered by id.
pub fn ranked(
    snapshot: &Snapshot,
    period: Period,
    merit: impl Fn(&PeriodSummary) -> Option<f64>,
) -> Vec<&ModelState> {
    let judged = snapshot
        .model_states
        .iter()
        .map(|model_state| (merit(model_state.over(period)), model_state));
    let mut judged: Vec<(Option<f64>, &ModelState)> = judged.collect();
    judged.sort_by(|(a, left), (b, right)| better(*a, *b).then_with(|| left.id().cmp(right.id())));
    judged
        .into_iter()
        .map(|(_, model_state)| model_state)
        .collect()
}

/// Orders larger values first, and missing values last.
pub fn better(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

/// The score that a ranking is based on; `None` for price and speed.
fn ranked_by(sort_by: SortBy) -> Option<Measure> {
    let mut measures = Measure::ALL.into_iter();
    measures.find(|measure| measure.sort_by() == sort_by)
}

/// The score that an item shows. For price and speed, it is the combined score.
fn shown(sort_by: SortBy) -> Measure {
    ranked_by(sort_by).unwrap_or(Measure::Combined)
}

/// The value that a sort key ranks a model by, computed from published numbers. Higher is better. `None` if the
/// displayed score is missing.
fn rank(summary: &PeriodSummary, sort_by: SortBy) -> Option<f64> {
    let score = summary.published(shown(sort_by))?;
    match sort_by {
        SortBy::Speed => summary.latency_ms().map(|latency| -latency),
        SortBy::Price => summary.cost_usd().map(|cost| -cost),
        SortBy::Combined
        | SortBy::Coding
        | SortBy::Reasoning
        | SortBy::Tooling
        | SortBy::SevenAxis => Some(score.score),
    }
}

/// The bounds of a model's rank, in rankings by score.
fn rank_bounds(model_state: &ModelState, period: Period, sort_by: SortBy) -> Option<RankBounds> {
    *of_period(period, ranked_by(sort_by)?.of(&model_state.ranks))
}

/// Whether each model of a ranking and the next one may have the same rank.
fn tied(
    snapshot: &Snapshot,
    ranked: &[&ModelState],
    period: Period,
    sort_by: SortBy,
) -> Vec<Option<bool>> {
    let measure = shown(sort_by);
    let scores: Vec<Option<ComparedScore<'_>>> = ranked
        .iter()
        .map(|model| ComparedScore::of(model, period, measure))
        .collect();
    let both = ranked.iter().zip(&scores);
    let known: Vec<&ComparedScore<'_>> = both
        .filter_map(|(model, score)| {
            score
                .as_ref()
                .filter(|_| rank_bounds(model, period, sort_by).is_some())
        })
        .collect();
    let neighbours = known.iter().zip(known.iter().skip(1));
    let usual = UsualNoise::of(neighbours.map(|(one, next)| [*one, *next]));
    let nexts = ranked.iter().zip(&scores).skip(1);
    let pairs = ranked.iter().zip(&scores).zip(nexts);
    pairs
        .map(|((model, score), (next, next_score))| {
            next.over(period).published(measure)?;
            let scores = score.as_ref().zip(next_score.as_ref());
            rank_bounds(model, period, sort_by)?;
            Some(!scores.is_some_and(|(one, next)| one.is_above(next, usual, &snapshot.quantiles)))
        })
        .collect()
}

fn item(model_state: &ModelState, period: Period, sort_by: SortBy) -> Item {
    let summary = model_state.over(period);
    let measure = shown(sort_by);
    let score = summary.published(measure);
    let [latency, cost] = [
        (SortBy::Speed, summary.latency_ms()),
        (SortBy::Price, summary.cost_usd()),
    ]
    .map(|(shown, number)| number.filter(|_| shown == sort_by && score.is_some()));
    let bounds = rank_bounds(model_state, period, sort_by);
    Item::default()
        .with("id", model_state.id())
        .with("name", model_state.model.name())
        .with("provider", model_state.model.provider())
        .maybe("currentScore", score.map(|score| score.score))
        .with("trend", model_state.change.trend(period, measure))
        .with("status", Status::of(score))
        .bounds("confidence", score.and_then(|score| score.bounds))
        .with("lastUpdated", model_state.last_updated(period))
        .maybe("latencyMs", latency)
        .maybe("costUsd", cost)
        .maybe("rankLower", bounds.map(|bounds| bounds.lower))
        .maybe("rankUpper", bounds.map(|bounds| bounds.upper))
}
