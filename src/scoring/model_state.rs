//! Everything known about one model at one instant.
//!
//! Computed once per refresh from the model's series, which is then dropped. Comparisons between models are in
//! `changes`, `losses` and the endpoints.

use std::sync::Arc;

use crate::clock::Wall;
use crate::routes::Period;

use super::count::Attempts;
use super::drift::{self, DriftResult};
use super::figures::{Score, dollars};
use super::hour::{Hour, HourRange, hours_of, of_period};
use super::incidents::{self, Incident};
use super::measure::Measure;
use super::method;
use super::period_scores::{PeriodScores, ScoreRound};
use super::run::TestedModel;
use super::series::ScoreSeries;
use super::statistics::{self, Estimate, FittedLine, SampleSums};

/// One model at one instant.
#[derive(Clone, Debug)]
pub(super) struct ModelState {
    pub model: Arc<TestedModel>,
    /// The summary of each period, in the order of [`Period::ALL`].
    pub summaries: [PeriodSummary; 4],
    /// When it was last updated, for any period.
    last_updated: Wall,
    /// Its own baseline, and the number of runs in it.
    pub baseline: (Option<Estimate>, u32),
    /// Its complete rounds since the start of the baseline, oldest first.
    pub rounds: Vec<ScoreRound>,
    /// The points of its history, in the order of [`Period::ALL`].
    pub history: [Vec<ScorePoint>; 4],
    /// Its incidents within the window.
    pub incidents: Vec<Incident>,
    /// The latencies of the trials of the last 24 hours.
    pub latencies: Vec<f64>,
    /// The result of the drift test.
    pub drift: DriftResult,
    /// The lines fitted to its axes: points a day.
    pub slopes: [Option<FittedLine>; 7],
    /// The lines fitted to its score in the newest part of each period: points a day.
    pub movements: [Option<FittedLine>; 4],
}

/// An estimated score, and that of the period before.
pub(super) type Estimates = (Option<Estimate>, Option<Estimate>);

/// A model in one period.
#[derive(Clone, Debug)]
pub(super) struct PeriodSummary {
    /// The runs of the score.
    pub reading: PeriodScores,
    /// Runs in the period, and failed ones.
    pub runs: (u32, u32),
    /// Trials in the period, for availability.
    pub attempts: Attempts,
    /// The score as published.
    pub score: Option<Score>,
    /// The estimates that models are ranked by, in the order of [`Measure::ALL`].
    measures: [Estimates; 5],
    /// The axes, and those of the period before.
    pub axes: ([Option<Estimate>; 7], [Option<Estimate>; 7]),
    /// The median latency of a trial, in milliseconds.
    pub latency: Option<f64>,
    /// The standard deviation between rounds, in points.
    pub deviation: Option<f64>,
}

/// A point of a history.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScorePoint {
    /// Its start.
    pub start: Wall,
    /// Its score.
    pub score: Option<Score>,
    /// Number of runs.
    pub runs: u32,
}

impl ModelState {
    /// Computes the state of a model at the beginning of `hour`.
    pub(super) fn compute(model: Arc<TestedModel>, series: &ScoreSeries, hour: Hour) -> Self {
        let current = hour.last(method::CURRENT_HOURS);
        let baseline = series.over(current.from.last(method::BASELINE_HOURS));
        let since_baseline = hour.last(method::CURRENT_HOURS + method::BASELINE_HOURS);
        let watched: Vec<(Hour, f64)> =
            series.rounds(hour.last(method::DRIFT_HOURS)).map(|round| (round.hour, round.score)).collect();
        Self {
            model,
            summaries: Period::ALL.map(|period| PeriodSummary::of(series, period, hour)),
            baseline: (score(&baseline), baseline.scored()),
            rounds: series.rounds(since_baseline).collect(),
            last_updated: series.last_updated(),
            history: Period::ALL.map(|period| history(series, period, hour)),
            incidents: incidents::find(series, hour.last(method::WINDOW_HOURS)),
            latencies: series.latencies_of(current),
            drift: drift::watch(&watched),
            slopes: slopes(series, hour),
            movements: method::MOVEMENT_HOURS.map(|hours| movement(series, hour.last(hours))),
        }
    }

    /// Its id.
    pub(super) fn id(&self) -> &str {
        self.model.id().as_str()
    }

    /// When its score of a period was last updated; without a score, when the model was.
    pub(super) fn last_updated(&self, period: Period) -> Wall {
        self.over(period).reading.last_scored().unwrap_or(self.last_updated)
    }

    /// The summary of a period.
    pub(super) fn over(&self, period: Period) -> &PeriodSummary {
        of_period(period, &self.summaries)
    }
}

