//! The series of one model: its runs counted by hour and suite, and the statistics of any range of hours.
//!
//! Runs are counted and dropped. Counts are defined in `count`.

use std::cell::OnceCell;

use crate::clock::Wall;

use super::count::{Attempts, Marks, RunCounts};
use super::hour::{Hour, HourRange};
use super::measure::Measure;
use super::method;
use super::run::{Run, Suite, Trial};
use super::statistics::{Estimate, median};

const DAY: u64 = 24;

/// The scores of a range.
#[derive(Clone, Debug)]
pub(super) struct PeriodScores {
    /// Its suites, in the order of `Suite::ALL`.
    pub suites: [RunCounts; 3],
}

/// The complete round of one hour, in points.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScoreRound {
    pub hour: Hour,
    pub score: f64,
    pub axes: [f64; 7],
}

/// All hours of one model within a window.
#[derive(Clone, Debug)]
pub(super) struct ScoreSeries {
    window: HourRange,
    hours: Vec<PeriodScores>,
    /// Of all trials with one, by hour.
    latencies: Vec<f64>,
    /// Where the latencies of each hour end, for hours with runs.
    latency_ends: Vec<usize>,
    /// The complete rounds, oldest first, computed on first use.
    rounds: OnceCell<Vec<ScoreRound>>,
    /// The sums of whole days counted back from the window's end, newest first, computed on first use.
    days: OnceCell<Vec<PeriodScores>>,
    /// The first run, even before the window.
    first_seen: Option<Wall>,
}

impl ScoreSeries {
    /// A series for this window without runs.
    pub(super) fn new(window: HourRange) -> Self {
        let hours = window.hours().map(|_| PeriodScores::EMPTY).collect();
        let (latencies, latency_ends) = (Vec::new(), Vec::new());
        let (rounds, days) = (OnceCell::new(), OnceCell::new());
        Self { window, hours, latencies, latency_ends, rounds, days, first_seen: None }
    }

    /// Removes all runs, and keeps the allocations.
    pub(super) fn clear(&mut self) {
        for reading in self.hours.iter_mut().filter(|reading| reading.runs().0 > 0) {
            *reading = PeriodScores::EMPTY;
        }
        self.latencies.clear();
        self.latency_ends.clear();
        self.first_seen = None;
        self.clear_derived();
    }

    /// Records the time of a run.
    pub(super) fn record_time(&mut self, at: Wall) {
        self.first_seen = Some(self.first_seen.map_or(at, |first| first.min(at)));
    }

    /// When the model was last updated: the newest run with a score, else the first run.
    pub(super) fn last_updated(&self) -> Wall {
        let scored = self.hours.iter().rev().find_map(PeriodScores::last_scored);
        scored.or(self.first_seen).unwrap_or(self.window.from.start())
    }

    /// Counts a run. Outside the window only its time is recorded.
    pub(super) fn add(&mut self, run: &Run) {
        self.record_time(run.at());
        let mut count = RunCounts::default();
        count.add(run);
        let latencies: Vec<f64> = run.trials().iter().filter_map(Trial::latency_ms).collect();
        self.put(Hour::of(run.at()), run.suite(), &count, &latencies);
    }

    /// Adds counted runs of one hour and suite, with the latencies of their trials.
    pub(super) fn put(&mut self, hour: Hour, suite: Suite, count: &RunCounts, latencies: &[f64]) {
        let Some(index) = self.index(hour) else { return };
        let Some(reading) = self.hours.get_mut(index) else { return };
        suite.of_mut(&mut reading.suites).merge(count);
        self.clear_derived();
        if self.latency_ends.len() <= index {
            self.latency_ends.resize(index + 1, self.latencies.len());
        }
        // Mostly at the end: sources are sorted by hour.
        let at = self.latency_ends.get(index).copied().unwrap_or_default();
        self.latencies.splice(at..at, latencies.iter().copied());
        self.latency_ends.iter_mut().skip(index).for_each(|end| *end += latencies.len());
    }

