//! What is called a change, told once for a whole snapshot: every test is corrected by Holm for all models it was made of.
//!
//! A list and a detail that look up the same model here cannot disagree. Not for: losses, which are ranked (`losses.rs`),
//! nor for incidents, whose chance is fixed so that they stay as they were recorded (`incidents.rs`).

use std::collections::HashMap;

use crate::routes::Period;

use super::figures::{Trend, chance};
use super::hour::of_period;
use super::measure::Measure;
use super::method;
use super::model_state::ModelState;
use super::statistics::{FittedLine, chance_of_change, holm};

/// The changes of every model.
#[derive(Debug)]
pub(super) struct ModelChanges<'a> {
    models: HashMap<&'a str, ModelChange>,
}

/// What changed about one model.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelChange {
    /// Of each measure, in the order of `Measure::ALL`.
    trends: [[Trend; 4]; 5],
    movements: [Trend; 4],
    /// Where each axis moves, in the order of `Axis::ALL`.
    pub axes: [Trend; 7],
    /// The corrected chance of the drift test's signal, as published; absent where none stands.
    pub drift: Option<f64>,
}

impl<'a> ModelChanges<'a> {
    /// The changes among all models there are.
    pub(super) fn among(portraits: &'a [ModelState]) -> Self {
        let trends = Measure::ALL.map(|measure| Period::ALL.map(|period| trends(portraits, period, measure)));
        let movements = Period::ALL.map(|period| movements(portraits, period));
        let (axes, drifts) = (axes(portraits), drifts(portraits));
        let models = portraits.iter().enumerate().map(|(place, portrait)| {
            let told = |trends: &Vec<Trend>| trends.get(place).copied().unwrap_or(Trend::Unavailable);
            let change = ModelChange {
                trends: trends.each_ref().map(|periods| periods.each_ref().map(told)),
                movements: movements.each_ref().map(told),
                axes: axes.get(place).copied().unwrap_or([Trend::Unavailable; 7]),
                drift: drifts.get(place).copied().flatten(),
            };
            (portrait.id(), change)
        });
        Self { models: models.collect() }
    }

    /// What changed about one of them.
    pub(super) fn of(&self, portrait: &ModelState) -> ModelChange {
        *self
            .models
            .get(portrait.id())
            .expect("the changes are those of the snapshot that the portrait is in")
    }
}

impl ModelChange {
    /// Where a score of a period moved against the stretch before.
    pub(super) fn trend(&self, period: Period, measure: Measure) -> Trend {
        *of_period(period, measure.of(&self.trends))
    }

    /// Where the score moves now: along the newest part of the period.
    pub(super) fn movement(&self, period: Period) -> Trend {
        *of_period(period, &self.movements)
    }

    /// Whether the drift test's signal is called a change.
    pub(super) fn has_drifted(&self) -> bool {
        self.drift.is_some_and(|chance| chance < method::DRIFT_ALPHA)
    }
}

fn trends(portraits: &[ModelState], period: Period, measure: Measure) -> Vec<Trend> {
    let estimates = || portraits.iter().map(|portrait| portrait.over(period).estimates(measure));
    let chances = corrected(estimates().map(|(now, before)| Some(chance_of_change(before?, now?))));
    let trend = |((now, before), chance): ((Option<_>, Option<_>), Option<f64>)| match (now, before, chance) {
        (Some(now), Some(before), Some(chance)) => Trend::between(before, now, chance),
        // Nothing was compared, so nothing was shown to be stable.
        (Some(_) | None, ..) => Trend::Unavailable,
    };
    estimates().zip(chances).map(trend).collect()
}

fn movements(portraits: &[ModelState], period: Period) -> Vec<Trend> {
    let hours = u32::try_from(*of_period(period, &method::MOVEMENT_HOURS)).unwrap_or(u32::MAX);
    let days = f64::from(hours) / 24.0;
    let lines = || portraits.iter().map(|portrait| *of_period(period, &portrait.movements));
    along(lines, method::MOVEMENT_MINIMUM / days)
}

fn axes(portraits: &[ModelState]) -> Vec<[Trend; 7]> {
    let trends = along(|| portraits.iter().flat_map(|portrait| portrait.slopes), method::SLOPE_MINIMUM);
    trends.as_chunks().0.to_vec()
}

/// Where lines lead: told if it is sure among all of them, and so many points a day or more.
fn along<L: Iterator<Item = Option<FittedLine>>>(lines: impl Fn() -> L, minimum: f64) -> Vec<Trend> {
    let chances = corrected(lines().map(|line| Some(line?.p)));
    let trend = |(line, chance): (Option<FittedLine>, Option<f64>)| match line.zip(chance) {
        None => Trend::Unavailable,
        Some((line, chance)) => {
            Trend::of(line.slope, line.slope.abs() >= minimum && chance < method::TREND_ALPHA)
        }
    };
    lines().zip(chances).map(trend).collect()
}

/// A model without a signal was looked at too, and counts as one that chance explains.
fn drifts(portraits: &[ModelState]) -> Vec<Option<f64>> {
    let drifts = || portraits.iter().map(|portrait| portrait.drift);
    let looked_at =
        drifts().map(|drift| drift.statistic.map(|_| drift.signal.map_or(1.0, |signal| signal.chance)));
    let chances = corrected(looked_at);
    drifts().zip(chances).map(|(drift, corrected)| drift.signal.and(corrected).map(chance)).collect()
}

/// Holm's correction among those that there are.
fn corrected(chances: impl Iterator<Item = Option<f64>>) -> Vec<Option<f64>> {
    let chances: Vec<Option<f64>> = chances.collect();
    let known: Vec<f64> = chances.iter().flatten().copied().collect();
    let mut known = holm(&known).into_iter();
    chances.into_iter().map(|chance| chance.and_then(|_| known.next())).collect()
}
