//! Differences between the scores of two models over a period.
//!
//! Noise that both models share, such as that of a grader, cancels in the difference of their rounds, so the difference is known
//! better than each score. Rounds that only one of them has would bring it back.

use std::cell::OnceCell;

use scoregate_base::routes::Period;

use crate::measure::Measure;
use crate::method;
use crate::model_state::ModelState;
use crate::noise::round_noise::ratio;
use crate::noise::score_residuals::{PairedNoise, ScoreResiduals};
use crate::score_noise::{EdgeReach, UncertainScore};
use crate::statistics::{SampleSums, Spread, median};
use crate::student::{self, TailQuantiles};

/// A score that can be compared with those of other models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedScore<'a> {
    score: &'a UncertainScore,
    spread: Spread,
    /// More than any part of its bounds, in quantiles: cheaper than a difference if scores are far apart.
    most: f64,
    residuals: &'a ScoreResiduals,
    /// The deviations of the rounds of its hours; not a number for a missing round.
    rounds: &'a [f64],
    /// The number of those that it has, and their mean.
    known: usize,
    mean: f64,
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
    mean: f64,
    spread: Spread,
    edge: EdgeReach,
}

/// The variance of a round of the usual difference of a ranking; its degrees of freedom are the more, the more alike they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualNoise(Spread);

/// How sure it is that one score is above another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Separation {
    /// Beyond the bound of all comparisons.
    Sure,
    /// Within it, by so many standard errors, with so many whole degrees of freedom.
    Open { errors: f64, df: f64 },
    /// Not even beyond that of a single comparison.
    Unsure,
}

/// The rounds that two scores share.
#[derive(Clone, Copy, Debug)]
struct SharedRounds {
    count: usize,
    /// The difference in these rounds less that of the scores.
    gain: f64,
}

impl<'a> ComparedScore<'a> {
    /// The score of a model; `None` if its uncertainty is unknown.
    pub(crate) fn of(model: &'a ModelState, period: Period, measure: Measure) -> Option<Self> {
        let score = model.over(period).uncertain(measure)?;
        let spread = score.tested.spread?;
        let basis = &score.basis;
        let edge = &score.edge;
        let parts = [spread.variance, basis.least, edge.below + edge.above];
        let residuals = model.residuals(measure);
        let rounds = residuals.within(basis.range);
        let known = || rounds.iter().filter(|round| !round.is_nan());
        let count = known().count();
        Some(Self {
            score,
            spread,
            most: parts.map(f64::sqrt).iter().sum::<f64>() + basis.cycle.abs(),
            residuals,
            rounds,
            known: count,
            mean: known().sum::<f64>() * ratio(1, count.max(1)),
        })
    }

    /// Whether the model has too few rounds for a noise of its own.
    pub(super) fn has_few_rounds(&self) -> bool {
        self.residuals.are_few()
    }

    /// Whether this score is above another, beyond the bound with these quantiles, given the usual noise of a ranking.
    pub(crate) fn is_above(
        &self,
        other: &Self,
        usual: Option<UsualNoise>,
        quantiles: &TailQuantiles,
    ) -> bool {
        let noise = NoiseOfPair::default();
        self.less_with(other, self.shared(other), &noise, usual)
            .is_beyond(quantiles)
    }

    /// This score less another.
    pub(crate) fn less(&self, other: &Self) -> ScoreDifference {
        let noise = NoiseOfPair::default();
        self.less_with(other, self.shared(other), &noise, None)
    }

