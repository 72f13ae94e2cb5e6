//! The drift of one model: the Page-Hinkley test over its rounds, in units of its own noise, and a test of its
//! signals.
//!
//! A signal shows where to look. Whether it is significant among all models is decided in `changes`, by its p-value.

use serde::Serialize;

use super::hour::Hour;
use super::method;
use super::page_hinkley::{PageHinkley, PageHinkleyParameters, ShiftDirection};
use super::statistics::{self, SampleSums};

/// The parameters of the test for every model, in units of noise.
pub(super) const RULE: PageHinkleyParameters = PageHinkleyParameters {
    minimum: method::DRIFT_LEAST,
    delta: method::DRIFT_DELTA,
    lambda: method::DRIFT_LAMBDA,
};

/// The test's result for a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DriftResult {
    pub state: DriftState,
    /// The larger statistic of both directions; absent before the first round.
    pub statistic: Option<f64>,
    /// Rounds since its last restart.
    pub samples: u32,
    /// The standard deviation of a round about its level, in points; absent with fewer than two rounds.
    pub noise: Option<f64>,
    /// The newest signal, while it is in force.
    pub signal: Option<DriftSignal>,
}

/// The state of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DriftState {
    /// Too few rounds since its start.
    Warming,
    /// No signal.
    Quiet,
    /// A signal is in force.
    Signalled,
}

/// A signal in force.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DriftSignal {
    /// Direction of the change.
    pub direction: ShiftDirection,
    /// The hour of the round that caused it.
    pub hour: Hour,
    /// The statistic at that round.
    pub statistic: f64,
    /// The p-value of the difference between the rounds since the change and those before it, corrected for the
    /// selection of the change point among the rounds; not yet for the number of models.
    pub chance: f64,
}

/// A detected change, as indexes of rounds.
#[derive(Clone, Copy)]
struct DetectedChange {
    began: usize,
    changed: usize,
    at: usize,
    direction: ShiftDirection,
    statistic: f64,
}

/// Runs the test over rounds, oldest first.
pub(super) fn watch(rounds: &[(Hour, f64)]) -> DriftResult {
    let noise = noise(rounds);
    let mut test = PageHinkley::new(RULE);
    let mut newest = None;
    for (at, (_, score)) in rounds.iter().enumerate() {
        if let Some(direction) = test.feed(score / noise.unwrap_or(method::DRIFT_NOISE_LEAST)) {
            let began = (at + 1).saturating_sub(count(test.samples()));
            let changed = began + count(test.before(direction));
            newest = Some(DetectedChange { began, changed, at, direction, statistic: test.larger().1 });
        }
    }
    let is_active = |found: &DetectedChange| rounds.len() - found.at <= method::DRIFT_STANDS;
    let signal = newest.filter(is_active).and_then(|found| found.tested(rounds));
    let state = match signal {
        Some(_) => DriftState::Signalled,
        None if test.samples() < RULE.minimum => DriftState::Warming,
        None => DriftState::Quiet,
    };
    let statistic = (!rounds.is_empty()).then(|| test.larger().1);
    DriftResult { state, statistic, samples: test.samples(), noise, signal }
}

/// The noise of rounds, estimated from differences of neighbours: a change of level is one difference among many, and
/// the median is insensitive to it. Normal differences have their median absolute value at 0.6745 standard
/// deviations, and those are √2 of a round's.
fn noise(rounds: &[(Hour, f64)]) -> Option<f64> {
    let next = rounds.iter().skip(1);
    let differences = rounds.iter().zip(next).map(|((_, one), (_, other))| (other - one).abs());
    let middle = statistics::median(differences.collect())?;
    Some((middle / (0.674_489_750_196_081_7 * 2.0_f64.sqrt())).max(method::DRIFT_NOISE_LEAST))
}

