//! The deviations of the rounds of a score from its levels and cycle, in order of time. The deviations of two models
//! show the noise of the difference between their scores, in which shared noise cancels out.

use std::sync::OnceLock;

use super::round_noise::{MeanNoise, NEGLIGIBLE, block_length, changed, fit_correction, ratio};
use crate::hour::{Hour, HourRange};
use crate::method;
use crate::round_length::RoundLength;
use crate::statistics::Spread;

/// Number of sums of squares that are computed in parallel.
const LANES: usize = 4;

/// The deviations over a month.
#[derive(Clone, Debug)]
pub(crate) struct ScoreResiduals {
    length: RoundLength,
    /// The first hour of the first round.
    first: Hour,
    /// The deviations in order of time; NaN for a missing round.
    rounds: Vec<f64>,
    /// The sums of blocks of 1, 2, … rounds, computed on first use; NaN if a round is missing.
    blocks: [OnceLock<Vec<f64>>; method::NOISE_BLOCK],
    /// Number of levels, and number of fitted effects.
    levels: usize,
    fitted: usize,
}

/// The noise of the difference between two scores.
#[derive(Clone, Debug)]
pub(crate) struct PairedNoise<'r> {
    pair: [&'r ScoreResiduals; 2],
    /// The number of rounds that both scores have, and the sum of the squared differences.
    common: (usize, f64),
    /// Number of levels, and number of fitted effects.
    levels: usize,
    fitted: usize,
    means: MeanNoise,
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
            blocks,
            levels,
            fitted,
        };
        for (hour, deviation) in rounds {
            let place = residuals.place(hour);
            residuals
                .rounds
                .get_mut(place)
                .into_iter()
                .for_each(|round| *round = deviation);
        }
        residuals
    }

    /// The ratio between the variance of the mean of these scores and the variance for independent scores. It is more
    /// than one if they share noise.
    pub(crate) fn shared(all: &[&Self]) -> f64 {
        let quotient = |longest: usize| {
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
        };
        quotient(1)
            .max(quotient(method::NOISE_SHORT_BLOCK))
            .max(1.0)
    }

    /// The sum of the squared differences from `other`.
    pub(crate) fn squares_of_differences(&self, other: &Self) -> f64 {
        sum_of_squares(&self.rounds, &other.rounds)
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
        let known = self.rounds.iter().filter(|round| !round.is_nan());
        known.count() < method::NOISE_LEAST
    }

    fn sums(&self, block: usize) -> &[f64] {
        let sums = || {
            self.rounds
                .chunks_exact(block)
                .map(|rounds| rounds.iter().sum())
                .collect()
        };
        self.blocks
            .get(block - 1)
            .map_or(&[], |known| known.get_or_init(sums))
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
        let common = (common_rounds(&one.rounds, &other.rounds), squares);
        let levels = one.levels.max(other.levels);
        let fitted = one.fitted.max(other.fitted);
        let free = common
            .0
            .checked_sub(levels + fitted)
            .filter(|free| *free > 0 && common.0 >= method::NOISE_LEAST)?;
        let measure = |block| block_variance(pair, common, block, block * levels + fitted);
        let means = MeanNoise::of(one.rounds.len(), free, measure)?;
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
        let measure = |block| {
            block_variance(
                self.pair,
                self.common,
                block,
                block * self.levels + self.fitted,
            )
        };
        let usual = self.means.of_mean(rounds, measure);
        let [one, other] = self.pair.map(|residuals| {
            let end = residuals.place(end).min(residuals.rounds.len());
            let from = end - rounds.max(method::NOISE_LATELY).min(end);
            residuals.rounds.get(from..end).unwrap_or_default()
        });
        let (count, squares) = squared_differences(one, other);
        let (rounds, of_all) = self.common;
        changed(usual, squares * ratio(rounds, count) / of_all, count)
    }
}

/// The variance of the mean of a block of differences; `None` if there is no block. Fits have used up `lost` values.
fn block_variance(
    pair: [&ScoreResiduals; 2],
    common: (usize, f64),
    block: usize,
    lost: usize,
) -> Option<f64> {
    let [one, other] = pair;
    let (count, squares) = if block == 1 {
        common
    } else if common.0 == one.rounds.len() {
        let (blocks, squares) = squared_differences(one.sums(block), other.sums(block));
        (blocks * block, squares)
    } else {
        squared_sums(pair, block)
    };
    let mean = squares * ratio(1, count.max(1)) * ratio(1, block);
    (count > 0).then_some(mean * fit_correction(common.0, lost))
}

/// The number of differences in blocks, and the sum of the squared block sums. Rounds may be missing in a block.
fn squared_sums(pair: [&ScoreResiduals; 2], block: usize) -> (usize, f64) {
    let [ones, others] = pair.map(|residuals| residuals.rounds.chunks_exact(block));
    let mut count = 0;
    let mut squares = 0.0;
    for (one, other) in ones.zip(others) {
        let mut sum = 0.0;
        for (one, other) in one.iter().zip(other) {
            let difference = one - other;
            if !difference.is_nan() {
                count += 1;
                sum += difference;
            }
        }
        squares += sum * sum;
    }
    (count, squares)
}

/// The number of differences, and the sum of their squares.
fn squared_differences(one: &[f64], other: &[f64]) -> (usize, f64) {
    (common_rounds(one, other), sum_of_squares(one, other))
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
    let padded = |rest: &[f64]| {
        let mut rest = rest.iter();
        [(); LANES].map(|()| rest.next().copied().unwrap_or(f64::NAN))
    };
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