    /// The scores of a range.
    pub(super) fn over(&self, range: HourRange) -> PeriodScores {
        let whole_days = |hours: u64| hours.is_multiple_of(DAY).then(|| usize::try_from(hours / DAY).ok())?;
        // Most ranges end with the window or whole days before: their days are summed once.
        let ago = |hour: Hour| self.window.to.number().checked_sub(hour.number()).and_then(whole_days);
        match (ago(range.to), ago(range.from)) {
            (Some(newest), Some(oldest)) if newest + 1 < oldest => {
                let days = self.days().get(newest..oldest.min(self.days().len())).unwrap_or_default();
                PeriodScores::sum(days.iter().rev())
            }
            _ => PeriodScores::sum(range.hours().filter_map(|hour| self.at(hour))),
        }
    }

    fn days(&self) -> &[PeriodScores] {
        self.days.get_or_init(|| {
            let newest_first = self.hours.rchunks(usize::try_from(DAY).unwrap_or(usize::MAX));
            newest_first.map(|day| PeriodScores::sum(day.iter())).collect()
        })
    }

    fn clear_derived(&mut self) {
        self.rounds.take();
        self.days.take();
    }

    /// The scores of one hour; `None` outside the window.
    pub(super) fn at(&self, hour: Hour) -> Option<&PeriodScores> {
        self.hours.get(self.index(hour)?)
    }

    /// The complete rounds of a range, oldest first: hours in which every suite has a score.
    pub(super) fn rounds(&self, range: HourRange) -> impl DoubleEndedIterator<Item = ScoreRound> {
        self.rounds_in(range).iter().copied()
    }

    fn rounds_in(&self, range: HourRange) -> &[ScoreRound] {
        let rounds = self.rounds.get_or_init(|| {
            let hours = self.window.hours().zip(&self.hours);
            hours.filter_map(|(hour, reading)| reading.round(hour)).collect()
        });
        let before = |hour: Hour| rounds.partition_point(|round| round.hour < hour);
        rounds.get(before(range.from)..before(range.to)).unwrap_or_default()
    }

    /// The hour of the newest complete round of a range.
    pub(super) fn newest_round(&self, range: HourRange) -> Option<Hour> {
        self.rounds_in(range).last().map(|round| round.hour)
    }

    /// The median latency of a trial in a range, in milliseconds.
    pub(super) fn latency(&self, range: HourRange) -> Option<f64> {
        median(self.latencies_of(range))
    }

    /// The latencies of the trials of a range.
    pub(super) fn latencies_of(&self, range: HourRange) -> Vec<f64> {
        let (from, to) = (self.trials_before(range.from), self.trials_before(range.to));
        self.latencies.get(from..to).unwrap_or_default().to_vec()
    }

    fn trials_before(&self, hour: Hour) -> usize {
        let hours = hour.number().saturating_sub(self.window.from.number());
        let Some(last) = usize::try_from(hours).unwrap_or(usize::MAX).checked_sub(1) else { return 0 };
        self.latency_ends.get(last).copied().unwrap_or(self.latencies.len())
    }

    fn index(&self, hour: Hour) -> Option<usize> {
        self.window.has(hour).then(|| usize::try_from(hour.number() - self.window.from.number()).ok())?
    }
}

impl PeriodScores {
    /// The scores of hours without runs.
    const EMPTY: Self = Self { suites: [RunCounts::EMPTY; 3] };

    /// The combined score in points. `None` if a suite has none: without one suite scores would not be comparable.
    pub(super) fn score(&self) -> Option<Estimate> {
        self.weighted(0)
    }

    /// The axes in points, in the order of `Axis::ALL`; suites have the same weights as in the score.
    pub(super) fn axes(&self) -> [Option<Estimate>; 7] {
        [1, 2, 3, 4, 5, 6, 7].map(|mark| self.weighted(mark))
    }

    /// A score that models can be ranked by, in points.
    pub(super) fn measured(&self, measure: Measure) -> Option<Estimate> {
        let of_suite = |suite: Suite| suite.of(&self.suites).score();
        match measure {
            Measure::Combined => self.score(),
            Measure::Coding => of_suite(Suite::Coding),
            Measure::Reasoning => of_suite(Suite::Reasoning),
            Measure::Tooling => of_suite(Suite::Tooling),
            // From sums of its own: the axes of a trial are correlated, so their variances do not add up to that of
            // their mean.
            Measure::SevenAxis => self.weighted(8),
        }
    }

