//! Everything known about one model at one instant.
//!
//! Computed once per refresh from the model's series, which is then dropped. Its scores are published when the noise of
//! its peers is known. Comparisons between models are in `changes`, `losses` and the endpoints.

use std::sync::Arc;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::count::Attempts;
use super::drift::{self, DriftResult};
use super::figures::{Score, dollars, points};
use super::hour::{Hour, HourRange, hours_of, of_period};
use super::incident_scan::incident::Incident;
use super::levels::{LevelComparison, ScoreLevels};
use super::measure::Measure;
use super::method;
use super::noise::peer_noise::{ModelNoise, PeerNoise};
use super::noise::round_length::RoundLength;
use super::noise::score_noise::{MeasuredScore, ScoreNoise, UncertainScore};
use super::noise::score_residuals::ScoreResiduals;
use super::period_scores::{PeriodScores, ScorePart, ScoreRound};
use super::run::{Axis, TestedModel};
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
    /// Its newest level against that before the changes of each period and the one before, in the order of
    /// [`Period::ALL`].
    pub levels: [Option<LevelComparison>; 4],
    /// The axis with the largest loss between these levels, in points.
    pub worst_axes: [Option<(Axis, f64)>; 4],
    /// The same for the changes of a week: after a week the new level is the normal one.
    pub lately: Option<LevelComparison>,
    /// Runs of the newest level and of that a week ago.
    pub level_runs: (u32, u32),
    /// The mean of the 7 days before the last 24 hours.
    pub usual: Option<f64>,
    /// The length of its rounds.
    pub round_length: RoundLength,
    /// The complete rounds that the last 24 hours are a part of, oldest first.
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
    /// The deviations of its rounds, in the order of [`Measure::ALL`].
    residuals: Vec<ScoreResiduals>,
}

/// A model whose scores are not published yet: their uncertainty depends on its peers.
#[derive(Debug)]
pub(super) struct MeasuredModel {
    state: ModelState,
    noise: ModelNoise,
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
    /// The scores that models are ranked by, and those of the period before, in the order of [`Measure::ALL`].
    measured: [[Option<MeasuredScore>; 2]; 5],
    /// The axes over a day; none for other periods.
    measured_axes: [Option<MeasuredScore>; 7],
    /// The score as published.
    pub score: Option<Score>,
    /// The scores that models are ranked by, as published, in the order of [`Measure::ALL`].
    published: [Option<Score>; 5],
    /// The same with their uncertainty, and those of the period before.
    uncertain: [[Option<UncertainScore>; 2]; 5],
    /// The axes over a day, as published; none for other periods.
    pub axes: [Option<Score>; 7],
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
    measured: Option<MeasuredScore>,
    /// Its score as published.
    pub score: Option<Score>,
    /// Number of runs.
    pub runs: u32,
}

impl MeasuredModel {
    /// Computes the state of a model with these incidents at the beginning of `hour`.
    pub(super) fn compute(
        model: Arc<TestedModel>,
        series: &ScoreSeries,
        hour: Hour,
        levels: &ScoreLevels,
        incidents: Vec<Incident>,
    ) -> Self {
        let current = hour.last(method::CURRENT_HOURS);
        let noise = ScoreNoise::of(series, hour, levels);
        let lately = levels.since(hour.minus(hours_of(Period::Week)));
        let since =
            |period: Period| levels.since(hour.minus(2 * hours_of(period).max(method::CURRENT_HOURS)));
        let level_hours = |levels: &LevelComparison| {
            [levels.baseline, HourRange { from: levels.since, to: hour }].map(|range| series.over(range))
        };
        let usual = series.over(current.from.last(method::BASELINE_HOURS));
        let watched = series.rounds(hour.last(method::DRIFT_HOURS));
        let round_length = series.round_length();
        let state = ModelState {
            model,
            summaries: Period::ALL.map(|period| PeriodSummary::of(series, &noise, period, hour)),
            level_runs: lately
                .as_ref()
                .map(level_hours)
                .map_or((0, 0), |[before, now]| (now.scored(), before.scored())),
            levels: Period::ALL.map(since),
            worst_axes: Period::ALL.map(|period| worst_axis(&level_hours(&since(period)?))),
            lately,
            usual: usual.mean(ScorePart::measure(series.table(), Measure::Combined)),
            round_length,
            rounds: series.rounds(hour.last(2 * method::CURRENT_HOURS)).to_vec(),
            last_updated: series.last_updated(),
            history: Period::ALL.map(|period| history(series, &noise, period, hour)),
            incidents,
            latencies: series.latencies_of(current).to_vec(),
            drift: drift::watch(levels, watched, round_length),
            slopes: slopes(series, &noise, hour),
            residuals: Vec::new(),
        };
        let typical = noise.typical();
        Self { state: ModelState { residuals: noise.residuals(), ..state }, noise: typical }
    }

