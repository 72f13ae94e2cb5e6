//! The uncertainty of a model's scores, from the noise of its rounds in the last month.
//!
//! A score over a period is a mean of rounds, so its variance is that of means of as many rounds. A suite whose marks
//! have all been 0 or 1, and equal, shows no noise; its contribution is that of a share of so many trials.

use std::cell::OnceCell;

use super::super::hour::Hour;
use super::super::measure::Measure;
use super::super::method;
use super::super::period_scores::{PeriodScores, ScorePart};
use super::super::series::ScoreSeries;
use super::super::statistics::{Estimate, Spread};
use super::super::student;
use super::peer_noise::{ModelNoise, PARTS, PeerNoise, TypicalNoise};
use super::round_length::RoundLength;
use super::round_noise::RoundNoise;
use super::weekly_cycle::{TimedValue, WeeklyCycle};

/// The noise of every score of a model.
#[derive(Debug)]
pub(in super::super) struct ScoreNoise {
    length: RoundLength,
    measures: [PartNoise; 5],
    axes: [PartNoise; 7],
}

/// The noise of one score.
#[derive(Debug)]
struct PartNoise {
    /// Its index among all scores.
    index: usize,
    noise: Option<RoundNoise>,
    /// The rounds of the last month, in which a weekly cycle is looked for when an interval needs it.
    rounds: Vec<TimedValue>,
    cycle: OnceCell<Option<CycleNoise>>,
    /// The least variance of a round.
    least: f64,
    /// The suites of which every mark was 0 or 1.
    binary: Vec<BinarySuite>,
}

/// A weekly cycle, and the noise of the rounds without it.
#[derive(Debug)]
struct CycleNoise {
    cycle: WeeklyCycle,
    rest: RoundNoise,
}

/// A suite of which every mark was 0 or 1.
#[derive(Clone, Copy, Debug)]
struct BinarySuite {
    /// Its position in the table.
    index: usize,
    weight: f64,
    /// The share of marks of 1.
    share: f64,
}

/// A score with the noise of its own model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct MeasuredScore {
    mean: f64,
    /// The length of its rounds, and their number.
    length: RoundLength,
    rounds: usize,
    /// Its index among all scores.
    part: usize,
    own: Option<Spread>,
    /// The variance for its interval: without a cycle that cancels in the mean.
    own_interval: Option<Spread>,
    /// The least variance.
    least: f64,
    edge: EdgeReach,
}

/// A score with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct UncertainScore {
    /// The score.
    pub estimate: Estimate,
    /// How far its interval extends on both sides, without the next part; absent if its variance is unknown.
    pub reach: Option<f64>,
    /// The part of its interval that comes from suites with constant marks.
    pub edge: EdgeReach,
}

/// How far an interval extends below and above for suites with constant marks: squares of points.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct EdgeReach {
    pub below: f64,
    pub above: f64,
}

impl ScoreNoise {
    /// The noise in the last month before an hour.
    pub(in super::super) fn of(series: &ScoreSeries, hour: Hour) -> Self {
        let range = hour.last(method::NOISE_HOURS);
        let (month, table) = (series.over(range), series.table());
        let mut position = 0..7;
        let axes = [(); 7].map(|()| ScorePart::axis(table, position.next().unwrap_or_default()));
        let measures = Measure::ALL.map(|measure| ScorePart::measure(table, measure));
        let parts: Vec<ScorePart<'_>> = measures.into_iter().chain(axes).collect();
        let mut index = 0..PARTS;
        let mut values = series.part_values(range, &parts).into_iter();
        let mut of = |part| {
            let index = index.next().unwrap_or_default();
            PartNoise::of(index, values.next().unwrap_or_default(), &month, part)
        };
        let (measures, axes) = (measures.map(&mut of), axes.map(of));
        Self { length: series.round_length(), measures, axes }
    }

    /// A score that models can be ranked by, over a range with these sums.
    pub(in super::super) fn measured(&self, measure: Measure, sums: &PeriodScores) -> Option<MeasuredScore> {
        let part = ScorePart::measure(sums.table(), measure);
        measure.of(&self.measures).score(self.length, sums, part)
    }

    /// The axes over a range with these sums.
    pub(in super::super) fn axes(&self, sums: &PeriodScores) -> [Option<MeasuredScore>; 7] {
        let mut index = 0..7;
        self.axes.each_ref().map(|noise| {
            let part = ScorePart::axis(sums.table(), index.next().unwrap_or_default());
            noise.score(self.length, sums, part)
        })
    }

    /// The noise that peers are judged by.
    pub(in super::super) fn typical(&self) -> ModelNoise {
        let mut parts = [None; PARTS];
        for (typical, part) in parts.iter_mut().zip(self.measures.iter().chain(&self.axes)) {
            *typical = part.typical();
        }
        ModelNoise { length: self.length, parts }
    }

    /// The variance of a round in the long run: of the combined score, and of each axis.
    pub(in super::super) fn of_rounds(&self) -> (Option<f64>, [Option<f64>; 7]) {
        let long_run = |part: &PartNoise| part.typical().map(TypicalNoise::long_run);
        let [combined, ..] = &self.measures;
        (long_run(combined), self.axes.each_ref().map(long_run))
    }
}

