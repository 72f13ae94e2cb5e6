//! The state of one model at one time.
//!
//! It is computed once per refresh from the model's series, which is then dropped. The uncertainty of the scores is
//! added when the noise of the peers is known. `changes`, `losses` and the endpoints compare models.

use std::sync::Arc;

use scoregate_base::{clock::Wall, routes::Period};

use super::{
    count::Attempts,
    drift::{self, DriftResult},
    figures::{Score, Trend, dollars, points},
    hour::{Hour, HourRange, hours_of, of_period},
    incident_scan::incident::Incident,
    levels::{LevelComparison, ScoreLevels},
    measure::Measure,
    method,
    noise::{
        peer_noise::{ModelNoise, PeerNoise},
        score_residuals::ScoreResiduals,
    },
    period_scores::{PeriodScores, ScorePart, ScoreRound},
    round_length::RoundLength,
    run::TestedModel,
    score_noise::{ScoreNoise, UncertainScore},
    series::ScoreSeries,
    statistics::{self, Estimate, FittedLine, SampleSums},
    student::TailQuantiles,
};
use crate::suite::Axis;

/// The state of one model at one time.
#[derive(Clone, Debug)]
pub struct ModelState {
    pub model: Arc<TestedModel>,
    /// The summary of each period, in the order of [`Period::ALL`].
    pub summaries: [PeriodSummary; 4],
    /// When the model was last updated, regardless of the period.
    last_updated: Wall,
    /// For each period, in the order of [`Period::ALL`]: the newest level compared with the level before the first
    /// change that was detected in this period or in the period before it.
    pub levels: [Option<LevelComparison>; 4],
    /// The axis with the largest loss between these levels, and the loss in points.
    pub worst_axes: [Option<(Axis, f64)>; 4],
    /// The same comparison for the changes of a week. After a week, the new level counts as normal.
    pub lately: Option<LevelComparison>,
    /// Runs of the newest level and of the level a week ago.
    pub level_runs: (u32, u32),
    /// The mean score of the 7 days before the last 24 hours.
    pub usual: Option<f64>,
    /// The length of the model's rounds.
    pub round_length: RoundLength,
    /// The complete rounds of the last 48 hours, oldest first.
    pub rounds: Vec<ScoreRound>,
    /// The points of the history, in the order of [`Period::ALL`].
    pub history: [Vec<ScorePoint>; 4],
    /// The incidents within the window.
    pub incidents: Vec<Incident>,
    /// The latencies of the trials of the last 24 hours.
    pub latencies: Vec<f64>,
    /// The result of the drift test.
    pub drift: DriftResult,
    /// The lines fitted to the axes, in points per day.
    pub slopes: [Option<FittedLine>; 7],
    /// The significant changes, once they have been determined for all models.
    pub change: ModelChange,
    /// The range of possible ranks, once it is determined, in the order of [`Measure::ALL`] and of [`Period::ALL`].
    pub ranks: [[Option<RankBounds>; 4]; 5],
    /// The model's noise, which contributes to its peers' noise.
    noise: ModelNoise,
    /// The deviations of the rounds, in the order of [`Measure::ALL`].
    residuals: [ScoreResiduals; 5],
}

/// The significant changes of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelChange {
    /// Trends of each measure, in the order of [`Measure::ALL`].
    pub trends: [[Trend; 4]; 5],
    /// Trend of each axis, in the order of [`Axis::ALL`].
    pub axes: [Trend; 7],
    /// The corrected p-value of the drift signal, as published; `None` if there is no signal.
    pub drift: Option<f64>,
}

/// The range of ranks that a model may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankBounds {
    /// The best possible rank.
    pub lower: usize,
    /// The worst possible rank.
    pub upper: usize,
}

/// An estimated score, and the estimate for the previous period.
pub type Estimates = (Option<Estimate>, Option<Estimate>);