    /// The id of the model.
    pub(super) fn id(&self) -> &str {
        self.state.id()
    }

    /// The state, with scores as published among these peers.
    fn published(self, peers: &PeerNoise) -> ModelState {
        let mut state = self.state;
        for summary in &mut state.summaries {
            summary.publish(peers);
        }
        for point in state.history.iter_mut().flatten() {
            point.score = point.measured.map(|score| Score::of(&score.among(peers)));
        }
        state
    }
}

impl ModelState {
    /// The models of a snapshot, with scores as published.
    pub(super) fn published(models: Vec<MeasuredModel>) -> Vec<Self> {
        let peers = PeerNoise::among(models.iter().map(|model| model.noise));
        models.into_iter().map(|model| model.published(&peers)).collect()
    }

    pub(super) fn id(&self) -> &str {
        self.model.id().as_str()
    }

    /// When its score of a period was last updated; without a score, when the model was.
    pub(super) fn last_updated(&self, period: Period) -> Wall {
        self.over(period).reading.last_scored().unwrap_or(self.last_updated)
    }

    /// The deviations of the rounds of a measure.
    pub(super) fn residuals(&self, measure: Measure) -> Option<&ScoreResiduals> {
        Measure::ALL.into_iter().zip(&self.residuals).find_map(|(of, one)| (of == measure).then_some(one))
    }

    /// The summary of a period.
    pub(super) fn over(&self, period: Period) -> &PeriodSummary {
        of_period(period, &self.summaries)
    }
}

impl PeriodSummary {
    fn of(series: &ScoreSeries, noise: &ScoreNoise, period: Period, hour: Hour) -> Self {
        let clock = hour.last(hours_of(period).max(series.round_length().hours()));
        let (now, before) = match period {
            Period::Latest => newest_rounds(series, hour),
            Period::Day | Period::Week | Period::Month => (clock, Some(clock.before())),
        };
        let reading = series.over(now);
        let before = before.map(|range| (series.over(range), range));
        let measured = Measure::ALL.map(|of| {
            let before = before.as_ref().and_then(|(before, range)| noise.measured(of, before, *range));
            [noise.measured(of, &reading, now), before]
        });
        let other = (clock != now).then(|| series.over(clock));
        let in_period = other.as_ref().unwrap_or(&reading);
        let rounds = series.rounds(clock);
        // About the first round, so that equal rounds have none.
        let from_first = |round: &ScoreRound| rounds.first().map_or(0.0, |first| round.score - first.score);
        let deviation = rounds.iter().map(from_first).collect::<SampleSums>().variance();
        Self {
            runs: in_period.runs(),
            attempts: in_period.attempts(),
            measured,
            // Only the detail of a model shows them, over a day.
            measured_axes: if period == Period::Day { noise.axes(&reading, now) } else { [None; 7] },
            score: None,
            published: [None; 5],
            axes: [None; 7],
            latency: statistics::median(series.latencies_of(now)),
            deviation: deviation.map(f64::sqrt),
            uncertain: [[None; 2]; 5],
            reading,
        }
    }