impl PartNoise {
    fn of(index: usize, rounds: Vec<TimedValue>, month: &PeriodScores, part: ScorePart<'_>) -> Self {
        let suites = || month.counts().iter().zip(part.weights).enumerate();
        let fed = || suites().filter(|(_, (_, weight))| **weight > 0.0);
        let binary =
            fed().filter(|(_, (count, _))| count.has_binary_marks()).map(|(index, (count, weight))| {
                BinarySuite { index, weight: *weight, share: share(count.perfect, count.trials_in_score()) }
            });
        let binary: Vec<BinarySuite> = binary.collect();
        Self {
            index,
            noise: RoundNoise::of(rounds.iter().map(|round| round.value), !binary.is_empty()),
            rounds,
            cycle: OnceCell::new(),
            least: fed().map(|(_, (_, weight))| (weight * method::RESOLUTION).powi(2)).sum(),
            binary,
        }
    }

    fn typical(&self) -> Option<TypicalNoise> {
        self.noise.as_ref().map(|noise| TypicalNoise::of(noise, self.least))
    }

    fn score(&self, length: RoundLength, sums: &PeriodScores, part: ScorePart<'_>) -> Option<MeasuredScore> {
        let mean = sums.mean(part)?;
        let rounds = sums.rounds(part);
        let (mut edge, mut marked) = (EdgeReach::default(), 0.0);
        for suite in &self.binary {
            let Some(count) = sums.counts().get(suite.index) else { continue };
            let (points, trials) = (100.0 * suite.weight, count.trials_in_score());
            let reach = (points * (1.0 - least_share(trials))).powi(2);
            if suite.share >= 1.0 {
                edge.below += reach;
            } else if suite.share <= 0.0 {
                edge.above += reach;
            } else {
                marked += points * points * variance_of_share(count.perfect, trials, suite.share);
            }
        }
        let least = (self.least / f64::from(rounds)).max(marked);
        let rounds = usize::try_from(rounds).unwrap_or(usize::MAX);
        let own = self.noise.as_ref().map(|noise| noise.of_mean(rounds));
        let own_interval = own.map(|own| self.without_cycle(own, rounds, length));
        Some(MeasuredScore { mean, length, rounds, part: self.index, own, own_interval, least, edge })
    }

    /// The variance of a mean of so many rounds without a weekly cycle, if the mean covers a week and there is one.
    fn without_cycle(&self, own: Spread, rounds: usize, length: RoundLength) -> Spread {
        let hours = usize::try_from(length.hours()).unwrap_or(usize::MAX);
        if rounds.saturating_mul(hours) < method::CYCLE_HOURS {
            return own;
        }
        let Some(CycleNoise { cycle, rest }) = self.cycle.get_or_init(|| self.cycle_noise(hours)) else {
            return own;
        };
        let variance = rest.of_mean(rounds).variance + cycle.variance_of_mean(rounds, hours);
        Spread { variance: variance.min(own.variance), ..own }
    }

    fn cycle_noise(&self, length: usize) -> Option<CycleNoise> {
        let history = usize::try_from(method::NOISE_HOURS).unwrap_or(usize::MAX);
        let cycle = WeeklyCycle::of(&self.rounds, history, length)?;
        let rest = self.rounds.iter().map(|round| round.value - cycle.at(round.hour));
        Some(CycleNoise { cycle, rest: RoundNoise::of(rest, !self.binary.is_empty())? })
    }
}

impl MeasuredScore {
    /// The score with its uncertainty among its peers, which is unknown if neither they nor the model have a noise.
    pub(in super::super) fn among(&self, peers: &PeerNoise) -> UncertainScore {
        let Self { mean, length, rounds, part, own, own_interval, least, edge } = *self;
        let usual = peers.of(length, part);
        let of = |own: Option<Spread>| {
            let spread = usual.map(|usual| usual.combined(own, rounds, least)).or(own);
            spread.map(|spread| Spread { variance: spread.variance.max(least), ..spread })
        };
        let interval = Estimate { mean, spread: of(own_interval) };
        let estimate = Estimate { mean, spread: of(own) };
        UncertainScore { estimate, reach: interval.reach(&peers.quantiles), edge }
    }
}

/// The variance of a share of trials, to which one trial with the usual share is added. The noise of a month knows
/// little about a failure that occurs once a month.
fn variance_of_share(successes: u32, trials: u32, usual: f64) -> f64 {
    let trials = f64::from(trials) + 1.0;
    let share = (f64::from(successes) + usual) / trials;
    share * (1.0 - share) / trials
}

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole)
}

/// The lower Jeffreys bound of a share of which all of these trials succeeded: a quantile of a beta distribution with
/// the second parameter one half, which is one of Student's t.
fn least_share(trials: u32) -> f64 {
    let df = 2.0 * f64::from(trials) + 1.0;
    let t = student::quantile(method::INTERVAL_TAIL / 2.0, df);
    df / (df + t * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_24_trials_leave_a_share_of_at_least_90_percent() {
        // scipy.stats.beta.ppf(0.025, n + 0.5, 0.5)
        for (trials, bound) in [(1, 0.146_746_316_3), (24, 0.901_612_395_6), (120, 0.979_327_449_5)] {
            assert!((least_share(trials) - bound).abs() < 1e-9, "{trials}: {}", least_share(trials));
        }
    }
}
