//! `/models/:id`: one model over the last 24 hours, with its axes and suites.
//!
//! `latestScore` is the only field that is restricted to paid keys. It is always included here; the gateway removes it
//! for other keys.

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    count::RunCounts,
    figures::{Score, Status, outwards, points, share},
    measure::Measure,
    model_state::{ModelState, PeriodSummary},
    ranks::differences::ComparedScore,
    run::SuiteEntry,
    student::TailQuantiles,
    suite::Axis,
};

/// The detail of a model. `ranked` is the ranking over 24 hours.
pub fn item(model_state: &ModelState, ranked: &[&ModelState], quantiles: &TailQuantiles) -> Item {
    let day = model_state.over(Period::Day);
    let (runs, failed_runs) = day.runs;
    let latest = model_state.over(Period::Latest).score();
    Item::default()
        .with("id", model_state.id())
        .with("name", model_state.model.name())
        .with("provider", model_state.model.provider())
        .maybe("currentScore", day.score().map(|score| score.score))
        .maybe("latestScore", latest.map(|score| score.score))
        .with(
            "trend",
            model_state.change.trend(Period::Day, Measure::Combined),
        )
        .with("status", Status::of(day.score()))
        .bounds("confidence", day.score().and_then(|score| score.bounds))
        .objects("comparisons", comparisons(model_state, ranked, quantiles))
        .objects("axes", axes(day))
        .objects(
            "suites",
            day.reading
                .suites()
                .map(|(suite, count)| suite_score(suite, count)),
        )
        .maybe("priceInput", model_state.model.price_input())
        .maybe("priceOutput", model_state.model.price_output())
        .maybe("latencyMs", day.latency_ms())
        .with("runs", runs)
        .with("failedRuns", failed_runs)
        .with("lastUpdated", model_state.last_updated(Period::Day))
}

/// The differences from the next better and the next worse model.
fn comparisons(
    model_state: &ModelState,
    ranked: &[&ModelState],
    quantiles: &TailQuantiles,
) -> Vec<Item> {
    let Some(place) = ranked
        .iter()
        .position(|ranked| ranked.id() == model_state.id())
    else {
        return Vec::new();
    };
    let neighbours = [place.checked_sub(1), Some(place + 1)]
        .into_iter()
        .flatten();
    let neighbours = neighbours.filter_map(|place| ranked.get(place).copied());
    neighbours
        .filter_map(|neighbour| comparison(model_state, neighbour, quantiles))
        .collect()
}

fn comparison(
    model_state: &ModelState,
    neighbour: &ModelState,
    quantiles: &TailQuantiles,
) -> Option<Item> {
    let [score, other] = [model_state, neighbour].map(|model| model.over(Period::Day).score());
    let [compared, with] = [model_state, neighbour]
        .map(|model| ComparedScore::of(model, Period::Day, Measure::Combined));
    let difference = compared
        .zip(with)
        .map(|(compared, with)| compared.less(&with));
    let bounds = difference.map(|difference| difference.bounds(quantiles));
    let probability = difference.map(|difference| difference.probability());
    Some(
        Item::default()
            .with("modelId", neighbour.id())
            .with("difference", points(score?.score - other?.score))
            .bounds(
                "difference",
                bounds.map(|(lower, upper)| outwards(lower, upper)),
            )
            .maybe("probabilityBetter", probability.map(share)),
    )
}

fn axes(day: &PeriodSummary) -> impl Iterator<Item = Item> {
    let axes = Axis::ALL
        .into_iter()
        .zip(&day.axes)
        .zip(day.reading.trials_of_axes());
    axes.map(|((axis, score), trials)| {
        let score = score.as_ref().map(Score::of);
        Item::default()
            .with("axis", axis)
            .score("score", score)
            .with("samples", if score.is_some() { trials } else { 0 })
    })
}

fn suite_score(suite: &SuiteEntry, count: &RunCounts) -> Item {
    Item::default()
        .with("suite", suite.name())
        .maybe("score", count.score().map(points))
        .with("runs", count.scored)
        .maybe("lastRun", count.last_scored)
}
