//! Runs of one suite, counted: sums, whatever the number of trials.
//!
//! What an hour keeps, what the archive stores for it, and what any longer stretch adds up to. Not for: hours (`series.rs`),
//! nor for what sums say of each other (`statistics.rs`).

use crate::clock::Wall;

use super::method;
use super::run::{Outcome, Run};
use super::statistics::{Estimate, Tally};

/// The combined score of a trial, then its axes in the order of `Axis::ALL`.
pub(super) type Marks<T> = [T; 8];

/// The sum of samples, and that of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

/// Runs of one suite, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Count {
    /// Runs made.
    pub runs: u32,
    /// Those that failed.
    pub failed: u32,
    /// Trials with a score.
    pub trials: u32,
    /// Trials that failed in runs that have a score.
    pub failed_trials: u32,
    /// The newest run that did not fail.
    pub last_scored: Option<Wall>,
    /// What the trials cost together, in dollars.
    pub cost: f64,
    /// Samples are the runs, because the trials of one run share its luck. While there is only one, its trials are all
    /// that can be told of the spread: then they are the samples.
    pub marks: Marks<Sums>,
}

impl Sums {
    fn add(&mut self, sample: f64) {
        self.sum += sample;
        self.squares += sample * sample;
    }
}

impl Count {
    /// Counts a run.
    pub(super) fn add(&mut self, run: &Run) {
        let mut one = Self { runs: 1, ..Self::default() };
        match run.outcome() {
            Outcome::Failed(_) => one.failed = 1,
            Outcome::Scored(trials) => {
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

    /// Counts what another has counted.
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
        let Sums { sum, squares } = *self.marks.get(mark)?;
        let tally = Tally { count: self.samples(), sum, squares };
        tally.estimate().map(|estimate| estimate.scaled(100.0))
    }

    /// The mean of a mark, from 0 to 1.
    pub(super) fn mean(&self, mark: usize) -> Option<f64> {
        let samples = self.samples();
        let sums = self.marks.get(mark).filter(|_| samples > 0)?;
        Some(sums.sum / f64::from(samples))
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
        let mine = self.by_run();
        let theirs = other.by_run();
        for ((mark, mine), theirs) in self.marks.iter_mut().zip(mine).zip(theirs) {
            *mark = Sums { sum: mine.sum + theirs.sum, squares: mine.squares + theirs.squares };
        }
    }

    /// The sums with runs as the samples, however many there are.
    fn by_run(&self) -> Marks<Sums> {
        if self.scored() != 1 {
            return self.marks;
        }
        let trials = f64::from(self.trials);
        self.marks.map(|of_trials| {
            let mean = of_trials.sum / trials;
            Sums { sum: mean, squares: mean * mean }
        })
    }
}

fn marks(axes: &[f64; 7]) -> Marks<f64> {
    let combined = method::AXIS_WEIGHTS.iter().zip(axes).map(|((_, weight), score)| weight * score).sum();
    let mut marks = [combined; 8];
    marks.iter_mut().skip(1).zip(axes).for_each(|(mark, score)| *mark = *score);
    marks
}
