//! The drift of one model: the Page-Hinkley test over its rounds, in units of its own noise, and a test of its
//! signals.
//!
//! A signal shows where to look. Whether it is significant among all models is decided in `changes`, by its p-value.

use serde::Serialize;

use super::hour::Hour;
use super::method;
use super::noise::round_length::RoundLength;
use super::noise::round_noise::RoundNoise;
use super::page_hinkley::{PageHinkley, PageHinkleyParameters, ShiftDirection};
use super::period_scores::ScoreRound;
use super::statistics::{Estimate, SampleSums, chance_of_change};

/// The test's result for a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DriftResult {
    pub state: DriftState,
    /// The larger statistic of both directions; absent before the first round.
    pub statistic: Option<f64>,
    /// Rounds since its last restart.
    pub samples: u32,
    /// The minimum before a signal.
    pub minimum: u32,
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

/// Runs the test over rounds of this length, oldest first, in units of their noise.
pub(super) fn watch(rounds: &[ScoreRound], noise: Option<&RoundNoise>, length: RoundLength) -> DriftResult {
    let least = length.rounds(method::DRIFT_LEAST);
    let minimum = u32::try_from(least).unwrap_or(u32::MAX);
    let rule = PageHinkleyParameters { minimum, delta: method::DRIFT_DELTA, lambda: method::DRIFT_LAMBDA };
    let at_least = |variance: f64| variance.sqrt().max(method::DRIFT_NOISE_LEAST);
    let unit = at_least(noise.map_or(0.0, RoundNoise::long_run));
    let single = at_least(noise.map_or(0.0, |noise| noise.of_mean(1).variance));
    // An outlier must not signal alone.
    let reach = method::NOISE_LIMIT * single / unit;
    let mut test = PageHinkley::new(rule);
    let mut newest = None;
    for (at, round) in rounds.iter().enumerate() {
        let sample = round.score / unit;
        let sample = test.mean().map_or(sample, |mean| sample.clamp(mean - reach, mean + reach));
        if let Some(direction) = test.feed(sample) {
            let began = (at + 1).saturating_sub(count(test.samples()));
            let changed = began + count(test.before(direction));
            newest = Some(DetectedChange { began, changed, at, direction, statistic: test.larger().1 });
        }
    }
    let is_active = |found: &DetectedChange| rounds.len() - found.at <= length.rounds(method::DRIFT_STANDS);
    let signal = newest.filter(is_active).and_then(|found| found.tested(rounds, noise));
    let state = match signal {
        Some(_) => DriftState::Signalled,
        None if test.samples() < minimum => DriftState::Warming,
        None => DriftState::Quiet,
    };
    let statistic = (!rounds.is_empty()).then(|| test.larger().1);
    DriftResult { state, statistic, samples: test.samples(), minimum, noise: noise.map(|_| unit), signal }
}

impl DetectedChange {
    /// Tests the rounds since the change against those before it, as far back as the test looked.
    fn tested(self, rounds: &[ScoreRound], noise: Option<&RoundNoise>) -> Option<DriftSignal> {
        let part = |part: Option<&[ScoreRound]>| -> Option<Estimate> {
            let part = part?;
            let sums: SampleSums = part.iter().map(|round| round.score).collect();
            let spread = noise.map(|noise| noise.of_mean(part.len()).no_finer(part.len()));
            Some(Estimate { mean: sums.mean()?, spread })
        };
        let before = part(rounds.get(self.began..self.changed));
        let since = part(rounds.get(self.changed..));
        let places: f64 = (self.began..=self.at).map(|_| 1.0).sum();
        let candidates = (places / method::DRIFT_PLACES_PER_TEST).max(1.0);
        let chance = before.zip(since).map_or(1.0, |(before, since)| chance_of_change(before, since));
        let hour = rounds.get(self.at)?.hour;
        let chance = (chance * candidates).min(1.0);
        Some(DriftSignal { direction: self.direction, hour, statistic: self.statistic, chance })
    }
}

fn count(samples: u32) -> usize {
    usize::try_from(samples).expect("a machine word holds 32 bits")
}