/// A model in one period.
#[derive(Clone, Debug)]
pub struct PeriodSummary {
    /// The sums from which the scores are computed.
    pub reading: PeriodScores,
    /// Number of runs in the period, and number of failed runs.
    pub runs: (u32, u32),
    /// Trials in the period that count for availability.
    pub attempts: Attempts,
    /// The scores that models are ranked by, each with the score of the previous period, in the order of
    /// [`Measure::ALL`].
    scores: [[Option<UncertainScore>; 2]; 5],
    /// The axes over a day; `None` for other periods.
    pub axes: [Option<UncertainScore>; 7],
    /// The median latency of a trial, in milliseconds.
    pub latency: Option<f64>,
    /// The standard deviation between rounds, in points.
    pub deviation: Option<f64>,
}

/// A point of a history.
#[derive(Clone, Copy, Debug)]
pub struct ScorePoint {
    /// The start of the point.
    pub start: Wall,
    /// The score of the point.
    pub score: Option<UncertainScore>,
    /// Number of runs.
    pub runs: u32,
}

impl ModelState {
    /// The state of a model with these incidents at the beginning of `hour`, except for the parts that depend on its
    /// peers.
    pub fn compute(
        model: Arc<TestedModel>,
        series: &ScoreSeries,
        hour: Hour,
        levels: &ScoreLevels,
        incidents: Vec<Incident>,
    ) -> Self {
        let current = hour.last(method::CURRENT_HOURS);
        let noise = ScoreNoise::of(series, hour, levels);
        let lately = levels.since(hour.minus(hours_of(Period::Week)));
        let of_periods = Period::ALL.map(|period| {
            levels.since(hour.minus(2 * hours_of(period).max(method::CURRENT_HOURS)))
        });
        let watched = series.rounds(hour.last(method::DRIFT_HOURS));
        let round_length = series.round_length();
        Self {
            model,
            summaries: Period::ALL.map(|period| PeriodSummary::of(series, &noise, period, hour)),
            level_runs: level_runs(series, lately.as_ref(), hour),
            levels: of_periods,
            worst_axes: of_periods.map(|levels| worst_axis(&level_scores(series, &levels?, hour))),
            lately,
            usual: usual(series, current.from),
            round_length,
            rounds: series.rounds(hour.last(2 * method::CURRENT_HOURS)).to_vec(),
            last_updated: series.last_updated(),
            history: Period::ALL.map(|period| history(series, &noise, period, hour)),
            incidents,
            latencies: series.latencies_of(current).to_vec(),
            drift: drift::watch(levels, watched, round_length),
            slopes: slopes(series, &noise, hour),
            change: ModelChange::default(),
            ranks: Default::default(),
            noise: noise.typical(),
            residuals: noise.residuals(),
        }
    }

    /// Determines the uncertainty of the scores by comparing these models.
    pub fn compare(models: &mut [Self], quantiles: &TailQuantiles) {
        let peers = PeerNoise::among(models.iter().map(|model| model.noise));
        for model in models {
            let summaries = model.summaries.iter_mut();
            let of_periods = summaries.flat_map(|summary| {
                summary
                    .scores
                    .as_flattened_mut()
                    .iter_mut()
                    .chain(&mut summary.axes)
            });
            let of_points = model
                .history
                .iter_mut()
                .flatten()
                .map(|point| &mut point.score);
            of_periods
                .chain(of_points)
                .flatten()
                .for_each(|score| score.compare_with(&peers, quantiles));
        }
    }

    pub fn id(&self) -> &str {
        self.model.id().as_str()
    }

    /// When the score of a period was last updated. If there is no score, when the model was last updated.
    pub fn last_updated(&self, period: Period) -> Wall {
        self.over(period)
            .reading
            .last_scored()
            .unwrap_or(self.last_updated)
    }

    /// The deviations of a measure's rounds.
    pub fn residuals(&self, measure: Measure) -> &ScoreResiduals {
        measure.of(&self.residuals)
    }

