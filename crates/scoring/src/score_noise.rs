//! The uncertainty of a model's scores, determined from the noise of its rounds in the last month.
//!
//! A score over a period is a mean of rounds, so its variance is that of a mean of the same number of rounds. A suite
//! whose marks have all been 0, or all been 1, shows no noise. Its contribution is estimated from its number of trials.

use super::{
    hour::{Hour, HourRange},
    levels::ScoreLevels,
    measure::Measure,
    method,
    noise::{
        cycle::Cycle,
        peer_noise::{ModelNoise, PARTS, PeerNoise, TypicalNoise},
        round_noise::{LevelSums, RoundNoise},
        score_residuals::ScoreResiduals,
    },
    period_scores::{PeriodScores, ScorePart, ScoreRound},
    round_length::RoundLength,
    series::ScoreSeries,
    statistics::{Estimate, Spread},
    student::{self, TailQuantiles},
};

/// The noise of every score of a model.
#[derive(Debug)]
pub struct ScoreNoise<'t> {
    /// The month from which the noise is determined.
    range: HourRange,
    length: RoundLength,
    measures: [PartNoise<'t>; 5],
    axes: [PartNoise<'t>; 7],
}

/// The noise of one score.
#[derive(Debug)]
struct PartNoise<'t> {
    /// The index of the score among all scores.
    index: usize,
    part: ScorePart<'t>,
    noise: Option<RoundNoise>,
    /// The effects of hour and weekday.
    cycle: Cycle,
    /// The first hour of each round.
    hours: Vec<Hour>,
    /// The deviations of the rounds, and the number of levels that they are relative to.
    deviations: Vec<f64>,
    levels: usize,
    /// The minimum variance of a round.
    least: f64,
    /// The suites in which every mark was 0 or 1.
    binary: Vec<BinarySuite>,
}

/// A suite in which every mark was 0 or 1.
#[derive(Clone, Copy, Debug)]
struct BinarySuite {
    /// The position of the suite in the table.
    index: usize,
    weight: f64,
    /// The share of marks that are 1.
    share: f64,
}

/// The rounds whose mean is a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreBasis {
    /// The range of hours.
    pub range: HourRange,
    /// The length of a round.
    pub length: RoundLength,
    /// Number of rounds with a score.
    pub rounds: usize,
    /// The mean effect of the hours and weekdays of the rounds.
    pub cycle: f64,
    /// The minimum variance of the mean.
    pub least: f64,
}

/// A score with its uncertainty, which is known after a comparison with its peers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UncertainScore {
    /// The index of the score among all scores.
    part: usize,
    /// The noise of the model itself.
    own: Option<Spread>,
    /// The rounds of the score.
    pub basis: ScoreBasis,
    /// The measured score. Its variance includes the effect of hours and weekdays.
    pub estimate: Estimate,
    /// The score without this effect, for tests.
    pub tested: Estimate,
    /// The half-width of the interval, without the contribution of `edge`; `None` if the variance is unknown.
    pub reach: Option<f64>,
    /// The contribution of suites with constant marks to the interval.
    pub edge: EdgeReach,
}

/// How far suites with constant marks extend an interval below and above, in squared points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EdgeReach {
    pub below: f64,
    pub above: f64,
}

impl EdgeReach {
    /// The bounds of an interval about its mean, given its half-width without the contribution of constant marks.
    pub fn interval(self, mean: f64, reach: f64) -> (f64, f64) {
        let distance = |edge: f64| (reach * reach + edge).sqrt();
        (mean - distance(self.below), mean + distance(self.above))
    }
}

