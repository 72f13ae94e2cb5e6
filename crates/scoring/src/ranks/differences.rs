//! Differences between the scores of two models over a period.
//!
//! Noise that both models share, such as that of a grader, cancels in their difference, so the difference is known better
//! than each score.

use std::cell::OnceCell;

use scoregate_base::routes::Period;

use crate::measure::Measure;
use crate::method;
use crate::model_state::ModelState;
use crate::noise::score_residuals::{PairedNoise, ScoreResiduals};
use crate::score_noise::{EdgeReach, ScoreBasis, UncertainScore};
use crate::statistics::{Estimate, Spread};
use crate::student::{self, TailQuantiles};

/// A score that can be compared with those of other models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedScore<'a> {
    score: &'a UncertainScore,
    /// More than any part of its bounds, in quantiles: cheaper than a difference if scores are far apart.
    most: f64,
    residuals: &'a ScoreResiduals,
}

/// The noise of the difference of two models, computed on first use. It is the same over every period.
#[derive(Debug, Default)]
pub(crate) struct NoiseOfPair<'a> {
    /// The sum of the squares of the differences.
    squares: OnceCell<f64>,
    noise: OnceCell<Option<PairedNoise<'a>>>,
}

/// The score of one model less that of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreDifference {
    estimate: Estimate,
    edge: EdgeReach,
}

impl<'a> ComparedScore<'a> {
    /// The score of a model; `None` if its uncertainty is unknown.
    pub(crate) fn of(model: &'a ModelState, period: Period, measure: Measure) -> Option<Self> {
        let score = model.over(period).uncertain(measure)?;
        let basis = &score.basis;
        let edge = &score.edge;
        let parts = [
            score.tested.spread?.variance,
            basis.least,
            edge.below + edge.above,
        ];
        let most = parts.map(f64::sqrt).iter().sum::<f64>() + basis.cycle.abs();
        Some(Self {
            score,
            most,
            residuals: model.residuals(measure),
        })
    }

    /// This score less another.
    pub(crate) fn less(&self, other: &Self) -> ScoreDifference {
        self.less_with(other, self.paired(other, &NoiseOfPair::default()))
    }

    /// Whether this score is above another, beyond the bound with these quantiles. Most scores are so far apart that it holds
    /// whatever the correlation of their noise is, or so close that it does not hold with the least noise: then the noise of the
    /// pair is not computed.
    pub(crate) fn is_far_above(
        &self,
        other: &Self,
        quantiles: &TailQuantiles,
        noise: &NoiseOfPair<'a>,
    ) -> bool {
        let Some((a, b)) = self.score.tested.spread.zip(other.score.tested.spread) else {
            return false;
        };
        let df = a.df.min(b.df);
        let most = quantiles.with(df.floor()).max(1.0) * (self.most + other.most);
        let is_with = |paired| self.less_with(other, Some(paired)).is_positive(quantiles);
        let opposed = Spread {
            variance: (a.variance.sqrt() + b.variance.sqrt()).powi(2),
            df,
        };
        if self.score.estimate.mean - other.score.estimate.mean > most || is_with(opposed) {
            return true;
        }
        let rounds = f64::from(u32::try_from(self.rounds(other)).unwrap_or(u32::MAX));
        let least = self.residuals.least_variance(self.squares(other, noise)) / rounds;
        let least = least.min(a.variance + b.variance);
        is_with(Spread {
            variance: least,
            df: method::NOISE_FREEDOM_MOST,
        }) && self
            .less_with(other, self.paired(other, noise))
            .is_positive(quantiles)
    }

    /// The rounds that both have.
    fn rounds(&self, other: &Self) -> usize {
        self.score.basis.rounds.min(other.score.basis.rounds)
    }

    fn squares(&self, other: &Self, noise: &NoiseOfPair<'a>) -> f64 {
        *noise
            .squares
            .get_or_init(|| self.residuals.squares_of_differences(other.residuals))
    }

    /// The variance of the difference of as many rounds as both have.
    fn paired(&self, other: &Self, noise: &NoiseOfPair<'a>) -> Option<Spread> {
        let paired =
            || PairedNoise::of(self.residuals, other.residuals, self.squares(other, noise));
        let noise = noise.noise.get_or_init(paired).as_ref()?;
        Some(noise.of_mean_before(self.score.basis.range.to, self.rounds(other)))
    }

    fn less_with(&self, other: &Self, paired: Option<Spread>) -> ScoreDifference {
        let one = self.score;
        let other = other.score;
        let common = common(&one.basis, &other.basis);
        let spread = one.tested.spread.zip(other.tested.spread).map(|(a, b)| {
            let alone = Spread {
                variance: a.variance + b.variance,
                df: a.df.min(b.df),
            };
            let paired = paired.filter(|_| common > 0.0).unwrap_or(alone);
            let noise = common * paired.variance + (1.0 - common) * alone.variance;
            let least = one.basis.least.max(other.basis.least);
            // Effects of hours and weekdays that are the same for both cancel.
            let cycle = one.basis.cycle - other.basis.cycle;
            Spread {
                variance: noise.max(least) + cycle * cycle,
                df: paired.df,
            }
        });
        ScoreDifference {
            estimate: Estimate {
                mean: one.estimate.mean - other.estimate.mean,
                spread,
            },
            edge: EdgeReach {
                below: one.edge.below + other.edge.above,
                above: one.edge.above + other.edge.below,
            },
        }
    }
}

impl ScoreDifference {
    /// Its bounds; it is beyond each of them with the probability of the quantiles.
    pub(crate) fn bounds(&self, quantiles: &TailQuantiles) -> Option<(f64, f64)> {
        Some(
            self.edge
                .interval(self.estimate.mean, self.estimate.reach(quantiles)?),
        )
    }

    /// Whether its lower bound is above zero. The bound rises with the degrees of freedom, so whole ones next to them, of which
    /// the quantiles are known, decide nearly always.
    fn is_positive(&self, quantiles: &TailQuantiles) -> bool {
        let Some(spread) = self.estimate.spread else {
            return false;
        };
        let is_with = |df: f64| {
            let estimate = Estimate {
                spread: Some(Spread { df, ..spread }),
                ..self.estimate
            };
            Self { estimate, ..*self }
                .bounds(quantiles)
                .is_some_and(|(lower, _)| lower > 0.0)
        };
        is_with(spread.df.floor()) || (is_with(spread.df.ceil()) && is_with(spread.df))
    }

    /// The probability that the first score is above the second.
    pub(crate) fn probability(&self) -> Option<f64> {
        let spread = self.estimate.spread?;
        Some(student::upper_tail(
            -self.estimate.mean / spread.variance.sqrt(),
            spread.df,
        ))
    }
}

/// Whether the score of one model is above that of another, beyond the bound with these quantiles.
pub(crate) fn is_above(
    one: &ModelState,
    other: &ModelState,
    period: Period,
    measure: Measure,
    quantiles: &TailQuantiles,
) -> bool {
    let [one, other] = [one, other].map(|model| ComparedScore::of(model, period, measure));
    one.zip(other)
        .is_some_and(|(one, other)| one.less(&other).is_positive(quantiles))
}

/// The least share of the rounds that both scores have.
fn common(one: &ScoreBasis, other: &ScoreBasis) -> f64 {
    if (one.range, one.length) != (other.range, other.length) {
        return 0.0;
    }
    let number = |rounds: usize| f64::from(u32::try_from(rounds).unwrap_or(u32::MAX));
    let all = number(one.length.rounds_in(one.range));
    let one = number(one.rounds);
    let other = number(other.rounds);
    ((one + other - all) / (one * other).sqrt()).max(0.0)
}