    /// The summary of a period.
    pub fn over(&self, period: Period) -> &PeriodSummary {
        of_period(period, &self.summaries)
    }
}

impl ModelChange {
    /// Trend of a score over a period, compared with the previous period.
    pub fn trend(&self, period: Period, measure: Measure) -> Trend {
        *of_period(period, measure.of(&self.trends))
    }

    /// Whether the drift signal is significant.
    pub fn has_drifted(&self) -> bool {
        self.drift
            .is_some_and(|chance| chance < method::DRIFT_ALPHA)
    }
}

impl PeriodSummary {
    fn of(series: &ScoreSeries, noise: &ScoreNoise<'_>, period: Period, hour: Hour) -> Self {
        let clock = hour.last(hours_of(period).max(series.round_length().hours()));
        let (now, before) = compared_hours(series, period, hour, clock);
        let reading = series.over(now);
        let before = before.map(|range| (series.over(range), range));
        let scores = Measure::ALL.map(|of| {
            let before = before
                .as_ref()
                .and_then(|(before, range)| noise.measured(of, before, *range));
            [noise.measured(of, &reading, now), before]
        });
        let other = (clock != now).then(|| series.over(clock));
        let in_period = other.as_ref().unwrap_or(&reading);
        Self {
            runs: in_period.runs(),
            attempts: in_period.attempts(),
            scores,
            // Axes are shown only in a model's detail, for the period of a day.
            axes: if period == Period::Day {
                noise.axes(&reading, now)
            } else {
                [None; 7]
            },
            latency: statistics::median(series.latencies_of(now)),
            deviation: deviation(series.rounds(clock)),
            reading,
        }
    }

    /// The estimated score without its cycle, and the estimate for the previous period.
    pub fn estimates(&self, measure: Measure) -> Estimates {
        let [now, before] = measure
            .of(&self.scores)
            .map(|score| score.map(|score| score.tested));
        (now, before)
    }

    /// The score with its uncertainty, if that is known.
    pub fn uncertain(&self, measure: Measure) -> Option<&UncertainScore> {
        let [now, _] = measure.of(&self.scores);
        now.as_ref().filter(|score| score.estimate.spread.is_some())
    }

    /// The standard error of the published score, including its cycle. It is the wider side of the interval divided by
    /// the quantile, so that constant marks are included.
    pub fn standard_error(&self) -> Option<f64> {
        let score = self.uncertain(Measure::Combined)?;
        let edge = score.edge.below.max(score.edge.above) / score.reach?.powi(2);
        Some((score.estimate.spread?.variance * (1.0 + edge)).sqrt())
    }

    /// The smallest change since the previous period that the trend detects in most cases; `None` if a score is missing.
    pub fn least_visible_change(&self) -> Option<f64> {
        let (now, before) = self.estimates(Measure::Combined);
        let least = statistics::least_visible_change(
            before?,
            now?,
            method::TREND_ALPHA,
            method::TREND_MISSED,
        )?;
        Some(least.max(method::TREND_MINIMUM))
    }

    /// The published score.
    pub fn published(&self, measure: Measure) -> Option<Score> {
        let [now, _] = measure.of(&self.scores);
        now.as_ref().map(Score::of)
    }

    /// The published combined score.
    pub fn score(&self) -> Option<Score> {
        self.published(Measure::Combined)
    }

    /// The published median latency of a trial, in whole milliseconds.
    pub fn latency_ms(&self) -> Option<f64> {
        self.latency.map(f64::round)
    }

    /// The published mean cost of a trial, in US dollars.
    pub fn cost_usd(&self) -> Option<f64> {
        self.reading.cost().map(dollars)
    }
}

/// The scores of the level before a change and of the newest level.
fn level_scores(series: &ScoreSeries, levels: &LevelComparison, hour: Hour) -> [PeriodScores; 2] {
    let newest = HourRange {
        from: levels.since,
        to: hour,
    };
    [levels.baseline, newest].map(|range| series.over(range))
}