    /// How sure it is that this score is above another, by the quantiles of all comparisons and of a single one. Most scores are so
    /// far apart that it is sure whatever the correlation of their noise is, or so close that it is not even with the least noise:
    /// then the noise of the pair is not computed.
    pub(super) fn separation(
        &self,
        other: &Self,
        [all, single]: [&TailQuantiles; 2],
        noise: &NoiseOfPair<'a>,
        usual: Option<UsualNoise>,
    ) -> Separation {
        let spreads = [self.spread, other.spread];
        let df = self.spread.df.min(other.spread.df);
        let gap = self.score.estimate.mean - other.score.estimate.mean;
        let most = all.with(df.floor()).max(1.0) * (self.most + other.most);
        let errors: f64 = spreads.iter().map(|spread| spread.variance.sqrt()).sum();
        let opposed = Spread {
            variance: errors * errors,
            df,
        };
        if gap > most || self.difference(other, 0.0, opposed).is_beyond(all) {
            return Separation::Sure;
        }
        let shared = self.shared(other);
        if shared.is_some_and(|shared| !self.may_exceed(other, shared, single, noise, usual)) {
            return Separation::Unsure;
        }
        self.less_with(other, shared, noise, usual)
            .separation([all, single])
    }

    /// Whether it is above the other beyond the bound with the least noise that the pair may have in these rounds.
    fn may_exceed(
        &self,
        other: &Self,
        SharedRounds { count, gain }: SharedRounds,
        single: &TailQuantiles,
        noise: &NoiseOfPair<'a>,
        usual: Option<UsualNoise>,
    ) -> bool {
        let squares = self.squares(other, noise);
        let least = self.residuals.least_variance(squares) * ratio(1, count);
        let alone = self.spread.variance + other.spread.variance;
        let usual = usual.map_or(f64::INFINITY, |usual| usual.0.variance * ratio(1, count));
        let least = Spread {
            variance: least.min(alone).min(usual),
            df: 2.0 * method::NOISE_FREEDOM_MOST,
        };
        // Without a noise of the pair, the gain does not count.
        self.difference(other, gain.max(0.0), least)
            .is_beyond(single)
    }

    /// The rounds that both have; `None` without any, or if the scores are of different hours.
    fn shared(&self, other: &Self) -> Option<SharedRounds> {
        let one = &self.score.basis;
        let than = &other.score.basis;
        if (one.range, one.length) != (than.range, than.length) {
            return None;
        }
        let all = self.rounds.len();
        let shared = if self.known == all && other.known == all {
            SharedRounds {
                count: all,
                gain: 0.0,
            }
        } else {
            self.in_common(other)
        };
        let count = shared.count.min(one.rounds).min(than.rounds);
        (count > 0).then_some(SharedRounds { count, ..shared })
    }

    /// The same if rounds are missing.
    fn in_common(&self, other: &Self) -> SharedRounds {
        let both = self.rounds.iter().zip(other.rounds);
        let both = both.filter(|(one, other)| !(*one - *other).is_nan());
        let count = both.clone().count();
        // A score that has no further rounds is that of these.
        let moved = |score: &Self, sum: f64| {
            if score.score.basis.rounds > count {
                sum * ratio(1, count.max(1)) - score.mean
            } else {
                0.0
            }
        };
        let of_one = moved(self, both.clone().map(|(one, _)| one).sum());
        let of_other = moved(other, both.map(|(_, other)| other).sum());
        SharedRounds {
            count,
            gain: of_one - of_other,
        }
    }

    fn squares(&self, other: &Self, noise: &NoiseOfPair<'a>) -> f64 {
        *noise
            .squares
            .get_or_init(|| self.residuals.squares_of_differences(other.residuals))
    }

    /// The difference in the rounds of both, with its noise; of the scores, if the noise of the pair is unknown.
    fn less_with(
        &self,
        other: &Self,
        shared: Option<SharedRounds>,
        noise: &NoiseOfPair<'a>,
        usual: Option<UsualNoise>,
    ) -> ScoreDifference {
        let of_pair = shared.and_then(|SharedRounds { count, gain }| {
            let own = self.noise_of_pair(other, count, noise)?;
            let spread = usual.map_or(own, |usual| usual.combined(own, count));
            Some(self.difference(other, gain, spread))
        });
        of_pair.unwrap_or_else(|| {
            let alone = Spread {
                variance: self.spread.variance + other.spread.variance,
                df: self.spread.df.min(other.spread.df),
            };
            self.difference(other, 0.0, alone)
        })
    }