#[cfg(test)]
mod tests {
    use super::super::lab::simulated_noise::{NoiseGenerator, NoiseKind};
    use super::*;
    use scoregate_base::clock::Wall;

    fn rounds(scores: impl IntoIterator<Item = f64>) -> Vec<ScoreRound> {
        let first = Hour::of(Wall::from_seconds(1_000_000_000));
        let round = |(hour, score)| ScoreRound { hour: first.plus(hour), score };
        (0..).zip(scores).map(round).collect()
    }

    /// Seeded independent noise about a level.
    fn noisy(level: f64, size: f64, hours: usize) -> impl Iterator<Item = f64> {
        let mut noise = NoiseGenerator::new(NoiseKind::White, size, 5);
        (0..hours).map(move |_| level + noise.draw())
    }

    fn watched(scores: impl IntoIterator<Item = f64>) -> DriftResult {
        let rounds = rounds(scores);
        let noise = RoundNoise::of(rounds.iter().map(|round| round.score), false);
        watch(&rounds, noise.as_ref(), RoundLength::HOUR)
    }

    #[test]
    fn detection_depends_only_on_the_change_in_units_of_noise() {
        let stepped = |size: f64| watched(noisy(70.0, size, 200).chain(noisy(70.0 - 5.0 * size, size, 12)));
        let first = stepped(1.0);
        for size in [1.0, 2.0, 3.0] {
            let (drift, unit) = (stepped(size), first.noise.unwrap());
            let signal = drift.signal.unwrap();
            assert_eq!(signal.direction, ShiftDirection::Down);
            assert!((drift.noise.unwrap() / size / unit - 1.0).abs() < 0.01 && (0.5..2.5).contains(&unit));
            assert_eq!((signal.hour, drift.state), (first.signal.unwrap().hour, DriftState::Signalled));
            assert!(signal.chance < 1e-6, "{signal:?}");
        }
    }

    #[test]
    fn drift_test_warms_up_and_a_signal_expires() {
        assert_eq!(watched([]).statistic, None);
        let least = method::DRIFT_LEAST.hourly;
        assert_eq!(watched(noisy(70.0, 1.0, least - 1)).state, DriftState::Warming);
        assert_eq!(watched(noisy(70.0, 1.0, least)).state, DriftState::Quiet);
        let after = |hours| watched(noisy(70.0, 1.0, 600).chain(noisy(76.0, 1.0, hours)));
        let (found, found_at) = (1..40).find_map(|hours| Some((after(hours).signal?, hours))).unwrap();
        assert_eq!(found.direction, ShiftDirection::Up);
        let standing = after(found_at + method::DRIFT_STANDS.hourly - 1);
        assert_eq!(
            (standing.state, standing.signal.map(|signal| signal.hour)),
            (DriftState::Signalled, Some(found.hour))
        );
        let over = after(found_at + method::DRIFT_STANDS.hourly);
        assert_eq!((over.state, over.signal), (DriftState::Quiet, None));
    }

    #[test]
    fn a_single_outlier_does_not_signal() {
        let outlier = noisy(70.0, 1.0, 200).chain([20.0]).chain(noisy(70.0, 1.0, 20));
        assert_eq!(watched(outlier).state, DriftState::Quiet);
    }

    #[test]
    fn a_constant_series_has_the_least_noise_and_no_signal() {
        let drift = watched(std::iter::repeat_n(70.0, 300));
        assert_eq!((drift.noise, drift.signal), (Some(method::DRIFT_NOISE_LEAST), None));
    }

    #[test]
    fn reverted_level_is_not_a_change() {
        let fallen = || noisy(70.0, 1.0, 200).chain(noisy(62.0, 1.0, 8));
        let chance = |drift: DriftResult| drift.signal.unwrap().chance;
        let (after, back) =
            (chance(watched(fallen())), chance(watched(fallen().chain(noisy(70.0, 1.0, 60)))));
        assert!(after < 1e-6 && back > after * 1e3, "{after} {back}");
    }
}
