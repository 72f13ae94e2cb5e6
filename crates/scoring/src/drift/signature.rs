//! The drift of one model: the newest change of its level, and the Page-Hinkley statistic of its rounds, in units of its
//! own noise.
//!
//! Whether a change is significant among all models is decided in `changes`, by its p-value.

use serde::Serialize;

use super::page_hinkley::{PageHinkley, PageHinkleyParameters};
use crate::hour::Hour;
use crate::levels::{LevelChange, LevelComparison, ScoreLevels, ShiftDirection};
use crate::method;
use crate::period_scores::ScoreRound;
use crate::round_length::RoundLength;
use crate::statistics::chance_of_change;

/// The test's result for a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DriftResult {
    pub state: DriftState,
    /// The larger statistic of both directions; absent before the first round.
    pub statistic: Option<f64>,
    /// Rounds since its last restart.
    pub samples: u32,
    /// Rounds before the statistic may restart, and before a model can be stable.
    pub minimum: u32,
    /// The standard deviation of a round in the long run, in points; absent with too few rounds.
    pub noise: Option<f64>,
    /// The newest signal, while it is in force.
    pub signal: Option<DriftSignal>,
}

/// The state of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DriftState {
    /// Too few rounds.
    Warming,
    /// No signal.
    Quiet,
    /// A signal is in force.
    Signalled,
}

/// A signal in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DriftSignal {
    /// Direction of the change.
    pub direction: ShiftDirection,
    /// The hour of the round with which it was found.
    pub hour: Hour,
    /// The Page-Hinkley statistic at that round.
    pub statistic: f64,
    /// The p-value of the difference between the rounds since the change and those before it, not corrected for the
    /// number of models.
    pub chance: f64,
}

/// Reads the levels: the newest change, while it is in force, and the Page-Hinkley statistic of the rounds of this
/// length, oldest first.
pub(crate) fn watch(
    levels: &ScoreLevels,
    rounds: &[ScoreRound],
    length: RoundLength,
) -> DriftResult {
    let minimum = u32::try_from(length.rounds(method::DRIFT_LEAST)).unwrap_or(u32::MAX);
    let rule = PageHinkleyParameters {
        minimum,
        delta: method::DRIFT_DELTA,
        lambda: method::DRIFT_LAMBDA,
    };
    let noise = levels.deviations();
    let [single, unit] = noise.unwrap_or([method::DRIFT_NOISE_LEAST; 2]);
    // Limits the effect of an outlier on the statistic.
    let reach = method::NOISE_LIMIT * single / unit;
    let is_active = |change: &&LevelChange| {
        let since = rounds.partition_point(|round| round.hour < change.found_with);
        let is_old = rounds
            .first()
            .is_none_or(|first| change.found_with < first.hour);
        !is_old && rounds.len() - since <= length.rounds(method::DRIFT_STANDS)
    };
    let change = levels.changes.last().filter(is_active);
    let mut test = PageHinkley::new(rule);
    let mut at_change = 0.0;
    for round in rounds {
        let sample = round.score / unit;
        test.feed(
            test.mean()
                .map_or(sample, |mean| sample.clamp(mean - reach, mean + reach)),
        );
        if change.is_some_and(|change| change.found_with == round.hour) {
            at_change = test.larger();
        }
    }
    let tested = |levels: LevelComparison| chance_of_change(levels.before, levels.now);
    let signal = change.map(|change| DriftSignal {
        direction: change.direction,
        hour: change.found_with,
        statistic: at_change,
        chance: levels.since(change.found_with).map_or(1.0, tested),
    });
    let state = match signal {
        Some(_) => DriftState::Signalled,
        None if rounds.len() < length.rounds(method::DRIFT_LEAST) => DriftState::Warming,
        None => DriftState::Quiet,
    };
    let statistic = (!rounds.is_empty()).then(|| test.larger());
    let noise = noise.map(|_| unit);
    DriftResult {
        state,
        statistic,
        samples: test.samples,
        minimum,
        noise,
        signal,
    }
}