    /// Runs, and failed ones.
    pub(super) fn runs(&self) -> (u32, u32) {
        (self.suites.iter().map(|suite| suite.runs).sum(), self.suites.iter().map(|suite| suite.failed).sum())
    }

    /// Runs in the scores.
    pub(super) fn scored(&self) -> u32 {
        self.suites.iter().map(|suite| suite.scored).sum()
    }

    /// Trials in the scores.
    pub(super) fn trials(&self) -> u32 {
        self.suites.iter().map(RunCounts::trials_in_score).sum()
    }

    /// Trials for availability.
    pub(super) fn attempts(&self) -> Attempts {
        self.suites.iter().map(RunCounts::attempts).sum()
    }

    /// The mean cost of a trial, in dollars, of those with a cost.
    pub(super) fn cost(&self) -> Option<f64> {
        let cost: f64 = self.suites.iter().map(|suite| suite.cost).sum();
        let trials: u32 = self.suites.iter().map(|suite| suite.costed).sum();
        (trials > 0).then(|| cost / f64::from(trials))
    }

    /// The newest run in the scores.
    pub(super) fn last_scored(&self) -> Option<Wall> {
        self.suites.iter().filter_map(|suite| suite.last_scored).max()
    }

    fn weighted(&self, mark: usize) -> Option<Estimate> {
        let parts: Option<Vec<_>> = method::SUITE_WEIGHTS
            .iter()
            .map(|(suite, weight)| Some((*weight, suite.of(&self.suites).estimate(mark)?)))
            .collect();
        parts.map(|parts| Estimate::weighted(&parts))
    }

    /// The round of an hour, if it is complete.
    fn round(&self, hour: Hour) -> Option<ScoreRound> {
        let mut marks = Marks::default();
        for (suite, weight) in &method::SUITE_WEIGHTS {
            let means = suite.of(&self.suites).means()?;
            for (mark, mean) in marks.iter_mut().zip(means) {
                *mark += weight * mean * 100.0;
            }
        }
        let [score, axes @ .., _] = marks;
        Some(ScoreRound { hour, score, axes })
    }

