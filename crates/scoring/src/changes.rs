//! Significant changes, determined once for a whole snapshot: the p-values of each test are Holm-corrected over all
//! models.
//!
//! `losses` determines losses. `incidents` determines incidents, with a fixed significance level, so that recorded
//! incidents never change.

use scoregate_base::routes::Period;

use super::{
    figures::{Trend, chance},
    measure::Measure,
    method,
    model_state::{ModelChange, ModelState},
    statistics::{Estimate, chance_of_change, holm},
};

/// Determines the changes of all models.
pub fn determine(model_states: &mut [ModelState]) {
    let trends =
        Measure::ALL.map(|measure| Period::ALL.map(|period| trends(model_states, period, measure)));
    let axes = axes(model_states);
    let drifts = drifts(model_states);
    for (index, ((model_state, axes), drift)) in
        model_states.iter_mut().zip(axes).zip(drifts).enumerate()
    {
        let trends = trends.each_ref().map(|periods| {
            periods
                .each_ref()
                .map(|trends| trends.get(index).copied().unwrap_or_default())
        });
        model_state.change = ModelChange {
            trends,
            axes,
            drift,
        };
    }
}

fn trends(model_states: &[ModelState], period: Period, measure: Measure) -> Vec<Trend> {
    // A score whose uncertainty is unknown cannot be compared.
    let known = |estimate: Option<Estimate>| estimate.filter(|estimate| estimate.spread.is_some());
    let estimates = || {
        let states = model_states.iter();
        states
            .map(|model_state| model_state.over(period).estimates(measure))
            .map(|(a, b)| (known(a), known(b)))
    };
    let chances = corrected(estimates().map(|(now, before)| Some(chance_of_change(before?, now?))));
    // A score that was not compared cannot be called stable.
    estimates()
        .zip(chances)
        .map(|((now, before), chance)| match (before, now, chance) {
            (Some(before), Some(now), Some(chance)) => Trend::between(before, now, chance),
            _ => Trend::Unavailable,
        })
        .collect()
}

/// The trend of each axis, according to a fitted line. A trend is reported if it is significant among all lines, and steep enough.
fn axes(model_states: &[ModelState]) -> Vec<[Trend; 7]> {
    let lines = || {
        model_states
            .iter()
            .flat_map(|model_state| model_state.slopes)
    };
    let chances = corrected(lines().map(|line| Some(line?.p)));
    lines()
        .zip(chances)
        .map(|(line, chance)| {
            line.zip(chance)
                .map_or(Trend::Unavailable, |(line, chance)| {
                    let is_steep = line.slope.abs() >= method::SLOPE_MINIMUM;
                    Trend::of(line.slope, is_steep && chance < method::TREND_ALPHA)
                })
        })
        .collect::<Vec<Trend>>()
        .as_chunks()
        .0
        .to_vec()
}

/// A model without a signal was tested too, so it counts with a p-value of one.
fn drifts(model_states: &[ModelState]) -> Vec<Option<f64>> {
    let drifts = || model_states.iter().map(|model_state| model_state.drift);
    let looked_at = drifts().map(|drift| {
        drift
            .statistic
            .map(|_| drift.signal.map_or(1.0, |signal| signal.chance))
    });
    let chances = corrected(looked_at);
    drifts()
        .zip(chances)
        .map(|(drift, corrected)| drift.signal.and(corrected).map(chance))
        .collect()
}

/// Applies Holm's correction to the p-values that exist.
fn corrected(chances: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let chances: Vec<Option<f64>> = chances.collect();
    let known: Vec<f64> = chances.iter().flatten().copied().collect();
    let mut known = holm(&known).into_iter();
    chances
        .into_iter()
        .map(|chance| chance.and_then(|_| known.next()))
        .collect()
}
