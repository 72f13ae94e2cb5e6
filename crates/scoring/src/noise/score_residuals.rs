//! The deviations of a score's rounds from its levels and cycle, oldest first. The deviations of two models
//! show the noise of the difference between their scores, in which shared noise cancels out.

use std::sync::OnceLock;

use super::round_noise::{MeanNoise, NEGLIGIBLE, block_length, changed, fit_correction, ratio};
use crate::{
    hour::{Hour, HourRange},
    method,
    round_length::RoundLength,
    statistics::Spread,
};

/// Number of sums of squares that are computed in parallel.
const LANES: usize = 4;

/// The deviations over a month.
#[derive(Clone, Debug)]
pub struct ScoreResiduals {
    length: RoundLength,
    /// The first hour of the first round.
    first: Hour,
    /// The deviations in order of time; NaN for a missing round.
    rounds: Vec<f64>,
    /// Number of rounds that are not missing.
    known: usize,
    /// The sums of blocks of 1, 2, … rounds, computed on first use; not a number if a round is missing.
    blocks: [OnceLock<Vec<f64>>; method::NOISE_BLOCK],
    /// Number of levels, and number of fitted effects.
    levels: usize,
    fitted: usize,
}

/// The noise of the difference between two scores.
#[derive(Clone, Debug)]
pub struct PairedNoise<'r> {
    pair: [&'r ScoreResiduals; 2],
    common: CommonRounds,
    /// Number of levels and of fitted effects.
    levels: usize,
    fitted: usize,
    means: MeanNoise,
}

/// The differences in the rounds that two scores share.
#[derive(Clone, Copy, Debug)]
struct CommonRounds {
    count: usize,
    mean: f64,
    /// The sum of the squared deviations of the differences from their mean.
    squares: f64,
}

impl ScoreResiduals {
    /// The deviations of the rounds that begin at these hours, relative to `levels` levels and `fitted` effects.
    pub(crate) fn of(
        month: HourRange,
        length: RoundLength,
        rounds: impl Iterator<Item = (Hour, f64)>,
        levels: usize,
        fitted: usize,
    ) -> Self {
        let all = length.rounds_in(month);
        let first = length.round_of(month.from).from;
        let none = vec![f64::NAN; all];
        let blocks = [const { OnceLock::new() }; method::NOISE_BLOCK];
        let mut residuals = Self {
            length,
            first,
            rounds: none,
            known: 0,
            blocks,
            levels,
            fitted,
        };
        for (hour, deviation) in rounds {
            let place = residuals.place(hour);
            if let Some(round) = residuals.rounds.get_mut(place) {
                *round = deviation;
                residuals.known += 1;
            }
        }
        residuals
    }

    /// The ratio between the variance of the mean of these scores and the variance for independent scores. It is more
    /// than one if they share noise.
    pub(crate) fn shared(all: &[&Self]) -> f64 {
        Self::shared_in_blocks(all, 1)
            .max(Self::shared_in_blocks(all, method::NOISE_SHORT_BLOCK))
            .max(1.0)
    }

    /// The ratio for blocks of at most `longest` rounds.
    fn shared_in_blocks(all: &[&Self], longest: usize) -> f64 {
        let mut sums = Vec::new();
        let mut squares = 0.0;
        for residuals in all {
            let rounds = &residuals.rounds;
            let blocks = rounds.chunks(block_length(longest, rounds.len()));
            sums.resize(blocks.len(), 0.0);
            for (sum, block) in sums.iter_mut().zip(blocks) {
                let own: f64 = block.iter().filter(|round| !round.is_nan()).sum();
                *sum += own;
                squares += own * own;
            }
        }
        let shared: f64 = sums.iter().map(|sum| sum * sum).sum();
        if squares > NEGLIGIBLE {
            shared / squares
        } else {
            1.0
        }
    }

    /// The sum of the squared differences from the deviations of another score, about the mean difference.
    pub(crate) fn squares_of_differences(&self, other: &Self) -> f64 {
        let mean = self.mean_difference(other);
        squared_differences(&self.rounds, &other.rounds, mean).1
    }

