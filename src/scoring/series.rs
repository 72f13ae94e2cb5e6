//! The series of one model: its runs counted by hour and suite, and what any stretch of them says.
//!
//! Runs are counted and let go: an hour keeps sums, whatever the number of its trials. Not for: comparing models.

use crate::clock::Wall;

use super::hour::{Hour, Stretch};
use super::method;
use super::run::{Outcome, Run, Suite};
use super::statistics::{Estimate, Tally, median};

/// The combined score of a trial, then its axes in the order of `Axis::ALL`.
type Marks<T> = [T; 8];

/// Runs of one suite, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    /// Runs made.
    pub runs: u32,
    /// Those that failed.
    pub failed: u32,
    /// Trials of the others.
    pub trials: u32,
    /// The newest run that did not fail.
    pub last_scored: Option<Wall>,
    cost: f64,
    by_run: Marks<Tally>,
    by_trial: Marks<Tally>,
}

/// What a stretch says of a model.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Its suites, in the order of `Suite::ALL`.
    pub suites: [Count; 3],
}

/// The complete round of one hour: points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// The hour.
    pub hour: Hour,
    /// The combined score.
    pub score: f64,
    /// The axes.
    pub axes: [f64; 7],
}

/// All hours of one model, within a window.
#[derive(Clone, Debug)]
pub(super) struct Series {
    window: Stretch,
    hours: Vec<Reading>,
    latencies: Vec<(Hour, f64)>,
}

impl Series {
    /// A series of that window without a run.
    pub(super) fn new(window: Stretch) -> Self {
        let hours = window.hours().map(|_| Reading { suites: [Count::default(); 3] }).collect();
        Self { window, hours, latencies: Vec::new() }
    }

    /// Counts a run. One that lies outside the window is not counted.
    pub(super) fn add(&mut self, run: &Run) {
        let hour = Hour::of(run.at());
        let Some(reading) = self.place(hour).and_then(|place| self.hours.get_mut(place)) else {
            return;
        };
        run.suite().of_mut(&mut reading.suites).add(run);
        match run.outcome() {
            Outcome::Scored(trials) => {
                self.latencies.extend(trials.iter().map(|trial| (hour, trial.latency_ms())));
            }
            Outcome::Failed(_) => {}
        }
    }

    /// What a stretch says.
    pub(super) fn over(&self, stretch: Stretch) -> Reading {
        let mut sum = Reading { suites: [Count::default(); 3] };
        for reading in stretch.hours().filter_map(|hour| self.at(hour)) {
            for (sum, count) in sum.suites.iter_mut().zip(&reading.suites) {
                sum.merge(count);
            }
        }
        sum
    }

    /// What one hour says; `None` outside the window.
    pub(super) fn at(&self, hour: Hour) -> Option<&Reading> {
        self.hours.get(self.place(hour)?)
    }

    /// The complete rounds of a stretch, oldest first: hours in which every suite has a score.
    pub(super) fn rounds(&self, stretch: Stretch) -> impl DoubleEndedIterator<Item = Round> {
        stretch.hours().filter_map(|hour| {
            let reading = self.at(hour)?;
            let axes: Vec<f64> = (0..7).filter_map(|axis| reading.mean(axis + 1)).collect();
            Some(Round { hour, score: reading.mean(0)?, axes: axes.try_into().ok()? })
        })
    }

    /// The hour of the newest complete round of a stretch.
    pub(super) fn newest_round(&self, stretch: Stretch) -> Option<Hour> {
        let complete = |hour: &Hour| self.at(*hour).is_some_and(|reading| reading.mean(0).is_some());
        stretch.hours().rev().find(complete)
    }

    /// The median latency of a trial in a stretch, in milliseconds.
    pub(super) fn latency(&self, stretch: Stretch) -> Option<f64> {
        median(self.latencies_of(stretch))
    }

    /// The latencies of the trials of a stretch.
    pub(super) fn latencies_of(&self, stretch: Stretch) -> Vec<f64> {
        let within = |hour: Hour| (stretch.from..stretch.to).contains(&hour);
        self.latencies.iter().filter(|(hour, _)| within(*hour)).map(|(_, latency)| *latency).collect()
    }

    fn place(&self, hour: Hour) -> Option<usize> {
        let inside = (self.window.from..self.window.to).contains(&hour);
        inside.then(|| usize::try_from(hour.number() - self.window.from.number()).ok())?
    }
}

impl Reading {
    /// The combined score in points. `None` if a suite has none: a score that left one out could not be compared.
    pub(super) fn score(&self) -> Option<Estimate> {
        self.weighted(0)
    }

    /// The axes in points, in the order of `Axis::ALL`; suites weigh in them as in the score.
    pub(super) fn axes(&self) -> [Option<Estimate>; 7] {
        [1, 2, 3, 4, 5, 6, 7].map(|mark| self.weighted(mark))
    }

    /// Runs made, and those that failed.
    pub(super) fn runs(&self) -> (u32, u32) {
        (self.suites.iter().map(|suite| suite.runs).sum(), self.suites.iter().map(|suite| suite.failed).sum())
    }

    /// Runs that carry a score.
    pub(super) fn scored(&self) -> u32 {
        self.suites.iter().map(Count::scored).sum()
    }