    fn sum<'r>(readings: impl Iterator<Item = &'r Self>) -> Self {
        let mut sum = Self::EMPTY;
        for reading in readings {
            for (sum, count) in sum.suites.iter_mut().zip(&reading.suites) {
                sum.merge(count);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::{RunFailure, RunOutcome, TestedModel};
    use super::*;
    use crate::routes::ModelId;
    use std::sync::Arc;

    fn run(suite: Suite, hour: u64, scores: Option<&[f64]>) -> Run {
        let model = TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap();
        let outcome = match scores {
            Some(scores) => {
                RunOutcome::Scored(scores.iter().map(|s| Trial::new([*s; 7], 10.0, 0.5).unwrap()).collect())
            }
            None => RunOutcome::Failed(RunFailure::Throttled),
        };
        Run::new(Arc::new(model), suite, Hour::of(Wall::default()).plus(hour).start(), outcome).unwrap()
    }

    fn series(runs: &[Run]) -> ScoreSeries {
        let mut series = ScoreSeries::new(Hour::of(Wall::default()).plus(10).last(10));
        for run in runs {
            series.add(run);
        }
        series
    }

    fn all() -> HourRange {
        Hour::of(Wall::default()).plus(10).last(10)
    }

    #[test]
    fn a_throttled_run_is_counted_without_affecting_scores() {
        let good = Suite::ALL.map(|suite| run(suite, 1, Some(&[0.5, 0.7])));
        let before = series(&good).over(all());
        let mut with_failures = series(&good);
        for suite in Suite::ALL {
            with_failures.add(&run(suite, 2, None));
        }
        let after = with_failures.over(all());
        assert_eq!(before.score(), after.score());
        assert!((after.score().unwrap().mean - 60.0).abs() < 1e-9);
        assert_eq!((after.runs(), after.scored(), after.trials()), ((6, 3), 3, 6));
        assert_eq!(after.cost(), Some(0.5));
    }

    #[test]
    fn a_score_needs_every_suite() {
        let two = [run(Suite::Coding, 1, Some(&[0.5])), run(Suite::Reasoning, 1, Some(&[0.5]))];
        let reading = series(&two).over(all());
        assert_eq!(reading.score(), None);
        assert!(Suite::Coding.of(&reading.suites).score().is_some());
        assert_eq!(series(&two).newest_round(all()), None);
    }

    #[test]
    fn weighted_axes_add_up_to_the_score() {
        let mut runs = Vec::new();
        for (index, suite) in Suite::ALL.into_iter().enumerate() {
            let model = Arc::clone(run(suite, 0, None).model());
            let scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
                .map(|s| s + 0.1 * f64::from(u8::try_from(index).unwrap()));
            let trials = vec![Trial::new(scores, 1.0, 0.0).unwrap(); 2];
            runs.push(Run::new(model, suite, Wall::default(), RunOutcome::Scored(trials)).unwrap());
        }
        let reading = series(&runs).over(all());
        let from_axes: f64 = method::AXIS_WEIGHTS
            .iter()
            .zip(reading.axes())
            .map(|((_, w), axis)| w * axis.unwrap().mean)
            .sum();
        assert!((reading.score().unwrap().mean - from_axes).abs() < 1e-9);
    }

    #[test]
    fn a_range_of_whole_days_equals_the_sum_of_its_hours() {
        let window = Hour::of(Wall::default()).plus(100).last(100);
        let mut runs = ScoreSeries::new(window);
        for hour in 0..100 {
            for suite in Suite::ALL {
                runs.add(&run(suite, hour, Some(&[0.25, 0.5]).filter(|_| hour % 7 != 0).map(|s| &s[..])));
            }
        }
        for (to, from) in [(0, 48), (0, 24), (24, 72), (0, 96), (0, 120), (5, 53), (48, 48)] {
            let range = HourRange { from: window.to.minus(from), to: window.to.minus(to) };
            let by_hours = PeriodScores::sum(range.hours().filter_map(|hour| runs.at(hour)));
            let found = runs.over(range);
            assert_eq!((found.runs(), found.trials()), (by_hours.runs(), by_hours.trials()), "{to} {from}");
            let close = |a: Option<Estimate>, b: Option<Estimate>| match (a, b) {
                (Some(a), Some(b)) => (a.mean - b.mean).abs() < 1e-9,
                (a, b) => a == b,
            };
            assert!(close(found.score(), by_hours.score()));
        }
    }

    #[test]
    fn latencies_belong_to_their_range_for_any_import_order() {
        let at = |hour: u64, latency: f64| {
            let run = run(Suite::Coding, hour, None);
            let trials = vec![Trial::new([0.5; 7], latency, 0.0).unwrap()];
            Run::new(Arc::clone(run.model()), Suite::Coding, run.at(), RunOutcome::Scored(trials)).unwrap()
        };
        for order in [[2, 4, 4, 7], [7, 4, 2, 4]] {
            let mut runs = series(&[]);
            for hour in order {
                runs.add(&at(hour, f64::from(u32::try_from(hour).unwrap())));
            }
            let of = |from: u64, to: u64| {
                let first = Hour::of(Wall::default());
                runs.latencies_of(HourRange { from: first.plus(from), to: first.plus(to) })
            };
            assert_eq!(of(0, 10), [2.0, 4.0, 4.0, 7.0]);
            assert_eq!((of(0, 2), of(3, 5), of(5, 7)), (vec![], vec![4.0, 4.0], vec![]));
            assert_eq!((of(7, 8), of(8, 30)), (vec![7.0], vec![]));
        }
    }

    #[test]
    fn one_run_is_estimated_from_trials_and_several_from_means() {
        let one = series(&[run(Suite::Coding, 1, Some(&[0.4, 0.6]))]).over(all());
        assert!(
            (Suite::Coding.of(&one.suites).score().unwrap().spread.unwrap().variance - 100.0).abs() < 1e-9
        );
        let runs = [run(Suite::Coding, 1, Some(&[0.4, 0.6])), run(Suite::Coding, 2, Some(&[0.5, 0.5]))];
        let two = series(&runs).over(all());
        assert!(Suite::Coding.of(&two.suites).score().unwrap().spread.unwrap().variance < 1e-9);
    }
}
