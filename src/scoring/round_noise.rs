//! The noise of a series of rounds: how far the mean of consecutive rounds strays from the level of the series.
//!
//! Measured, not modelled: means of as many rounds are compared with such means some time before, over the whole
//! history. Half of the mean squared difference is the variance of a mean, whatever the rounds have in common: runs
//! of one model differ by more than their trials, neighbours are correlated, and weeks have cycles. A change of level
//! concerns few of the differences, and these are limited.

use super::method;
use super::statistics::{Spread, median};

/// A normal variable's mean square, if it is limited to 3 standard deviations.
const LIMITED_SQUARE: f64 = 0.994_977;
/// The median absolute value of a normal variable with unit variance.
const NORMAL_MEDIAN: f64 = 0.674_489_750_196_081_7;

/// The noise of a series.
#[derive(Clone, Debug)]
pub(super) struct RoundNoise {
    /// Sums of the first rounds, beginning with none.
    sums: Vec<f64>,
    /// Whether marks are 0 or 1 only.
    is_binary: bool,
    /// The variance of a round.
    single: f64,
    /// The correlation of neighbours.
    correlation: f64,
    /// Degrees of freedom.
    df: f64,
}

impl RoundNoise {
    /// The noise of these rounds, oldest first; `None` if they are too few.
    pub(super) fn of(rounds: impl Iterator<Item = f64>, is_binary: bool) -> Option<Self> {
        let mut sums = vec![0.0];
        let mut sum = 0.0;
        let mut first = None;
        for round in rounds {
            // About the first round, so that sums of equal rounds are exact.
            sum += round - *first.get_or_insert(round);
            sums.push(sum);
        }
        let known = sums.len() - 1;
        if known < method::NOISE_LEAST {
            return None;
        }
        let short = method::NOISE_SHORT_BLOCK.min(known / method::NOISE_LEAST).max(1);
        let mut noise = Self { sums, is_binary, single: 0.0, correlation: 0.0, df: 0.0 };
        noise.single = noise.block_variance(1);
        let share = if noise.single > 0.0 { noise.block_variance(short) / noise.single } else { 0.0 };
        noise.correlation = correlation(short, share);
        noise.df = (method::NOISE_FREEDOM * ratio(known, short)).min(method::NOISE_FREEDOM_MOST);
        Some(noise)
    }

    /// The variance of the mean of that many consecutive rounds, with its degrees of freedom: as measured, and at
    /// least that of an autoregression.
    pub(super) fn of_mean(&self, rounds: usize) -> Spread {
        let known = self.sums.len() - 1;
        let rounds = rounds.max(1);
        let block = rounds.min(method::NOISE_BLOCK).min(known / method::NOISE_LEAST).max(1);
        let measured = self.block_variance(block) * ratio(block, rounds);
        let modelled = self.single * share_of_mean(self.correlation, rounds);
        Spread { variance: measured.max(modelled), df: self.df }
    }

    /// The variance of a round in the long run: that of the mean of a day, as if its rounds were independent.
    pub(super) fn long_run(&self) -> f64 {
        self.of_mean(method::NOISE_BLOCK).variance * ratio(method::NOISE_BLOCK, 1)
    }

    /// The variance of the mean of a block.
    fn block_variance(&self, block: usize) -> f64 {
        let known = self.sums.len() - 1;
        let gap = (2 * block).max(method::NOISE_GAP.min(known / 3));
        let mut differences = self.differences(block, gap);
        if self.is_binary {
            return mean_square(&differences) / 2.0;
        }
        let single =
            if block == 1 { mean_square(&differences) } else { mean_square(&self.differences(1, gap)) };
        let independent = (single * ratio(1, block)).sqrt();
        let typical = median(differences.clone()).unwrap_or_default() / NORMAL_MEDIAN;
        let limit = method::NOISE_LIMIT * typical.max(independent);
        differences.iter_mut().for_each(|difference| *difference = difference.min(limit));
        mean_square(&differences) / LIMITED_SQUARE / 2.0
    }

    /// The absolute differences between means of blocks.
    fn differences(&self, block: usize, gap: usize) -> Vec<f64> {
        let ends = self.sums.iter().skip(block);
        let sums: Vec<f64> = self.sums.iter().zip(ends).map(|(from, to)| to - from).collect();
        let share = ratio(1, block);
        sums.iter().zip(sums.iter().skip(gap)).map(|(one, other)| (other - one).abs() * share).collect()
    }
}

/// The variance of the mean of that many neighbours as a share of the variance of one, in a first-order autoregression.
fn share_of_mean(correlation: f64, rounds: usize) -> f64 {
    let (rest, count) = (1.0 - correlation, ratio(rounds, 1));
    let ends = 2.0 * correlation * (1.0 - correlation.powf(count)) / (count * rest * rest);
    ((1.0 + correlation) / rest - ends) / count
}

/// The correlation of neighbours for which the mean of `block` rounds has this share of the variance of one.
fn correlation(block: usize, share: f64) -> f64 {
    let (mut low, mut high) = (0.0, method::NOISE_CORRELATION_MOST);
    if block < 2 || share <= share_of_mean(low, block) {
        return 0.0;
    }
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if share_of_mean(middle, block) < share { low = middle } else { high = middle }
    }
    low
}

fn mean_square(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>() * ratio(1, values.len().max(1))
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    number(part) / number(whole)
}
