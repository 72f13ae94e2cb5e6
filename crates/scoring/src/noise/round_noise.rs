//! The noise of a series of rounds: the variance of the mean of consecutive rounds about the level of the series.
//!
//! It is measured: means of as many rounds are compared with means of later rounds, over the whole history. Half of
//! the mean squared difference is the variance of a mean. This includes the effect of a run on all its trials, the
//! correlation of neighbouring rounds, and cycles. A change of level affects few of the differences, and these are
//! limited. A history has few independent blocks of a day, so the variance is at least that of an autoregression
//! fitted to shorter blocks.

use std::cell::OnceCell;

use super::super::method;
use super::super::statistics::{Spread, median_of_amounts};

/// A normal variable's mean square, if it is limited to 3 standard deviations.
const LIMITED_SQUARE: f64 = 0.994_977;
/// The median absolute value of a normal variable with unit variance.
const NORMAL_MEDIAN: f64 = 0.674_489_750_196_081_7;

/// The noise of a series.
#[derive(Clone, Debug)]
pub(in super::super) struct RoundNoise {
    /// Sums of the first rounds, beginning with none.
    sums: Vec<f64>,
    /// Whether marks are 0 or 1 only.
    is_binary: bool,
    /// The variances of the means of blocks of 1, 2, … rounds, computed on first use.
    blocks: [OnceCell<f64>; method::NOISE_BLOCK],
    /// The mean square of the differences of single rounds at the usual distance.
    single_square: f64,
    /// The variance of a round.
    single: f64,
    /// The correlation of neighbours.
    correlation: f64,
    /// Degrees of freedom.
    df: f64,
}

impl RoundNoise {
    /// The noise of these rounds, oldest first; `None` if they are too few.
    pub(in super::super) fn of(rounds: impl Iterator<Item = f64>, is_binary: bool) -> Option<Self> {
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
        let blocks = [const { OnceCell::new() }; method::NOISE_BLOCK];
        let (single_square, single, df) = (0.0, 0.0, 0.0);
        let mut noise = Self { sums, is_binary, blocks, single_square, single, correlation: 0.0, df };
        noise.single_square = mean_square(&noise.differences(1, noise.gap(1)));
        noise.single = noise.block_variance(1);
        let share = if noise.single > 0.0 { noise.block_variance(short) / noise.single } else { 0.0 };
        noise.correlation = correlation(short, share);
        noise.df = (method::NOISE_FREEDOM * ratio(known, short)).min(method::NOISE_FREEDOM_MOST);
        Some(noise)
    }

    /// The variance of the mean of that many consecutive rounds, with its degrees of freedom: as measured, and at
    /// least that of an autoregression.
    pub(in super::super) fn of_mean(&self, rounds: usize) -> Spread {
        let known = self.sums.len() - 1;
        let rounds = rounds.max(1);
        let block = rounds.min(method::NOISE_BLOCK).min(known / method::NOISE_LEAST).max(1);
        let measured = self.block_variance(block) * ratio(block, rounds);
        let modelled = self.single * share_of_mean(self.correlation, rounds);
        Spread { variance: measured.max(modelled), df: self.df }
    }

    /// The variance of a round in the long run: that of the mean of a day, as if its rounds were independent.
    pub(in super::super) fn long_run(&self) -> f64 {
        self.of_mean(method::NOISE_BLOCK).variance * ratio(method::NOISE_BLOCK, 1)
    }

    /// The variance of the mean of a block.
    fn block_variance(&self, block: usize) -> f64 {
        let known = self.blocks.get(block - 1);
        known.map_or_else(|| self.measure(block), |known| *known.get_or_init(|| self.measure(block)))
    }

    /// The distance of compared blocks in rounds.
    fn gap(&self, block: usize) -> usize {
        (2 * block).max(method::NOISE_GAP.min((self.sums.len() - 1) / 3))
    }