    /// The noise of the mean difference in so many rounds that both have; `None` if they show none.
    fn noise_of_pair(
        &self,
        other: &Self,
        rounds: usize,
        noise: &NoiseOfPair<'a>,
    ) -> Option<Spread> {
        let paired =
            || PairedNoise::of(self.residuals, other.residuals, self.squares(other, noise));
        let noise = noise.noise.get_or_init(paired).as_ref()?;
        let spread = noise.of_mean_before(self.score.basis.range.to, rounds);
        let least = self.score.basis.least.max(other.score.basis.least);
        Some(Spread {
            variance: spread.variance.max(least),
            df: spread.df,
        })
    }

    /// The difference of the scores and this gain, with this noise.
    fn difference(&self, other: &Self, gain: f64, noise: Spread) -> ScoreDifference {
        let one = self.score;
        let other = other.score;
        let least = one.basis.least.max(other.basis.least);
        // Effects of hours and weekdays that are the same for both cancel.
        let cycle = one.basis.cycle - other.basis.cycle;
        ScoreDifference {
            mean: one.estimate.mean - other.estimate.mean + gain,
            spread: Spread {
                variance: noise.variance.max(least) + cycle * cycle,
                df: noise.df,
            },
            edge: EdgeReach {
                below: one.edge.below + other.edge.above,
                above: one.edge.above + other.edge.below,
            },
        }
    }
}

impl UsualNoise {
    /// That of these pairs of scores; `None` with too few.
    pub(crate) fn of<'a>(pairs: impl Iterator<Item = [&'a ComparedScore<'a>; 2]>) -> Option<Self> {
        let noises = pairs.filter_map(|[one, other]| {
            let count = one.shared(other)?.count;
            let noise = one.noise_of_pair(other, count, &NoiseOfPair::default())?;
            Some((noise.variance * ratio(count, 1), 2.0 / noise.df))
        });
        let (variances, by_chance): (Vec<f64>, Vec<f64>) = noises.unzip();
        let logarithms: SampleSums = variances.iter().map(|variance| variance.ln()).collect();
        let by_chance: SampleSums = by_chance.into_iter().collect();
        let excess = logarithms.variance()? - by_chance.mean()?;
        Some(Self(Spread {
            variance: median(&variances)?,
            df: 2.0 / excess.max(2.0 / method::NOISE_FREEDOM_MOST),
        }))
        .filter(|_| variances.len() >= method::PEERS_LEAST)
    }

    /// The noise of a pair in so many rounds, with that of the others.
    fn combined(self, own: Spread, rounds: usize) -> Spread {
        let df = self.0.df + own.df;
        let usual = self.0.variance * ratio(1, rounds);
        Spread {
            variance: (self.0.df * usual + own.df * own.variance) / df,
            df,
        }
    }
}

impl ScoreDifference {
    /// Its bounds; it is beyond each of them with the probability of the quantiles.
    pub(crate) fn bounds(&self, quantiles: &TailQuantiles) -> (f64, f64) {
        let reach = quantiles.with(self.spread.df) * self.spread.variance.sqrt();
        self.edge.interval(self.mean, reach)
    }

    /// The probability that the first score is above the second.
    pub(crate) fn probability(&self) -> f64 {
        student::upper_tail(-self.mean / self.spread.variance.sqrt(), self.spread.df)
    }

    fn separation(&self, [all, single]: [&TailQuantiles; 2]) -> Separation {
        if self.is_beyond(all) {
            Separation::Sure
        } else if self.is_beyond(single) {
            Separation::Open {
                errors: self.errors(),
                df: self.spread.df.floor(),
            }
        } else {
            Separation::Unsure
        }
    }

    /// Whether its lower bound is above zero. Whole degrees of freedom are few, so that their quantiles are known.
    fn is_beyond(&self, quantiles: &TailQuantiles) -> bool {
        self.errors() > quantiles.with(self.spread.df.floor())
    }

    /// The standard errors that it is above zero, without the part of constant marks.
    fn errors(&self) -> f64 {
        let square = self.mean * self.mean.max(0.0) - self.edge.below;
        (square.max(0.0) / self.spread.variance).sqrt()
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
        .is_some_and(|(one, other)| one.is_above(&other, None, quantiles))
}
