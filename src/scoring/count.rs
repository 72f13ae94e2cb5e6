//! Runs of one suite, counted as sums, so the size does not depend on the number of trials.
//!
//! An hour is kept in this form, the archive stores it, and longer periods add it up. Statistics of the sums are in
//! `statistics`.

use crate::clock::Wall;

use super::method;
use super::run::{Run, RunOutcome};
use super::statistics::{Estimate, SampleSums};

/// The combined score of a trial, then its axes in the order of `Axis::ALL`, then their plain mean.
pub(super) type Marks<T> = [T; 9];

/// The sum of samples, and the sum of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PowerSums {
    pub sum: f64,
    pub squares: f64,
}

/// Runs of one suite, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RunCounts {
    pub runs: u32,
    /// Failed runs.
    pub failed: u32,
    /// Trials with a score.
    pub trials: u32,
    /// Failed trials in runs with a score.
    pub failed_trials: u32,
    /// The newest run that did not fail.
    pub last_scored: Option<Wall>,
    /// Total cost of the trials in dollars.
    pub cost: f64,
    /// Samples are runs, because the trials of one run are correlated. With a single run, only its trials show the
    /// spread: then they are the samples.
    pub marks: Marks<PowerSums>,
}

impl PowerSums {
    fn add(&mut self, sample: f64) {
        self.sum += sample;
        self.squares += sample * sample;
    }
}

impl RunCounts {
    /// No runs.
    pub(super) const EMPTY: Self = Self {
        runs: 0,
        failed: 0,
        trials: 0,
        failed_trials: 0,
        last_scored: None,
        cost: 0.0,
        marks: [PowerSums { sum: 0.0, squares: 0.0 }; 9],
    };

    /// Adds a run.
    pub(super) fn add(&mut self, run: &Run) {
        let mut one = Self { runs: 1, ..Self::default() };
        match run.outcome() {
            RunOutcome::Failed(_) => one.failed = 1,
            RunOutcome::Scored(trials) => {
                for trial in trials {
                    one.trials += 1;
                    one.cost += trial.cost();
                    for (sums, mark) in one.marks.iter_mut().zip(marks(trial.scores())) {
                        sums.add(mark);
                    }
                }
                one.failed_trials = run.failed_trials().iter().map(|_| 1).sum();
                one.last_scored = Some(run.at());
            }
        }
        self.merge(&one);
    }

    /// Adds the counts of another.
    pub(super) fn merge(&mut self, other: &Self) {
        self.merge_marks(other);
        self.runs += other.runs;
        self.failed += other.failed;
        self.trials += other.trials;
        self.failed_trials += other.failed_trials;
        self.cost += other.cost;
        self.last_scored = self.last_scored.max(other.last_scored);
    }

    /// Runs that carry a score.
    pub(super) fn scored(&self) -> u32 {
        self.runs - self.failed
    }

    /// The suite's score in points.
    pub(super) fn score(&self) -> Option<Estimate> {
        self.estimate(0)
    }

    /// A mark in points.
    pub(super) fn estimate(&self, mark: usize) -> Option<Estimate> {
        let PowerSums { sum, squares } = *self.marks.get(mark)?;
        let sums = SampleSums { count: self.samples(), sum, squares };
        sums.estimate().map(|estimate| estimate.scaled(100.0))
    }

    /// The means of the marks, from 0 to 1.
    pub(super) fn means(&self) -> Option<Marks<f64>> {
        let samples = f64::from(self.samples());
        if samples <= 0.0 {
            return None;
        }
        let mut means = Marks::default();
        // A loop, because a refresh comes here hundreds of thousands of times and `map` on arrays costs calls.
        for (mean, sums) in means.iter_mut().zip(&self.marks) {
            *mean = sums.sum / samples;
        }
        Some(means)
    }

    fn samples(&self) -> u32 {
        if self.scored() == 1 { self.trials } else { self.scored() }
    }

    fn merge_marks(&mut self, other: &Self) {
        if other.scored() == 0 {
            return;
        }
        if self.scored() == 0 {
            self.marks = other.marks;
            return;
        }
        if self.scored() == 1 {
            self.marks = by_run(&self.marks, self.trials);
        }
        let merge = |mine: &mut Marks<PowerSums>, theirs: &Marks<PowerSums>| {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.sum += theirs.sum;
                mine.squares += theirs.squares;
            }
        };
        if other.scored() == 1 {
            merge(&mut self.marks, &by_run(&other.marks, other.trials));
        } else {
            merge(&mut self.marks, &other.marks);
        }
    }
}

/// The sums of one run's trials as the sums of one sample, the run.
fn by_run(of_trials: &Marks<PowerSums>, trials: u32) -> Marks<PowerSums> {
    let trials = f64::from(trials);
    let mut of_run = Marks::default();
    for (of_run, of_trials) in of_run.iter_mut().zip(of_trials) {
        let mean = of_trials.sum / trials;
        *of_run = PowerSums { sum: mean, squares: mean * mean };
    }
    of_run
}

fn marks(axes: &[f64; 7]) -> Marks<f64> {
    let combined = method::AXIS_WEIGHTS.iter().zip(axes).map(|((_, weight), score)| weight * score).sum();
    let mut marks = [combined; 9];
    let [_, of_axes @ .., mean] = &mut marks;
    *of_axes = *axes;
    *mean = axes.iter().sum::<f64>() / 7.0;
    marks
}
