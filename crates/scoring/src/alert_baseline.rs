//! The days that the last 24 hours are compared with for an alert: the 7 days before them, or, while a fall lasts, the
//! 7 days before the fall. So a fall does not become a part of its own baseline.

use super::hour::{Hour, HourRange};
use super::method;
use super::noise::round_noise::RoundNoise;
use super::period_scores::ScoreRound;
use super::statistics::{Estimate, chance_of_fall};

/// A fall that has not ended.
#[derive(Clone, Copy)]
struct LastingFall {
    baseline: HourRange,
    level: f64,
    found: Hour,
}

/// The complete rounds of a model, oldest first, with their sums.
struct RoundSums<'r> {
    rounds: &'r [ScoreRound],
    /// The number of rounds that begin before each hour from that of the first round on.
    before: Vec<usize>,
    /// Of the first rounds, beginning with none.
    sums: Vec<f64>,
}

/// The baseline at an hour. Follows the rounds since the first, and their noise.
pub(super) fn at(hour: Hour, rounds: &[ScoreRound], noise: Option<&RoundNoise>) -> HourRange {
    let usual = |hour: Hour| hour.minus(method::CURRENT_HOURS).last(method::BASELINE_HOURS);
    let (Some(noise), Some(first)) = (noise, rounds.first()) else { return usual(hour) };
    let sums = RoundSums::of(rounds);
    let mut fall: Option<LastingFall> = None;
    let known = first.hour.plus(method::CURRENT_HOURS + method::ALERT_BASELINE_LEAST_HOURS);
    for now in (known.number()..=hour.number()).map(Hour::numbered) {
        let Some((current, count)) = sums.mean(now.last(method::CURRENT_HOURS)) else { continue };
        fall = match fall {
            Some(fall) if fall.level - current < method::ALERT_MINIMUM / 2.0 => None,
            Some(fall) if now.number() - fall.found.number() >= method::ALERT_LONGEST_HOURS => None,
            Some(fall) => Some(fall),
            None => {
                let baseline = usual(now);
                let Some((level, before)) = sums.mean(baseline) else { continue };
                let estimate = |mean: f64, count: usize| Estimate {
                    mean,
                    spread: Some(noise.of_mean(count).no_finer(count)),
                };
                let has_fallen = level - current >= method::ALERT_MINIMUM
                    && chance_of_fall(estimate(level, before), estimate(current, count))
                        < method::ALERT_ALPHA;
                has_fallen.then(|| {
                    let compared = HourRange { from: baseline.from, to: now };
                    let began = change_of_level(sums.within(compared), level.midpoint(current));
                    let began = began.map_or(baseline.to, |began| began.min(baseline.to));
                    let baseline = began.last(method::BASELINE_HOURS);
                    let level = sums.mean(baseline).map_or(level, |(level, _)| level);
                    LastingFall { baseline, level, found: now }
                })
            }
        };
    }
    fall.map_or(usual(hour), |fall| fall.baseline)
}

/// The first round after a change of level: the maximum of the cumulative sum above the middle of both levels.
pub(super) fn change_of_level(rounds: &[ScoreRound], middle: f64) -> Option<Hour> {
    let (mut sum, mut highest) = (0.0, 0.0);
    let mut first = rounds.first();
    for (round, next) in rounds.iter().zip(rounds.iter().skip(1)) {
        sum += round.score - middle;
        if sum > highest {
            (highest, first) = (sum, Some(next));
        }
    }
    first.map(|round| round.hour)
}

/// The hours from the first round to an hour.
fn since(rounds: &[ScoreRound], hour: Hour) -> usize {
    let first = rounds.first().map_or(hour, |round| round.hour);
    usize::try_from(hour.number().saturating_sub(first.number())).unwrap_or(usize::MAX)
}