impl DetectedChange {
    /// Tests the rounds since the change against those before it, as far back as the test looked.
    fn tested(self, rounds: &[(Hour, f64)]) -> Option<DriftSignal> {
        let sums = |part: Option<&[(Hour, f64)]>| -> Option<SampleSums> {
            Some(part?.iter().map(|(_, score)| *score).collect())
        };
        let before = sums(rounds.get(self.began..self.changed))?;
        let since = sums(rounds.get(self.changed..))?;
        let candidates: f64 = (self.began..=self.at).map(|_| 1.0).sum();
        let chance = statistics::pooled_difference(before, since, method::RESOLUTION)
            .map_or(1.0, |difference| difference.chance_from_zero());
        let hour = rounds.get(self.at)?.0;
        let chance = (chance * candidates).min(1.0);
        Some(DriftSignal { direction: self.direction, hour, statistic: self.statistic, chance })
    }
}

fn count(samples: u32) -> usize {
    usize::try_from(samples).expect("a machine word holds 32 bits")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    fn rounds(scores: impl IntoIterator<Item = f64>) -> Vec<(Hour, f64)> {
        let first = Hour::of(Wall::from_seconds(1_000_000_000));
        (0..).zip(scores).map(|(hour, score)| (first.plus(hour), score)).collect()
    }

    /// Alternating noise whose neighbours differ by twice its size.
    fn wobbling(level: f64, size: f64, hours: usize) -> impl Iterator<Item = f64> {
        (0..hours).map(move |hour| if hour % 2 == 0 { level + size } else { level - size })
    }

    #[test]
    fn detection_depends_only_on_the_change_in_units_of_noise() {
        for (size, step) in [(1.0, 5.0), (2.0, 10.0), (3.0, 15.0)] {
            let drift = watch(&rounds(wobbling(70.0, size, 200).chain(wobbling(70.0 - step, size, 12))));
            let signal = drift.signal.unwrap();
            assert_eq!(signal.direction, ShiftDirection::Down);
            assert!((drift.noise.unwrap() / size - 2.0 / 0.6745 / 2.0_f64.sqrt()).abs() < 0.01);
            let first = watch(&rounds(wobbling(70.0, 1.0, 200).chain(wobbling(65.0, 1.0, 12))));
            assert_eq!((signal.hour, drift.state), (first.signal.unwrap().hour, DriftState::Signalled));
            assert!(signal.chance < 1e-6, "{signal:?}");
        }
    }

    #[test]
    fn drift_test_warms_up_and_a_signal_expires() {
        assert_eq!(watch(&[]).statistic, None);
        let least = count(method::DRIFT_LEAST);
        assert_eq!(watch(&rounds(wobbling(70.0, 1.0, least - 1))).state, DriftState::Warming);
        assert_eq!(watch(&rounds(wobbling(70.0, 1.0, least))).state, DriftState::Quiet);
        let after = |hours| watch(&rounds(wobbling(70.0, 1.0, 200).chain(wobbling(76.0, 1.0, hours))));
        let (found, found_at) = (1..40).find_map(|hours| Some((after(hours).signal?, hours))).unwrap();
        assert_eq!(found.direction, ShiftDirection::Up);
        let limit_status = after(found_at + method::DRIFT_STANDS - 1);
        assert_eq!(
            (limit_status.state, limit_status.signal.map(|signal| signal.hour)),
            (DriftState::Signalled, Some(found.hour))
        );
        let over = after(found_at + method::DRIFT_STANDS);
        assert_eq!((over.state, over.signal), (DriftState::Quiet, None));
        assert_eq!(count(over.samples), method::DRIFT_STANDS);
    }

    #[test]
    fn a_constant_series_has_the_least_noise_and_no_signal() {
        let drift = watch(&rounds(std::iter::repeat_n(70.0, 300)));
        assert_eq!((drift.noise, drift.signal), (Some(method::DRIFT_NOISE_LEAST), None));
    }

    #[test]
    fn reverted_level_is_not_a_change() {
        let rounds_after = rounds(wobbling(70.0, 1.0, 200).chain(wobbling(62.0, 1.0, 8)));
        let back =
            rounds(wobbling(70.0, 1.0, 200).chain(wobbling(62.0, 1.0, 8)).chain(wobbling(70.0, 1.0, 60)));
        let chance = |rounds: &[(Hour, f64)]| watch(rounds).signal.unwrap().chance;
        assert!(chance(&rounds_after) < 1e-6);
        assert!(chance(&back) > chance(&rounds_after) * 1e3);
    }
}
