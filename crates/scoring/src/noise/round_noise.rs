//! The noise of a series of rounds: the variance of the mean of consecutive rounds around the level of the series.
//!
//! It is measured on the deviations from the cycle and from the levels, so that neither a cycle nor a change of level
//! counts as noise. Means of consecutive rounds include the common effect of a run on all its trials, and the
//! correlation of neighbouring rounds. A history has few independent one-day blocks, so the variance is at least the variance of
//! an autoregression fitted to shorter blocks.

use std::{cell::OnceCell, ops::Range};

use crate::{method, statistics::Spread};

/// Variances below this limit are due to rounding errors of equal values.
pub(super) const NEGLIGIBLE: f64 = 1e-18;

/// The maximum number of Newton steps, which is enough for full precision, and the step size below which the iteration
/// stops.
const NEWTON_STEPS: usize = 10;
const NEWTON_LAST: f64 = 1e-9;

/// The noise of a series.
#[derive(Clone, Debug)]
pub struct RoundNoise {
    /// Prefix sums of the deviations and of their squares, starting with zero.
    sums: Vec<f64>,
    squares: Vec<f64>,
    /// Number of levels, and number of fitted effects.
    levels: usize,
    fitted: usize,
    means: MeanNoise,
}

/// The noise of round means.
#[derive(Clone, Debug)]
pub(super) struct MeanNoise {
    /// Number of rounds from which the noise is determined.
    rounds: usize,
    /// The variances of the means of blocks of 1, 2, … rounds, computed on first use; `None` if there is no such block.
    blocks: [OnceCell<Option<f64>>; method::NOISE_BLOCK],
    /// The variance of a round.
    single: f64,
    /// The correlation of neighbouring rounds.
    correlation: f64,
    /// Degrees of freedom.
    df: f64,
}

/// Prefix sums of the rounds of a series, starting with zero.
#[derive(Clone, Debug)]
pub struct LevelSums {
    /// The value of the first round. Sums are of differences from it, so that equal rounds cause no rounding errors.
    pub origin: f64,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl LevelSums {
    /// Computes the sums of these rounds.
    pub(crate) fn of(rounds: impl Iterator<Item = f64> + Clone) -> Self {
        let origin = rounds.clone().next().unwrap_or_default();
        let [sums, squares] = sums_and_squares(rounds.map(|round| round - origin));
        Self {
            origin,
            sums,
            squares,
        }
    }

    /// The mean of some rounds relative to the origin; `None` if there are none.
    pub(crate) fn mean(&self, rounds: Range<usize>) -> Option<f64> {
        let sum = self.sums.get(rounds.end)? - self.sums.get(rounds.start)?;
        (rounds.start < rounds.end).then(|| sum * ratio(1, rounds.len()))
    }

    /// The sample variance of some rounds; `None` if there are fewer than two.
    pub(crate) fn variance(&self, rounds: Range<usize>) -> Option<f64> {
        let mean = self.mean(rounds.clone()).filter(|_| rounds.len() > 1)?;
        let squares = self.squares.get(rounds.end)? - self.squares.get(rounds.start)?;
        let rest = squares * ratio(1, rounds.len()) - mean * mean;
        Some(rest.max(0.0) * ratio(rounds.len(), rounds.len() - 1))
    }

    /// The deviations of the first `known` rounds from the means of their levels. The first level starts with the first
    /// round.
    pub(crate) fn residuals(&self, known: usize, starts: impl Iterator<Item = usize>) -> Vec<f64> {
        let mut residuals = Vec::with_capacity(known);
        let mut start = 0;
        for end in starts.chain([known]) {
            let level = self.mean(start..end.min(known)).unwrap_or_default();
            let sums = self.sums.get(start..=end.min(known)).unwrap_or_default();
            residuals.extend(
                sums.iter()
                    .zip(sums.iter().skip(1))
                    .map(|(from, to)| to - from - level),
            );
            start = end.min(known);
        }
        residuals
    }
}

impl RoundNoise {
    /// The noise of these deviations from `levels` levels and `fitted` effects; `None` if there are too few deviations.
    pub(crate) fn of(deviations: &[f64], levels: usize, fitted: usize) -> Option<Self> {
        let known = deviations.len();
        let free = known
            .checked_sub(levels + fitted)
            .filter(|free| *free > 0)?;
        let [sums, squares] = sums_and_squares(deviations.iter().copied());
        let means = MeanNoise::of(known, free, |block| {
            Some(block_variance(&sums, block, block * levels + fitted))
        })?;
        Some(Self {
            sums,
            squares,
            levels,
            fitted,
            means,
        })
    }