    /// Trials behind the scores.
    pub(super) fn trials(&self) -> u32 {
        self.suites.iter().map(|suite| suite.trials).sum()
    }

    /// The mean cost of a trial, in dollars.
    pub(super) fn cost(&self) -> Option<f64> {
        let cost: f64 = self.suites.iter().map(|suite| suite.cost).sum();
        (self.trials() > 0).then(|| cost / f64::from(self.trials()))
    }

    /// The newest run behind the scores.
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

    fn mean(&self, mark: usize) -> Option<f64> {
        let part = |(suite, weight): &(Suite, f64)| {
            Some(weight * suite.of(&self.suites).by_run.get(mark)?.mean()? * 100.0)
        };
        method::SUITE_WEIGHTS.iter().map(part).sum()
    }
}

impl Count {
    /// Runs that carry a score.
    pub(super) fn scored(&self) -> u32 {
        self.runs - self.failed
    }

    /// The suite's score in points.
    pub(super) fn score(&self) -> Option<Estimate> {
        self.estimate(0)
    }

    /// Runs are the samples, because the trials of one run share its luck. Where there is only one run, its trials are
    /// all that can be told of the spread.
    fn estimate(&self, mark: usize) -> Option<Estimate> {
        let samples = if self.scored() > 1 { &self.by_run } else { &self.by_trial };
        samples.get(mark)?.estimate().map(|estimate| estimate.scaled(100.0))
    }

    fn add(&mut self, run: &Run) {
        self.runs += 1;
        match run.outcome() {
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Scored(trials) => {
                let mut of_run: Marks<Tally> = Marks::default();
                for trial in trials {
                    self.trials += 1;
                    self.cost += trial.cost();
                    for (tally, mark) in of_run.iter_mut().zip(marks(trial.scores())) {
                        tally.add(mark);
                    }
                }
                for ((by_run, by_trial), tally) in self.by_run.iter_mut().zip(&mut self.by_trial).zip(of_run)
                {
                    by_trial.merge(tally);
                    tally.mean().into_iter().for_each(|mean| by_run.add(mean));
                }
                self.last_scored = self.last_scored.max(Some(run.at()));
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.failed += other.failed;
        self.trials += other.trials;
        self.cost += other.cost;
        self.last_scored = self.last_scored.max(other.last_scored);
        self.by_run.iter_mut().zip(other.by_run).for_each(|(tally, other)| tally.merge(other));
        self.by_trial.iter_mut().zip(other.by_trial).for_each(|(tally, other)| tally.merge(other));
    }
}

fn marks(axes: &[f64; 7]) -> Marks<f64> {
    let combined = method::AXIS_WEIGHTS.iter().zip(axes).map(|((_, weight), score)| weight * score).sum();
    let mut marks = [combined; 8];
    marks.iter_mut().skip(1).zip(axes).for_each(|(mark, score)| *mark = *score);
    marks
}

#[cfg(test)]
mod tests {
    use super::super::run::{Failure, Model, Trial};
    use super::*;
    use crate::routes::ModelId;
    use std::sync::Arc;

    fn run(suite: Suite, hour: u64, scores: Option<&[f64]>) -> Run {
        let model = Model::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap();
        let outcome = match scores {
            Some(scores) => {
                Outcome::Scored(scores.iter().map(|s| Trial::new([*s; 7], 10.0, 0.5).unwrap()).collect())
            }
            None => Outcome::Failed(Failure::Timeout),
        };
        Run::new(Arc::new(model), suite, Hour::of(Wall::default()).plus(hour).start(), outcome).unwrap()
    }

    fn series(runs: &[Run]) -> Series {
        let mut series = Series::new(Hour::of(Wall::default()).plus(10).last(10));
        for run in runs {
            series.add(run);
        }
        series
    }

    fn all() -> Stretch {
        Hour::of(Wall::default()).plus(10).last(10)
    }

    #[test]
    fn a_failed_run_is_counted_and_moves_no_score() {
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
    fn the_axes_weigh_up_to_the_score() {
        let mut runs = Vec::new();
        for (place, suite) in Suite::ALL.into_iter().enumerate() {
            let model = Arc::clone(run(suite, 0, None).model());
            let scores = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
                .map(|s| s + 0.1 * f64::from(u8::try_from(place).unwrap()));
            let trials = vec![Trial::new(scores, 1.0, 0.0).unwrap(); 2];
            runs.push(Run::new(model, suite, Wall::default(), Outcome::Scored(trials)).unwrap());
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
    fn one_run_is_judged_by_its_trials_and_several_by_their_means() {
        let one = series(&[run(Suite::Coding, 1, Some(&[0.4, 0.6]))]).over(all());
        assert!(
            (Suite::Coding.of(&one.suites).score().unwrap().spread.unwrap().variance - 100.0).abs() < 1e-9
        );
        let runs = [run(Suite::Coding, 1, Some(&[0.4, 0.6])), run(Suite::Coding, 2, Some(&[0.5, 0.5]))];
        let two = series(&runs).over(all());
        assert!(Suite::Coding.of(&two.suites).score().unwrap().spread.unwrap().variance < 1e-9);
    }
}
