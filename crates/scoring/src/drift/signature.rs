//! The drift of one model: the newest change of its level, and the Page-Hinkley statistic of its rounds, in units of
//! the model's noise.
//!
//! `changes` decides, based on the p-value, whether a change is significant among all models.

use serde::Serialize;

use super::page_hinkley::PageHinkley;
use crate::{
    hour::Hour,
    levels::{LevelChange, ScoreLevels, ShiftDirection},
    method,
    period_scores::ScoreRound,
    round_length::RoundLength,
    statistics::chance_of_change,
};

/// The result of the test for a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftResult {
    pub state: DriftState,
    /// The larger of the statistics for the two directions; `None` before the first round.
    pub statistic: Option<f64>,
    /// Number of rounds since the last restart.
    pub samples: u32,
    /// Minimum number of rounds before the statistic may restart and before a model can be stable.
    pub minimum: u32,
    /// The long-run standard deviation of a round, in points; `None` if there are too few rounds.
    pub noise: Option<f64>,
    /// The newest signal, while it is in force.
    pub signal: Option<DriftSignal>,
}

/// The state of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftState {
    /// There are too few rounds.
    Warming,
    /// There is no signal.
    Quiet,
    /// A signal is in force.
    Signalled,
}

/// A signal that is in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftSignal {
    /// Direction of the change.
    pub direction: ShiftDirection,
    /// The hour of the round in which the change was detected.
    pub hour: Hour,
    /// The Page-Hinkley statistic in that round.
    pub statistic: f64,
    /// The p-value of the difference between the rounds before and after the change, not corrected for the number of
    /// models.
    pub chance: f64,
}

/// The newest change of level, while it is in force, and the Page-Hinkley statistic of `rounds`, which have this length and are
/// sorted oldest first.
pub fn watch(levels: &ScoreLevels, rounds: &[ScoreRound], length: RoundLength) -> DriftResult {
    let least = length.rounds(method::DRIFT_LEAST);
    let minimum = u32::try_from(least).unwrap_or(u32::MAX);
    let noise = levels.deviations();
    let [single, unit] = noise.unwrap_or([method::DRIFT_NOISE_LEAST; 2]);
    // Limits the effect of an outlier on the statistic.
    let reach = method::NOISE_LIMIT * single / unit;
    let newest = levels.newest();
    let change = newest.filter(|change| is_in_force(change, rounds, length));
    let found_with = change.map(|change| change.found_with);
    let test = PageHinkley::new(minimum);
    let (test, at_change) = tested(test, rounds, unit, reach, found_with);
    let signal = change.map(|change| DriftSignal {
        direction: change.direction,
        hour: change.found_with,
        statistic: at_change,
        chance: levels
            .since(change.found_with)
            .map_or(1.0, |levels| chance_of_change(levels.before, levels.now)),
    });
    DriftResult {
        state: match signal {
            Some(_) => DriftState::Signalled,
            None if rounds.len() < least => DriftState::Warming,
            None => DriftState::Quiet,
        },
        statistic: (!rounds.is_empty()).then(|| test.larger()),
        samples: test.samples,
        minimum,
        noise: noise.map(|_| unit),
        signal,
    }
}

fn is_in_force(change: &LevelChange, rounds: &[ScoreRound], length: RoundLength) -> bool {
    let since = rounds.partition_point(|round| round.hour < change.found_with);
    let is_old = rounds
        .first()
        .is_none_or(|first| change.found_with < first.hour);
    !is_old && rounds.len() - since <= length.rounds(method::DRIFT_STANDS)
}

/// The test after all rounds, with scores in units of `unit`, and its statistic at `hour`. The deviation of a round from the mean is
/// limited to `reach`.
fn tested(
    mut test: PageHinkley,
    rounds: &[ScoreRound],
    unit: f64,
    reach: f64,
    hour: Option<Hour>,
) -> (PageHinkley, f64) {
    let mut statistic = 0.0;
    for round in rounds {
        let sample = round.score / unit;
        test.feed(match test.mean() {
            Some(mean) => sample.clamp(mean - reach, mean + reach),
            None => sample,
        });
        if hour == Some(round.hour) {
            statistic = test.larger();
        }
    }
    (test, statistic)
}