    /// The mean difference from the deviations of another score. If no rounds are missing, it is zero, because both means are zero.
    fn mean_difference(&self, other: &Self) -> f64 {
        if [self.known, other.known] == [self.rounds.len(); 2] {
            return 0.0;
        }
        let count = common_rounds(&self.rounds, &other.rounds);
        sum_of_differences(&self.rounds, &other.rounds) * ratio(1, count.max(1))
    }

    /// A lower bound for the variance of a difference, given the sum of squares.
    pub(crate) fn least_variance(&self, squares: f64) -> f64 {
        squares * ratio(1, self.rounds.len().max(1))
    }

    /// The deviations of the rounds that overlap this range of hours; NaN for a missing round.
    pub(crate) fn within(&self, range: HourRange) -> &[f64] {
        let from = self.place(self.length.round_of(range.from).from);
        let to = self.place(range.to).min(self.rounds.len());
        self.rounds.get(from..to).unwrap_or_default()
    }

    /// Whether there are too few rounds to determine the noise.
    pub(crate) fn are_few(&self) -> bool {
        self.known < method::NOISE_LEAST
    }

    fn sums(&self, block: usize) -> &[f64] {
        self.blocks.get(block - 1).map_or(&[], |known| {
            known.get_or_init(|| {
                self.rounds
                    .chunks_exact(block)
                    .map(|rounds| rounds.iter().sum())
                    .collect()
            })
        })
    }

    fn place(&self, hour: Hour) -> usize {
        let rounds = hour
            .number()
            .saturating_sub(self.first.number())
            .div_ceil(self.length.hours());
        usize::try_from(rounds).unwrap_or(usize::MAX)
    }
}

impl<'r> PairedNoise<'r> {
    /// The noise, given the sum of all squared differences; `None` if there are too few common rounds.
    pub(crate) fn of(
        one: &'r ScoreResiduals,
        other: &'r ScoreResiduals,
        squares: f64,
    ) -> Option<Self> {
        if one.length != other.length {
            return None;
        }
        let pair = [one, other];
        let common = CommonRounds {
            count: common_rounds(&one.rounds, &other.rounds),
            mean: one.mean_difference(other),
            squares,
        };
        let levels = one.levels.max(other.levels);
        let fitted = one.fitted.max(other.fitted);
        let free = common
            .count
            .checked_sub(levels + fitted)
            .filter(|free| *free > 0 && common.count >= method::NOISE_LEAST)?;
        let means = MeanNoise::of(one.rounds.len(), free, |block| {
            block_variance(pair, common, block, [levels, fitted])
        })?;
        Some(Self {
            pair,
            common,
            levels,
            fitted,
            means,
        })
    }

    /// The variance of the mean of `rounds` consecutive differences before an hour, computed as for the rounds of one
    /// model.
    pub(crate) fn of_mean_before(&self, end: Hour, rounds: usize) -> Spread {
        let usual = self.means.of_mean(rounds, |block| {
            block_variance(self.pair, self.common, block, [self.levels, self.fitted])
        });
        let [one, other] = self.pair.map(|residuals| {
            let end = residuals.place(end).min(residuals.rounds.len());
            let from = end - rounds.max(method::NOISE_LATELY).min(end);
            residuals.rounds.get(from..end).unwrap_or_default()
        });
        let common = self.common;
        let (count, squares) = squared_differences(one, other, common.mean);
        let quotient = squares * ratio(common.count, count) / common.squares;
        changed(usual, quotient, count)
    }
}

/// The variance of the mean of `block` differences, corrected for the numbers of fitted levels and effects; `None` if there are no differences.
fn block_variance(
    pair: [&ScoreResiduals; 2],
    common: CommonRounds,
    block: usize,
    [levels, fitted]: [usize; 2],
) -> Option<f64> {
    let [one, other] = pair;
    let whole = ratio(block, 1);
    let (count, squares, filled) = if block == 1 {
        (common.count, common.squares, whole)
    } else if common.count == one.rounds.len() {
        let (blocks, squares) = squared_differences(one.sums(block), other.sums(block), 0.0);
        (blocks * block, squares, whole)
    } else {
        squared_sums(pair, common.mean, block)
    };
    let mean = squares * ratio(1, count.max(1)) / whole;
    let lost = filled * ratio(levels, 1) + ratio(fitted, 1);
    (count > 0).then_some(mean * fit_correction(common.count, lost))
}