impl<'t> ScoreNoise<'t> {
    /// The noise in the last month before `hour`.
    pub fn of(series: &'t ScoreSeries, hour: Hour, levels: &ScoreLevels) -> Self {
        let range = hour.last(method::NOISE_HOURS);
        let month = series.over(range);
        let table = series.table();
        let length = series.round_length();
        let measures = Measure::ALL.map(|measure| ScorePart::measure(table, measure));
        let axes: [_; 7] = std::array::from_fn(|index| ScorePart::axis(table, index));
        let mut values = (0..).zip(series.part_values(range, &[&measures[..], &axes[..]].concat()));
        let mut noise = |part| {
            let (index, rounds) = values.next().unwrap_or_default();
            PartNoise {
                index,
                ..PartNoise::of(part, &rounds, &month, levels, length)
            }
        };
        Self {
            range,
            length,
            measures: measures.map(&mut noise),
            axes: axes.map(noise),
        }
    }

    /// The score of a measure over a range with these sums.
    pub fn measured(
        &self,
        measure: Measure,
        sums: &PeriodScores,
        range: HourRange,
    ) -> Option<UncertainScore> {
        measure.of(&self.measures).score(self.length, sums, range)
    }

    /// The axis scores over a range with these sums.
    pub fn axes(&self, sums: &PeriodScores, range: HourRange) -> [Option<UncertainScore>; 7] {
        self.axes
            .each_ref()
            .map(|axis| axis.score(self.length, sums, range))
    }

    /// The usual noise of this model's scores, from which the noise of its peers is estimated.
    pub fn typical(&self) -> ModelNoise {
        let mut parts = [None; PARTS];
        for (typical, part) in parts.iter_mut().zip(self.measures.iter().chain(&self.axes)) {
            *typical = part.typical();
        }
        ModelNoise {
            length: self.length,
            parts,
        }
    }

    /// The long-run variance of a round on each axis.
    pub fn of_axis_rounds(&self) -> [Option<f64>; 7] {
        self.axes
            .each_ref()
            .map(|axis| Some(axis.typical()?.long_run))
    }

    /// The deviations of the rounds of each measure.
    pub fn residuals(&self) -> [ScoreResiduals; 5] {
        self.measures.each_ref().map(|part| {
            let rounds = part
                .hours
                .iter()
                .copied()
                .zip(part.deviations.iter().copied());
            let fitted = part.cycle.fitted;
            ScoreResiduals::of(self.range, self.length, rounds, part.levels, fitted)
        })
    }
}

impl<'t> PartNoise<'t> {
    /// Determines the noise of one score.
    fn of(
        part: ScorePart<'t>,
        rounds: &[ScoreRound],
        month: &PeriodScores,
        levels: &ScoreLevels,
        length: RoundLength,
    ) -> Self {
        let weights = part.weights.iter().filter(|weight| **weight > 0.0);
        let cycle = Cycle::fit(rounds, length, levels.shape);
        let sums = LevelSums::of(
            rounds
                .iter()
                .map(|round| round.score - cycle.at(round.hour)),
        );
        let began = levels.changes.iter().map(|change| change.began);
        let places = began.map(|began| rounds.partition_point(|round| round.hour < began));
        let mut starts: Vec<usize> = places
            .filter(|place| (1..rounds.len()).contains(place))
            .collect();
        starts.dedup();
        let deviations = sums.residuals(rounds.len(), starts.iter().copied());
        Self {
            index: 0,
            part,
            noise: RoundNoise::of(&deviations, starts.len() + 1, cycle.fitted),
            cycle,
            hours: rounds.iter().map(|round| round.hour).collect(),
            deviations,
            levels: starts.len() + 1,
            binary: binary_suites(part, month),
            least: weights
                .map(|weight| (weight * method::RESOLUTION).powi(2))
                .sum(),
        }
    }

    fn typical(&self) -> Option<TypicalNoise> {
        let noise = self
            .noise
            .as_ref()
            .filter(|_| self.hours.len() >= method::NOISE_LEAST)?;
        Some(TypicalNoise::of(noise, self.least))
    }