    fn measure(&self, block: usize) -> f64 {
        let gap = self.gap(block);
        let mut differences = self.differences(block, gap);
        if self.is_binary {
            return mean_square(&differences) / 2.0;
        }
        let is_usual = gap == self.gap(1);
        let single = if is_usual { self.single_square } else { mean_square(&self.differences(1, gap)) };
        let independent = (single * ratio(1, block)).sqrt();
        let limit = method::NOISE_LIMIT * typical_or(independent, &differences);
        for difference in &mut differences {
            *difference = difference.min(limit);
        }
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

/// The standard deviation of differences by their median, at least `least`.
fn typical_or(least: f64, differences: &[f64]) -> f64 {
    let within = differences.iter().filter(|difference| **difference <= NORMAL_MEDIAN * least).count();
    // Counting is cheaper than selecting, and decides about half of the cases.
    if 2 * within > differences.len() {
        return least;
    }
    (median_of_amounts(differences).unwrap_or_default() / NORMAL_MEDIAN).max(least)
}

/// The variance of the mean of that many neighbours as a share of the variance of one, in a first-order autoregression.
pub(in super::super) fn share_of_mean(correlation: f64, rounds: usize) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::super::super::lab::simulated_noise::{NoiseGenerator, NoiseKind};
    use super::*;

    fn noise(kind: NoiseKind, seed: u64, rounds: usize) -> Vec<f64> {
        let mut noise = NoiseGenerator::new(kind, 1.0, seed);
        (0..rounds).map(|_| noise.draw()).collect()
    }

    /// The mean over many months of the variance of a mean.
    fn measured(kind: NoiseKind, rounds: usize) -> f64 {
        let months = (0..40).map(|seed| {
            let month = noise(kind, seed << 32, 720);
            RoundNoise::of(month.into_iter(), false).unwrap().of_mean(rounds).variance
        });
        months.sum::<f64>() / 40.0
    }

    #[test]
    fn variance_of_a_mean_includes_the_correlation_of_its_rounds() {
        for (correlation, factor) in [(0.0, 1.0), (0.5, 3.0), (0.8, 9.0)] {
            let kind = NoiseKind::Autoregressive(correlation);
            let long = measured(kind, 168) * 168.0;
            assert!((0.85..1.4).contains(&(long / factor)), "{correlation}: {long}");
            let single = measured(kind, 1);
            assert!((0.9..1.15).contains(&single), "{correlation}: {single}");
        }
    }

    #[test]
    fn the_mean_of_correlated_rounds_matches_a_manual_computation() {
        // Two rounds with a correlation of 0.5: (1 + 0.5) / 2. Three: (3 + 2 · (2 · 0.5 + 0.25)) / 9.
        for (rounds, share) in [(1, 1.0), (2, 0.75), (3, 5.5 / 9.0)] {
            assert!((share_of_mean(0.5, rounds) - share).abs() < 1e-12, "{rounds}");
            assert!(rounds == 1 || (correlation(rounds, share) - 0.5).abs() < 1e-9);
        }
        assert_eq!((correlation(6, 0.1), correlation(1, 0.5)), (0.0, 0.0));
    }

    #[test]
    fn a_change_of_level_adds_little_to_the_noise() {
        let mut month = noise(NoiseKind::White, 3, 720);
        let calm = RoundNoise::of(month.iter().copied(), false).unwrap().of_mean(24).variance;
        month.iter_mut().skip(480).for_each(|round| *round -= 5.0);
        let stepped = RoundNoise::of(month.into_iter(), false).unwrap().of_mean(24).variance;
        // A tenth of the days would otherwise add 25 times the variance of a day's mean.
        assert!(stepped < 6.0 * calm, "{stepped} {calm}");
    }

    #[test]
    fn equal_rounds_have_no_noise_and_few_rounds_have_none_known() {
        let constant = RoundNoise::of(std::iter::repeat_n(80.1, 720), false).unwrap();
        assert!(constant.of_mean(24).variance.abs() < f64::MIN_POSITIVE);
        assert!(RoundNoise::of(std::iter::repeat_n(80.1, method::NOISE_LEAST - 1), false).is_none());
    }
}