impl<'r> RoundSums<'r> {
    fn of(rounds: &'r [ScoreRound]) -> Self {
        let mut sum = 0.0;
        let sums = rounds.iter().map(|round| {
            sum += round.score;
            sum
        });
        let sums = std::iter::once(0.0).chain(sums).collect();
        let mut before = Vec::new();
        for (count, round) in rounds.iter().enumerate() {
            before.resize(since(rounds, round.hour) + 1, count);
        }
        Self { rounds, before, sums }
    }

    /// The indexes of the rounds that begin in a range.
    fn indexes(&self, range: HourRange) -> std::ops::Range<usize> {
        let first = self.rounds.first().map_or(range.to, |round| round.hour);
        let before = |hour: Hour| {
            let known = self.before.get(since(self.rounds, hour)).copied().unwrap_or(self.rounds.len());
            if hour > first { known } else { 0 }
        };
        before(range.from)..before(range.to)
    }

    fn within(&self, range: HourRange) -> &'r [ScoreRound] {
        self.rounds.get(self.indexes(range)).unwrap_or_default()
    }

    /// The mean of the rounds that begin in a range, and their number; `None` without any.
    fn mean(&self, range: HourRange) -> Option<(f64, usize)> {
        let indexes = self.indexes(range);
        let count = u32::try_from(indexes.len()).ok().filter(|count| *count > 0)?;
        let sum = self.sums.get(indexes.end)? - self.sums.get(indexes.start)?;
        Some((sum / f64::from(count), indexes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lab::simulated_noise::{NoiseGenerator, NoiseKind};
    use super::*;

    /// Hourly rounds with noise about these levels, each for so many hours; and the hour after them.
    fn rounds(levels: &[(f64, u64)]) -> (Vec<ScoreRound>, Hour) {
        let mut noise = NoiseGenerator::new(NoiseKind::White, 1.5, 7);
        let first = Hour::numbered(500_000);
        let levels = levels.iter().flat_map(|(level, hours)| (0..*hours).map(move |_| *level));
        let rounds = (0..)
            .zip(levels)
            .map(|(hour, level)| ScoreRound { hour: first.plus(hour), score: level + noise.draw() });
        let rounds: Vec<ScoreRound> = rounds.collect();
        let end = first.plus(rounds.len() as u64);
        (rounds, end)
    }

    /// How far before the end the baseline ends, in hours.
    fn age(levels: &[(f64, u64)]) -> u64 {
        let (rounds, end) = rounds(levels);
        let noise = RoundNoise::of(rounds.iter().map(|round| round.score), false);
        let baseline = at(end, &rounds, noise.as_ref());
        assert_eq!(baseline.hours().count(), 168);
        end.number() - baseline.to.number()
    }

    #[test]
    fn a_steady_model_is_compared_with_the_week_before_the_last_day() {
        assert_eq!(age(&[(70.0, 720)]), 24);
    }

    #[test]
    fn the_baseline_ends_with_the_fall_as_long_as_it_lasts() {
        for hours in [40, 100, 160] {
            let age = age(&[(70.0, 720), (60.0, hours)]);
            assert!(age >= hours && age < hours + 24, "{hours}: {age}");
        }
    }

    #[test]
    fn a_slow_detection_does_not_leave_the_fall_in_the_baseline() {
        // A fall that is small against the noise is found days later.
        let age = age(&[(70.0, 720), (67.6, 130)]);
        assert!((120..=160).contains(&age), "{age}");
    }

    #[test]
    fn a_recovery_or_a_week_ends_a_fall() {
        assert_eq!(age(&[(70.0, 720), (60.0, 60), (70.0, 48)]), 24);
        assert_eq!(age(&[(70.0, 720), (60.0, 24 * 9)]), 24);
    }

    #[test]
    fn a_second_fall_within_the_week_is_compared_with_the_level_before_the_first() {
        let age = age(&[(70.0, 720), (66.0, 60), (60.0, 30)]);
        assert!((90..120).contains(&age), "{age}");
    }
}