    fn score(
        &self,
        length: RoundLength,
        sums: &PeriodScores,
        range: HourRange,
    ) -> Option<UncertainScore> {
        let mean = sums.mean(self.part)?;
        let rounds = sums.rounds(self.part);
        let (edge, marked) = self.marks(sums);
        let least = (self.least / f64::from(rounds)).max(marked);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
        let end = self.hours.partition_point(|hour| *hour < range.to);
        let own = self
            .noise
            .as_ref()
            .map(|noise| noise.of_mean_before(end, rounds));
        let basis = ScoreBasis {
            range,
            length,
            rounds,
            cycle: self.cycle.mean(range),
            least,
        };
        let [estimate, tested] =
            [mean, mean - basis.cycle].map(|mean| Estimate { mean, spread: None });
        Some(UncertainScore {
            part: self.index,
            own,
            basis,
            estimate,
            tested,
            reach: None,
            edge,
        })
    }

    /// The contribution to the interval from suites whose marks are constant, and the minimum variance due to suites with other
    /// 0/1 marks.
    fn marks(&self, sums: &PeriodScores) -> (EdgeReach, f64) {
        let mut edge = EdgeReach::default();
        let mut marked = 0.0;
        for suite in &self.binary {
            let Some(count) = sums.counts().get(suite.index) else {
                continue;
            };
            let points = 100.0 * suite.weight;
            let trials = count.trials_in_score();
            let reach = (points * (1.0 - least_share(trials))).powi(2);
            if suite.share >= 1.0 {
                edge.below += reach;
            } else if suite.share <= 0.0 {
                edge.above += reach;
            } else {
                marked += points * points * variance_of_share(count.perfect, trials, suite.share);
            }
        }
        (edge, marked)
    }
}

/// The suites of a score in which every mark was 0 or 1.
fn binary_suites(part: ScorePart<'_>, month: &PeriodScores) -> Vec<BinarySuite> {
    let suites = month.counts().iter().zip(part.weights).enumerate();
    suites
        .filter(|(_, (count, weight))| **weight > 0.0 && count.has_binary_marks())
        .map(|(index, (count, weight))| BinarySuite {
            index,
            weight: *weight,
            share: f64::from(count.perfect) / f64::from(count.trials_in_score()),
        })
        .collect()
}

impl UncertainScore {
    /// Determines the uncertainty by comparison with the peers. It stays unknown if neither the peers nor the model itself has a
    /// noise estimate.
    pub fn compare_with(&mut self, peers: &PeerNoise, quantiles: &TailQuantiles) {
        let ScoreBasis {
            length,
            rounds,
            cycle,
            least,
            ..
        } = self.basis;
        let usual = peers.of(length, self.part);
        let spread = usual
            .map(|usual| usual.combined(self.own, rounds, least))
            .or(self.own);
        let spread = spread.map(|spread| Spread {
            variance: spread.variance.max(least),
            ..spread
        });
        self.tested.spread = spread;
        // The interval is for the level. The score differs from it by the effect of its hours and weekdays.
        self.estimate.spread = spread.map(|spread| Spread {
            variance: spread.variance + cycle * cycle,
            ..spread
        });
        self.reach = self.estimate.reach(quantiles);
    }
}

/// The variance of a share of trials, after one trial with the usual share is added. The additional trial is necessary because a
/// month of runs says little about a kind of failure that occurs about once a month.
fn variance_of_share(successes: u32, trials: u32, usual: f64) -> f64 {
    let trials = f64::from(trials) + 1.0;
    let share = (f64::from(successes) + usual) / trials;
    share * (1.0 - share) / trials
}

/// The lower Jeffreys bound of a share if all trials succeeded: a quantile of a beta distribution whose second parameter is one
/// half. It can be computed from a quantile of Student's t.
fn least_share(trials: u32) -> f64 {
    let df = 2.0 * f64::from(trials) + 1.0;
    let t = student::quantile(method::INTERVAL_TAIL / 2.0, df);
    df / (df + t * t)
}
