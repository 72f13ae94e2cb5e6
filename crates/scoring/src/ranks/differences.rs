//! Differences between the scores of two models over a period.
//!
//! Noise that both models share, such as a grader's, cancels out in the difference of their rounds, so the difference
//! is known more precisely than each score. Only rounds that both models have are compared. Other rounds would
//! reintroduce the shared noise.

use std::cell::OnceCell;

use scoregate_base::routes::Period;

use crate::{
    measure::Measure,
    method,
    model_state::ModelState,
    noise::{
        round_noise::ratio,
        score_residuals::{PairedNoise, ScoreResiduals},
    },
    score_noise::{EdgeReach, UncertainScore},
    statistics::{SampleSums, Spread, median},
    student::{self, TailQuantiles},
};

/// A score that can be compared with scores of other models.
#[derive(Clone, Copy, Debug)]
pub struct ComparedScore<'a> {
    score: &'a UncertainScore,
    spread: Spread,
    /// An upper limit for the bounds, in units of a quantile. If scores are far apart, comparing with this limit is cheaper than
    /// computing the difference.
    most: f64,
    residuals: &'a ScoreResiduals,
    /// The deviations of the rounds in the range of the score; NaN for a missing round.
    rounds: &'a [f64],
    /// The number of existing rounds, and the mean of their deviations.
    known: usize,
    mean: f64,
}

/// The noise of the difference between two models, computed on first use. It is the same for every period.
#[derive(Debug, Default)]
pub struct NoiseOfPair<'a> {
    /// The sum of the squared differences.
    squares: OnceCell<f64>,
    noise: OnceCell<Option<PairedNoise<'a>>>,
}

/// The score of one model minus the score of another.
#[derive(Clone, Copy, Debug)]
pub struct ScoreDifference {
    mean: f64,
    spread: Spread,
    edge: EdgeReach,
}

/// The usual variance per round of a difference between two scores in a ranking. The more similar the variances of the pairs are,
/// the more degrees of freedom this estimate has.
#[derive(Clone, Copy, Debug)]
pub struct UsualNoise(Spread);

/// How certain it is that one score is above another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Separation {
    /// The difference exceeds the bound for all comparisons.
    Sure,
    /// The difference exceeds only the bound for a single comparison. `errors` is the difference in standard errors, and `df` is a whole number of degrees of freedom.
    Open { errors: f64, df: f64 },
    /// The difference does not even exceed the bound for a single comparison.
    Unsure,
}

/// The rounds that two scores share.
#[derive(Clone, Copy, Debug)]
struct SharedRounds {
    count: usize,
    /// The difference in these rounds minus the difference between the scores.
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

    /// Whether the model has too few rounds to determine its noise.
    pub(super) fn has_few_rounds(&self) -> bool {
        self.residuals.are_few()
    }

    /// Whether this score exceeds another by more than the bound for these quantiles, given the usual noise of a ranking.
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

    /// How certain it is that this score is above another, given the quantiles for all comparisons and for a single
    /// one. Most scores are so far apart that the order is certain for any correlation of their noise, or so close that
    /// it is uncertain even with the lowest noise. Then the noise of the pair is not computed.
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

    /// Whether this score would exceed the other by more than the bound if the pair had the lowest possible noise in these rounds.
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
        // A negative gain is not used here, because the gain is ignored if the noise of the pair is unknown.
        self.difference(other, gain.max(0.0), least)
            .is_beyond(single)
    }

    /// The rounds that both scores have; `None` if there are none or the scores cover different hours.
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

    /// The common rounds if either score lacks some rounds.
    fn in_common(&self, other: &Self) -> SharedRounds {
        let both = self.rounds.iter().zip(other.rounds);
        let both = both.filter(|(one, other)| !(*one - *other).is_nan());
        let count = both.clone().count();
        let of_one = self.change_to_common(both.clone().map(|(one, _)| one).sum(), count);
        let of_other = other.change_to_common(both.map(|(_, other)| other).sum(), count);
        SharedRounds {
            count,
            gain: of_one - of_other,
        }
    }

    /// The difference of the score of `count` common rounds with this sum from the score.
    fn change_to_common(&self, sum: f64, count: usize) -> f64 {
        // If all rounds of the score are common rounds, the score does not change.
        if self.score.basis.rounds > count {
            sum * ratio(1, count.max(1)) - self.mean
        } else {
            0.0
        }
    }

    fn squares(&self, other: &Self, noise: &NoiseOfPair<'a>) -> f64 {
        *noise
            .squares
            .get_or_init(|| self.residuals.squares_of_differences(other.residuals))
    }

    /// The difference in the common rounds, with its noise. If the noise of the pair is unknown, the difference between
    /// the scores.
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

    /// The noise of the mean difference over this many common rounds; `None` if it cannot be determined.
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

    /// The difference between the scores, increased by `gain`, with the given noise.
    fn difference(&self, other: &Self, gain: f64, noise: Spread) -> ScoreDifference {
        let one = self.score;
        let other = other.score;
        let least = one.basis.least.max(other.basis.least);
        // Effects of hours and weekdays that are equal for both models cancel out.
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
    /// The usual noise of these pairs of scores; `None` if there are too few pairs.
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

    /// The noise of a pair in this many rounds, combined with the usual noise.
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
    /// The bounds of the difference. Each bound is exceeded with the tail probability of the quantiles.
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

    /// Whether the lower bound is above zero. The degrees of freedom are rounded down, because quantiles for a few
    /// whole numbers can be cached.
    fn is_beyond(&self, quantiles: &TailQuantiles) -> bool {
        self.errors() > quantiles.with(self.spread.df.floor())
    }

    /// The difference divided by its standard error, without the contribution of constant marks.
    fn errors(&self) -> f64 {
        let square = self.mean * self.mean.max(0.0) - self.edge.below;
        (square.max(0.0) / self.spread.variance).sqrt()
    }
}

/// Whether one model's score exceeds another's by more than the bound for these quantiles.
pub fn is_above(
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
