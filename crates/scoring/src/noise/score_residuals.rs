//! The deviations of the rounds of a score from its levels and cycle, by time. Those of two models show the noise of the
//! difference of their scores, in which noise that both share cancels.

use super::super::hour::{Hour, HourRange};
use super::super::method;
use super::super::statistics::Spread;
use super::round_length::RoundLength;
use super::round_noise::{
    NEGLIGIBLE, block_length, changed, correlation, fit_correction, freedom, ratio, share_of_mean,
};

/// The deviations of a month.
#[derive(Clone, Debug)]
pub(in super::super) struct ScoreResiduals {
    length: RoundLength,
    /// The first round.
    first: Hour,
    /// By time; not a number for a missing round.
    rounds: Vec<f64>,
    /// Number of levels and of fitted effects.
    levels: usize,
    fitted: usize,
}

/// The noise of the difference of two scores.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PairedNoise<'r> {
    pair: [&'r ScoreResiduals; 2],
    /// The number of rounds of both, and the sum of the squares of their differences.
    common: usize,
    squares: f64,
    /// Number of levels and of fitted effects.
    levels: usize,
    fitted: usize,
    /// The variance of the difference in a round, and its correlation with the next.
    single: f64,
    correlation: f64,
    df: f64,
}

impl ScoreResiduals {
    /// The deviations of the rounds that begin at these hours, from so many levels and fitted effects.
    pub(super) fn of(
        month: HourRange,
        length: RoundLength,
        rounds: impl Iterator<Item = (Hour, f64)>,
        (levels, fitted): (usize, usize),
    ) -> Self {
        let all = length.rounds_in(month);
        let (first, none) = (length.round_of(month.from).from, vec![f64::NAN; all]);
        let mut residuals = Self { length, first, rounds: none, levels, fitted };
        for (hour, deviation) in rounds {
            let place = residuals.place(hour);
            residuals.rounds.get_mut(place).into_iter().for_each(|round| *round = deviation);
        }
        residuals
    }

    /// The variance of the mean of these scores as a multiple of that of independent ones: more than one if they share noise.
    pub(in super::super) fn shared(all: &[&Self]) -> f64 {
        let quotient = |blocks: fn(&Self) -> usize| {
            let (mut sums, mut squares) = (Vec::new(), 0.0);
            for residuals in all {
                let blocks = residuals.rounds.chunks(blocks(residuals));
                sums.resize(blocks.len(), 0.0);
                for (sum, block) in sums.iter_mut().zip(blocks) {
                    let own: f64 = block.iter().filter(|round| !round.is_nan()).sum();
                    *sum += own;
                    squares += own * own;
                }
            }
            let shared: f64 = sums.iter().map(|sum| sum * sum).sum();
            if squares > NEGLIGIBLE { shared / squares } else { 1.0 }
        };
        quotient(|_| 1).max(quotient(Self::block)).max(1.0)
    }

    /// Rounds of a block.
    fn block(&self) -> usize {
        block_length(method::NOISE_SHORT_BLOCK, self.rounds.len())
    }

    fn place(&self, hour: Hour) -> usize {
        let rounds = hour.number().saturating_sub(self.first.number()).div_ceil(self.length.hours());
        usize::try_from(rounds).unwrap_or(usize::MAX)
    }
}

impl<'r> PairedNoise<'r> {
    /// The noise; `None` with too few rounds in common.
    pub(in super::super) fn of(one: &'r ScoreResiduals, other: &'r ScoreResiduals) -> Option<Self> {
        if one.length != other.length {
            return None;
        }
        let pair = [one, other];
        let (common, squares) = squares(pair, 1);
        let (levels, fitted) = (one.levels.max(other.levels), one.fitted.max(other.fitted));
        let free =
            common.checked_sub(levels + fitted).filter(|free| *free > 0 && common >= method::NOISE_LEAST)?;
        let mut noise =
            Self { pair, common, squares, levels, fitted, single: 0.0, correlation: 0.0, df: 0.0 };
        noise.single = noise.measured(1)?;
        let block = one.block();
        let of_blocks = noise.measured(block)?;
        let share = if noise.single > NEGLIGIBLE { of_blocks / noise.single } else { 0.0 };
        noise.correlation = correlation(block, share);
        noise.df = freedom(free, noise.correlation);
        Some(noise)
    }

    /// The variance of the mean of that many consecutive differences before an hour, as of the rounds of one model.
    pub(in super::super) fn of_mean_before(&self, end: Hour, rounds: usize) -> Spread {
        let [residuals, _] = self.pair;
        let rounds = rounds.max(1);
        let block = block_length(rounds.min(method::NOISE_BLOCK), residuals.rounds.len());
        let measured = self.measured(block).unwrap_or_default() * ratio(block, rounds);
        let modelled = self.single * share_of_mean(self.correlation, rounds);
        let usual = Spread { variance: measured.max(modelled), df: self.df };
        let [one, other] = self.pair.map(|residuals| {
            let end = residuals.place(end).min(residuals.rounds.len());
            let from = end - rounds.max(method::NOISE_LATELY).min(end);
            residuals.rounds.get(from..end).unwrap_or_default()
        });
        let differences = one.iter().zip(other).map(|(one, other)| one - other);
        let (mut count, mut squares) = (0, 0.0);
        for difference in differences.filter(|difference| !difference.is_nan()) {
            count += 1;
            squares += difference * difference;
        }
        changed(usual, squares * ratio(self.common, count) / self.squares, count)
    }

    /// The variance of the mean of a block; `None` if no block is complete.
    fn measured(&self, block: usize) -> Option<f64> {
        let (count, squares) =
            if block == 1 { (self.common, self.squares) } else { squares(self.pair, block) };
        let correction = fit_correction(self.common, block * self.levels + self.fitted);
        let mean = squares * ratio(1, count.max(1)) * ratio(1, block * block);
        (count > 0).then_some(mean * correction)
    }
}

/// The number of blocks in which both scores have every round, and the sum of the squares of the sums of their differences.
fn squares([one, other]: [&ScoreResiduals; 2], block: usize) -> (usize, f64) {
    let (mut blocks, mut squares) = (0, 0.0);
    for (one, other) in one.rounds.chunks_exact(block).zip(other.rounds.chunks_exact(block)) {
        let sum: f64 = one.iter().zip(other).map(|(one, other)| one - other).sum();
        if !sum.is_nan() {
            blocks += 1;
            squares += sum * sum;
        }
    }
    (blocks, squares)
}