    /// The variance of the mean of `rounds` consecutive rounds, with its degrees of freedom: the measured variance, but
    /// at least that of an autoregression.
    pub(crate) fn of_mean(&self, rounds: usize) -> Spread {
        self.means.of_mean(rounds, |block| {
            Some(block_variance(
                &self.sums,
                block,
                block * self.levels + self.fitted,
            ))
        })
    }

    /// Like [`Self::of_mean`], for the rounds before `end`. If the newest of them vary more than the rounds as a whole,
    /// they get more weight, because the noise has changed.
    pub(crate) fn of_mean_before(&self, end: usize, rounds: usize) -> Spread {
        let usual = self.of_mean(rounds);
        let count = rounds.max(method::NOISE_LATELY).min(end);
        let known = self.squares.len() - 1;
        let quotient = (self.sum_before(end) - self.sum_before(end - count)) * ratio(known, count)
            / self.sum_before(known);
        changed(usual, quotient, count)
    }

    /// The sum of the squares before `end`.
    fn sum_before(&self, end: usize) -> f64 {
        self.squares.get(end).copied().unwrap_or_default()
    }
}

impl MeanNoise {
    /// The noise of `rounds` rounds. Independent rounds would have `free` degrees of freedom. `measure` returns the variance of the mean of a block of
    /// rounds.
    pub(super) fn of(
        rounds: usize,
        free: usize,
        measure: impl Fn(usize) -> Option<f64>,
    ) -> Option<Self> {
        let blocks = [const { OnceCell::new() }; method::NOISE_BLOCK];
        let mut noise = Self {
            rounds,
            blocks,
            single: 0.0,
            correlation: 0.0,
            df: 0.0,
        };
        let short = noise.block_length(method::NOISE_SHORT_BLOCK);
        let of_blocks = noise.of_block(short, &measure)?;
        noise.single = noise.of_block(1, measure)?;
        // Deviations that are only rounding errors have no correlation.
        let share = if noise.single > NEGLIGIBLE {
            of_blocks / noise.single
        } else {
            0.0
        };
        noise.correlation = correlation(short, share);
        noise.df = freedom(free, noise.correlation);
        Some(noise)
    }

    /// The variance of the mean of `rounds` consecutive rounds: the measured variance, but at least that of an
    /// autoregression.
    pub(super) fn of_mean(&self, rounds: usize, measure: impl Fn(usize) -> Option<f64>) -> Spread {
        let rounds = rounds.max(1);
        let block = self.block_length(rounds.min(method::NOISE_BLOCK));
        let measured = self.of_block(block, measure).unwrap_or_default() * ratio(block, rounds);
        let modelled = self.single * share_of_mean(self.correlation, rounds);
        Spread {
            variance: measured.max(modelled),
            df: self.df,
        }
    }

    fn block_length(&self, longest: usize) -> usize {
        block_length(longest, self.rounds)
    }

