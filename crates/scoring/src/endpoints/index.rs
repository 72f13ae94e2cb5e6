//! `/index`: the mean 24-hour score of all models that have one, and its trend.
//!
//! A model without a score is counted, but is not part of the mean.

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    figures::{Score, Trend, points},
    hour::Hour,
    measure::Measure,
    method,
    model_state::ModelState,
    noise::score_residuals::ScoreResiduals,
    round_length::RoundLength,
    score_noise::{EdgeReach, UncertainScore},
    snapshot::Snapshot,
    statistics::{Estimate, SampleSums, Spread, chance_of_change},
};

/// The index and the best model.
pub fn item(snapshot: &Snapshot, best_model: Option<&str>) -> Item {
    let days = || {
        snapshot
            .model_states
            .iter()
            .map(|model_state| model_state.over(Period::Day))
    };
    let scores: SampleSums = days().filter_map(|day| Some(day.score()?.score)).collect();
    let index = scores.mean();
    let hours = snapshot.hour.last(method::CURRENT_HOURS).hours();
    let last_updated = days()
        .filter_map(|day| day.score().and(day.reading.last_scored()))
        .max();
    Item::default()
        .maybe("value", index.map(points))
        .bounds(
            "confidence",
            index.and_then(|index| bounds(snapshot, index)),
        )
        .with("trend", trend(snapshot))
        .with("models", scores.count)
        .with(
            "unavailable",
            days().filter(|day| day.score().is_none()).count(),
        )
        .maybe("bestModel", best_model)
        .objects("history", hours.map(|hour| point(snapshot, hour)))
        .maybe("lastUpdated", last_updated)
}

/// The bounds of the index, if the uncertainty of every score is known.
fn bounds(snapshot: &Snapshot, index: f64) -> Option<(f64, f64)> {
    let days = snapshot
        .model_states
        .iter()
        .map(|model_state| (model_state, model_state.over(Period::Day)));
    let scored = days.filter(|(_, day)| day.score().is_some());
    let uncertain =
        scored.map(|(model_state, day)| Some((model_state, day.uncertain(Measure::Combined)?)));
    let uncertain: Vec<(&ModelState, &UncertainScore)> = uncertain.collect::<Option<_>>()?;
    let tested: Vec<_> = uncertain
        .iter()
        .map(|(model_state, score)| (*model_state, score.tested))
        .collect();
    let cycle = uncertain
        .iter()
        .map(|(_, score)| score.basis.cycle)
        .collect::<SampleSums>()
        .mean()?;
    let Estimate {
        spread: Some(spread),
        ..
    } = mean(&tested)?
    else {
        return None;
    };
    let spread = Some(Spread {
        variance: spread.variance + cycle * cycle,
        ..spread
    });
    let reach = Estimate {
        mean: index,
        spread,
    }
    .reach(&snapshot.quantiles);
    Score::with(index, reach, EdgeReach::default()).bounds
}

/// Uses only models with a score on both days, so that adding or removing a model is not mistaken for a change of the
/// index.
fn trend(snapshot: &Snapshot) -> Trend {
    let both = snapshot.model_states.iter().filter_map(|model_state| {
        let (now, before) = model_state.over(Period::Day).estimates(Measure::Combined);
        let before = before.filter(|before| before.spread.is_some())?;
        let now = now.filter(|now| now.spread.is_some())?;
        Some(((model_state, before), (model_state, now)))
    });
    let (before, now): (Vec<_>, Vec<_>) = both.unzip();
    match mean(&now).zip(mean(&before)) {
        None => Trend::Unavailable,
        // This is a single comparison, so there is no correction.
        Some((now, before)) => Trend::between(before, now, chance_of_change(before, now)),
    }
}

/// The mean score of several models. Noise that is shared by models with rounds of the same length does not cancel out.
fn mean(scores: &[(&ModelState, Estimate)]) -> Option<Estimate> {
    let share = 1.0
        / f64::from(
            u32::try_from(scores.len())
                .ok()
                .filter(|count| *count > 0)?,
        );
    let mut parts: Vec<(f64, Estimate)> = Vec::new();
    for length in method::ROUND_HOURS.map(RoundLength::of) {
        let of_length = || {
            scores
                .iter()
                .filter(move |(model_state, _)| model_state.round_length == length)
        };
        let residuals =
            of_length().map(|(model_state, _)| model_state.residuals(Measure::Combined));
        let shared = ScoreResiduals::shared(&residuals.collect::<Vec<_>>());
        parts.extend(of_length().map(|(_, estimate)| {
            // Shared noise does not add degrees of freedom.
            let spread = estimate.spread.map(|spread| Spread {
                variance: shared * spread.variance,
                df: (spread.df / shared).max(method::NOISE_FREEDOM_LEAST),
            });
            (
                share,
                Estimate {
                    spread,
                    ..*estimate
                },
            )
        }));
    }
    Some(Estimate::weighted(&parts))
}

fn point(snapshot: &Snapshot, hour: Hour) -> Item {
    let scores: SampleSums = snapshot
        .model_states
        .iter()
        .filter_map(|model_state| {
            let begins = model_state.round_length.round_of(hour).from;
            model_state
                .rounds
                .iter()
                .rev()
                .find(|round| round.hour == begins)
                .map(|round| round.score)
        })
        .collect();
    Item::default()
        .with("timestamp", hour.start())
        .maybe("value", scores.mean().map(points))
        .with("models", scores.count)
}