/// The mean score of the baseline hours before `end`.
fn usual(series: &ScoreSeries, end: Hour) -> Option<f64> {
    let before = series.over(end.last(method::BASELINE_HOURS));
    before.mean(ScorePart::measure(series.table(), Measure::Combined))
}

/// Number of scored runs of the newest level and of the previous one.
fn level_runs(series: &ScoreSeries, levels: Option<&LevelComparison>, hour: Hour) -> (u32, u32) {
    let Some(levels) = levels else {
        return (0, 0);
    };
    let [before, now] = level_scores(series, levels, hour);
    (now.scored(), before.scored())
}

/// The hours of a period and of the period that it is compared with.
fn compared_hours(
    series: &ScoreSeries,
    period: Period,
    hour: Hour,
    clock: HourRange,
) -> (HourRange, Option<HourRange>) {
    if period != Period::Latest {
        return (clock, Some(clock.before()));
    }
    match series.newest_round(hour) {
        Some(round) => (round, series.newest_round(round.from)),
        // If there is no complete round, the range is empty.
        None => (hour.last(0), None),
    }
}

/// The sample standard deviation of the rounds.
fn deviation(rounds: &[ScoreRound]) -> Option<f64> {
    let first = rounds.first()?.score;
    // Deviations are relative to the first round, so that equal rounds have a deviation of exactly zero.
    let sums: SampleSums = rounds.iter().map(|round| round.score - first).collect();
    sums.variance().map(f64::sqrt)
}

/// The axis with the largest loss between two ranges of hours, and the published loss. If losses are equal, the last
/// axis.
fn worst_axis([before, now]: &[PeriodScores; 2]) -> Option<(Axis, f64)> {
    let losses = before.axes().into_iter().zip(now.axes()).zip(Axis::ALL);
    let losses = losses.filter_map(|((before, now), axis)| Some((axis, points(before? - now?))));
    losses
        .filter(|(_, lost)| *lost > 0.0)
        .max_by(|a, b| a.1.total_cmp(&b.1))
}

fn history(
    series: &ScoreSeries,
    noise: &ScoreNoise<'_>,
    period: Period,
    hour: Hour,
) -> Vec<ScorePoint> {
    let (hours, grain) = *of_period(period, &method::HISTORY);
    // A shorter point would not contain a whole round.
    let length = series.round_length().hours();
    let grain =
        (grain..=hours).find(|hours| hours.is_multiple_of(grain) && hours.is_multiple_of(length));
    hour.last(hours)
        .calendar_parts(grain.unwrap_or(hours))
        .map(|part| {
            let reading = series.over(part);
            let score = noise.measured(Measure::Combined, &reading, part);
            ScorePoint {
                start: part.from.start(),
                score,
                runs: reading.scored(),
            }
        })
        .collect()
}

/// The lines through the axis scores of the newest rounds, in points per day. Their variance is at least the noise variance.
fn slopes(series: &ScoreSeries, noise: &ScoreNoise<'_>, hour: Hour) -> [Option<FittedLine>; 7] {
    let range = hour.last(method::SLOPE_HOURS);
    let rounds = series.axis_rounds(range);
    let least = series.round_length().rounds(method::SLOPE_LEAST);
    let mut indexes = 0..7;
    noise.of_axis_rounds().map(|variance| {
        let axis = indexes.next()?;
        let points: Vec<(f64, f64)> = rounds
            .iter()
            .filter_map(|(hour, axes)| {
                let day = -range.age(hour.start()).as_secs_f64() / 86_400.0;
                Some((day, (*axes.get(axis)?)?))
            })
            .collect();
        let variance = variance.unwrap_or_default().max(method::RESOLUTION.powi(2));
        statistics::line(&points, variance).filter(|_| points.len() >= least)
    })
}