    fn of_block(&self, block: usize, measure: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        *self.blocks.get(block - 1)?.get_or_init(|| measure(block))
    }
}

/// The variance of the mean of a block, given prefix sums of the deviations. `lost` is the number of degrees of freedom used up by fits.
fn block_variance(sums: &[f64], block: usize, lost: usize) -> f64 {
    let known = sums.len() - 1;
    let ends = sums.iter().skip(block);
    let squares: f64 = sums
        .iter()
        .zip(ends)
        .map(|(from, to)| (to - from) * (to - from))
        .sum();
    let mean = squares * ratio(1, known + 1 - block) * ratio(1, block * block);
    mean * fit_correction(known, ratio(lost, 1))
}

/// The block length for `rounds` rounds: at most `longest`, and short enough that there are several blocks.
pub(super) fn block_length(longest: usize, rounds: usize) -> usize {
    longest.min(rounds / method::NOISE_BLOCKS).max(1)
}

/// Deviations from fitted levels and effects are smaller than deviations from the true values, especially in long blocks.
pub(super) fn fit_correction(known: usize, lost: f64) -> f64 {
    let all = ratio(known, 1);
    all / (all - lost.min(ratio(known - known.div_ceil(4), 1)))
}

/// The spread of a mean if the variance of the newest `count` rounds is `quotient` times the usual variance.
pub(super) fn changed(usual: Spread, quotient: f64, count: usize) -> Spread {
    if quotient.is_nan() || quotient <= 1.0 {
        return usual;
    }
    // The variance of the logarithm of a variance is about 2 / count, or more if there are outliers.
    let excess = quotient.ln().powi(2) * ratio(count, 4);
    let weight = excess / (1.0 + excess);
    let df = usual.df + weight * (ratio(count, 1).min(usual.df) - usual.df);
    Spread {
        variance: usual.variance * quotient.powf(weight),
        df,
    }
}

/// Degrees of freedom of the noise: `free`, adjusted for the correlation of neighbouring rounds.
fn freedom(free: usize, correlation: f64) -> f64 {
    let independent = ratio(free, 1) * (1.0 - correlation) / (1.0 + correlation);
    independent.clamp(method::NOISE_FREEDOM_LEAST, method::NOISE_FREEDOM_MOST)
}

/// Prefix sums of the values and of their squares, starting with zero.
fn sums_and_squares(values: impl Iterator<Item = f64>) -> [Vec<f64>; 2] {
    let mut sum = 0.0;
    let mut square = 0.0;
    let mut all = [(); 2].map(|()| Vec::with_capacity(values.size_hint().0 + 1));
    let [sums, squares] = &mut all;
    sums.push(sum);
    squares.push(square);
    for value in values {
        sum += value;
        square += value * value;
        sums.push(sum);
        squares.push(square);
    }
    all
}

/// The variance of the mean of `rounds` neighbouring values, as a share of the variance of one value, in a first-order
/// autoregression.
pub fn share_of_mean(correlation: f64, rounds: usize) -> f64 {
    let rest = 1.0 - correlation;
    let count = ratio(rounds, 1);
    let ends = 2.0 * correlation * (1.0 - correlation.powf(count)) / (count * rest * rest);
    ((1.0 + correlation) / rest - ends) / count
}

/// The correlation of neighbouring rounds for which the variance of the mean of `block` rounds is this share of one round's variance.
/// Newton's method approaches the root of a convex function from above, starting with the root of its first three
/// terms.
fn correlation(block: usize, share: f64) -> f64 {
    let count = ratio(block, 1);
    let excess = share * count * count - count;
    if block < 2 || excess <= 0.0 {
        return 0.0;
    }
    let slope = 2.0 * (count - 1.0);
    let bend = 2.0 * (count - 2.0);
    let above = 2.0 * excess / (slope + (slope * slope + 4.0 * bend * excess).sqrt());
    let mut correlation = above.min(method::NOISE_CORRELATION_MOST);
    for _ in 0..NEWTON_STEPS {
        let mut value = 0.0;
        let mut slope = 0.0;
        for distance in (0..block).rev() {
            let pairs = if distance == 0 {
                count
            } else {
                2.0 * ratio(block - distance, 1)
            };
            slope = slope * correlation + value;
            value = value * correlation + pairs;
        }
        let step = (value / (count * count) - share) / (slope / (count * count));
        correlation = (correlation - step).clamp(0.0, method::NOISE_CORRELATION_MOST);
        if step < NEWTON_LAST {
            break;
        }
    }
    correlation
}

pub fn ratio(part: usize, whole: usize) -> f64 {
    float(part) / float(whole)
}

fn float(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