impl PeriodSummary {
    fn of(series: &ScoreSeries, period: Period, hour: Hour) -> Self {
        let clock = hour.last(hours_of(period));
        let (now, before) = match period {
            Period::Latest => newest_rounds(series, hour),
            Period::Day | Period::Week | Period::Month => (clock, Some(clock.before())),
        };
        let reading = series.over(now);
        let before = before.map(|range| series.over(range));
        let measures =
            Measure::ALL.map(|of| (measured(&reading, of), before.as_ref().and_then(|it| measured(it, of))));
        let [(combined, _), ..] = measures;
        let in_period = series.over(clock);
        let deviation = series.rounds(clock).map(|round| round.score).collect::<SampleSums>().variance();
        Self {
            runs: in_period.runs(),
            attempts: in_period.attempts(),
            score: combined.as_ref().map(Score::of),
            axes: (axes(&reading), before.map_or([None; 7], |before| axes(&before))),
            latency: series.latency(now),
            deviation: deviation.map(f64::sqrt),
            measures,
            reading,
        }
    }

    /// An estimated score, and that of the period before.
    pub(super) fn estimates(&self, measure: Measure) -> Estimates {
        *measure.of(&self.measures)
    }

    /// A score as published.
    pub(super) fn published(&self, measure: Measure) -> Option<Score> {
        self.estimates(measure).0.as_ref().map(Score::of)
    }

    /// The median latency of a trial, as published: whole milliseconds.
    pub(super) fn latency_ms(&self) -> Option<f64> {
        self.latency.map(f64::round)
    }

    /// The mean cost of a trial, as published: US dollars.
    pub(super) fn cost_usd(&self) -> Option<f64> {
        self.reading.cost().map(dollars)
    }
}

/// The newest complete round, and the one before it. Without any, the current hour, which has no score.
fn newest_rounds(series: &ScoreSeries, hour: Hour) -> (HourRange, Option<HourRange>) {
    let newest = |before: Hour| series.newest_round(before.last(method::LATEST_REACH_HOURS));
    match newest(hour) {
        Some(round) => (HourRange::one(round), newest(round).map(HourRange::one)),
        None => (hour.last(1), None),
    }
}

/// The score of a range, with the uncertainty of our resolution.
fn measured(reading: &PeriodScores, measure: Measure) -> Option<Estimate> {
    reading.measured(measure).map(|score| score.no_finer(method::RESOLUTION))
}

/// The combined score.
fn score(reading: &PeriodScores) -> Option<Estimate> {
    measured(reading, Measure::Combined)
}

/// The axes.
fn axes(reading: &PeriodScores) -> [Option<Estimate>; 7] {
    reading.axes().map(|axis| axis.map(|axis| axis.no_finer(method::RESOLUTION)))
}

fn history(series: &ScoreSeries, period: Period, hour: Hour) -> Vec<ScorePoint> {
    let (hours, grain) = *of_period(period, &method::HISTORY);
    let point = |part: HourRange| {
        let reading = series.over(part);
        let score = score(&reading).as_ref().map(Score::of);
        ScorePoint { start: part.from.start(), score, runs: reading.scored() }
    };
    hour.last(hours).parts(grain).map(point).collect()
}

fn slopes(series: &ScoreSeries, hour: Hour) -> [Option<FittedLine>; 7] {
    let range = hour.last(method::SLOPE_HOURS);
    let rounds: Vec<ScoreRound> = series.rounds(range).collect();
    let mut slopes = [None; 7];
    if rounds.len() < method::SLOPE_LEAST {
        return slopes;
    }
    for (axis, slope) in slopes.iter_mut().enumerate() {
        *slope = line(range, rounds.iter().filter_map(|round| Some((round.hour, (*round.axes.get(axis)?)?))));
    }
    slopes
}

fn movement(series: &ScoreSeries, range: HourRange) -> Option<FittedLine> {
    let rounds: Vec<(Hour, f64)> = series.rounds(range).map(|round| (round.hour, round.score)).collect();
    (rounds.len() >= method::MOVEMENT_LEAST).then(|| line(range, rounds.into_iter()))?
}

/// The line through rounds: points a day.
fn line(range: HourRange, rounds: impl Iterator<Item = (Hour, f64)>) -> Option<FittedLine> {
    let day = |hour: Hour| -range.age(hour.start()).as_secs_f64() / 86_400.0;
    let points: Vec<(f64, f64)> = rounds.map(|(hour, value)| (day(hour), value)).collect();
    statistics::line(&points, method::RESOLUTION)
}