    fn publish(&mut self, peers: &PeerNoise) {
        let among = |score: &Option<MeasuredScore>| score.as_ref().map(|score| score.among(peers));
        self.uncertain = self.measured.each_ref().map(|pair| pair.each_ref().map(among));
        self.published = self.uncertain.each_ref().map(|[now, _]| now.as_ref().map(Score::of));
        [self.score, ..] = self.published;
        self.axes = self.measured_axes.each_ref().map(|axis| among(axis).as_ref().map(Score::of));
    }

    /// An estimated score without its cycle, and that of the period before.
    pub(super) fn estimates(&self, measure: Measure) -> Estimates {
        let [now, before] = measure.of(&self.uncertain).map(|score| score.map(|score| score.tested));
        (now, before)
    }

    /// A score with its uncertainty, if that is known.
    pub(super) fn uncertain(&self, measure: Measure) -> Option<&UncertainScore> {
        let [now, _] = measure.of(&self.uncertain);
        now.as_ref().filter(|score| score.estimate.spread.is_some())
    }

    /// The standard error of the score as published, its cycle included.
    pub(super) fn standard_error(&self) -> Option<f64> {
        Some(self.uncertain(Measure::Combined)?.estimate.spread?.variance.sqrt())
    }

    /// The change of the score since the period before that its trend shows in most cases; `None` without either score.
    pub(super) fn least_visible_change(&self) -> Option<f64> {
        let (now, before) = self.estimates(Measure::Combined);
        let least =
            statistics::least_visible_change(before?, now?, method::TREND_ALPHA, method::TREND_MISSED)?;
        Some(least.max(method::TREND_MINIMUM))
    }

    /// A score as published.
    pub(super) fn published(&self, measure: Measure) -> Option<Score> {
        *measure.of(&self.published)
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

/// The axis with the largest loss between two ranges of hours, and this loss as published. Of equal losses, the last.
fn worst_axis([before, now]: &[PeriodScores; 2]) -> Option<(Axis, f64)> {
    let losses = before.axes().into_iter().zip(now.axes()).zip(Axis::ALL);
    let losses = losses.filter_map(|((before, now), axis)| Some((axis, points(before? - now?))));
    losses.filter(|(_, lost)| *lost > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The newest complete round, and the one before it. Without any, no hour.
fn newest_rounds(series: &ScoreSeries, hour: Hour) -> (HourRange, Option<HourRange>) {
    match series.newest_round(hour) {
        Some(round) => (round, series.newest_round(round.from)),
        None => (hour.last(0), None),
    }
}

fn history(series: &ScoreSeries, noise: &ScoreNoise, period: Period, hour: Hour) -> Vec<ScorePoint> {
    let (hours, grain) = *of_period(period, &method::HISTORY);
    // A shorter point would not have a whole round.
    let length = series.round_length().hours();
    let grain = (grain..=hours).find(|hours| hours.is_multiple_of(grain) && hours.is_multiple_of(length));
    let point = |part: HourRange| {
        let reading = series.over(part);
        let measured = noise.measured(Measure::Combined, &reading, part);
        ScorePoint { start: part.from.start(), measured, score: None, runs: reading.scored() }
    };
    hour.last(hours).calendar_parts(grain.unwrap_or(hours)).map(point).collect()
}

/// The lines through the axes of the newest rounds, which have at least the variance of the noise: points a day.
fn slopes(series: &ScoreSeries, noise: &ScoreNoise, hour: Hour) -> [Option<FittedLine>; 7] {
    let range = hour.last(method::SLOPE_HOURS);
    let rounds = series.axis_rounds(range);
    let least = series.round_length().rounds(method::SLOPE_LEAST);
    let day = |hour: Hour| -range.age(hour.start()).as_secs_f64() / 86_400.0;
    let mut indexes = 0..7;
    noise.of_axis_rounds().map(|variance| {
        let axis = indexes.next()?;
        let point = |(hour, axes): &(Hour, [Option<f64>; 7])| Some((day(*hour), (*axes.get(axis)?)?));
        let points: Vec<(f64, f64)> = rounds.iter().filter_map(point).collect();
        let variance = variance.unwrap_or_default().max(method::RESOLUTION.powi(2));
        statistics::line(&points, variance).filter(|_| points.len() >= least)
    })
}