/// For blocks in which rounds may be missing: the number of differences, the sum of the squared block sums, and the number of
/// differences in a block, averaged over all differences.
fn squared_sums(pair: [&ScoreResiduals; 2], mean: f64, block: usize) -> (usize, f64, f64) {
    let [ones, others] = pair.map(|residuals| residuals.rounds.chunks_exact(block));
    let mut count = 0;
    let mut squares = 0.0;
    let mut filled = 0;
    for (one, other) in ones.zip(others) {
        let known = common_rounds(one, other);
        let sum = sum_of_differences(one, other) - mean * ratio(known, 1);
        count += known;
        squares += sum * sum;
        filled += known * known;
    }
    (count, squares, ratio(filled, count.max(1)))
}

/// The number of differences, and the sum of their squares about a mean.
fn squared_differences(one: &[f64], other: &[f64], mean: f64) -> (usize, f64) {
    let count = common_rounds(one, other);
    let squares = sum_of_squares(one, other);
    let moved = mean * (2.0 * sum_of_differences(one, other) - mean * ratio(count, 1));
    (count, (squares - moved).max(0.0))
}

fn sum_of_differences(one: &[f64], other: &[f64]) -> f64 {
    let differences = one.iter().zip(other).map(|(one, other)| one - other);
    differences.filter(|difference| !difference.is_nan()).sum()
}

fn common_rounds(one: &[f64], other: &[f64]) -> usize {
    one.iter()
        .zip(other)
        .filter(|(one, other)| !(*one - *other).is_nan())
        .count()
}

/// The sum of the squared differences. Several independent sums and the absence of branches make this fast. A refresh
/// calls it for most pairs of models.
fn sum_of_squares(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let (ones, one) = one.as_chunks();
    let (others, other) = other.as_chunks();
    let rest = (&padded(one), &padded(other));
    ones.iter().zip(others).chain([rest]).for_each(
        |(one, other): (&[f64; LANES], &[f64; LANES])| {
            for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
                // The maximum of zero and NaN is zero.
                *sum += ((one - other) * (one - other)).max(0.0);
            }
        },
    );
    sums.iter().sum()
}

fn padded(rest: &[f64]) -> [f64; LANES] {
    let mut rest = rest.iter();
    [(); LANES].map(|()| rest.next().copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The residuals of a fixed series in which every `number`-th round is missing.
    fn without_every(number: u64) -> ScoreResiduals {
        let month = Hour::numbered(method::NOISE_HOURS).last(method::NOISE_HOURS);
        let rounds: Vec<(Hour, f64)> = month
            .hours()
            .filter(|hour| !hour.number().is_multiple_of(number))
            .map(|hour| (hour, if hour.number() % 11 < 3 { 9.0 } else { 1.0 }))
            .collect();
        let mean = rounds.iter().map(|(_, value)| value).sum::<f64>() * ratio(1, rounds.len());
        let residuals = rounds.iter().map(|(hour, value)| (*hour, value - mean));
        ScoreResiduals::of(month, RoundLength::HOUR, residuals, 1, 0)
    }

    #[test]
    fn shared_noise_cancels_although_rounds_are_missing() {
        let [one, other] = [5, 7].map(without_every);
        let squares = one.squares_of_differences(&other);
        let noise = PairedNoise::of(&one, &other, squares).unwrap();
        let end = Hour::numbered(method::NOISE_HOURS);
        for rounds in [1, 24, 168] {
            let variance = noise.of_mean_before(end, rounds).variance;
            assert!(variance < 1e-9, "{rounds}: {variance}");
        }
    }
}
