//! Sums over the runs of one suite. Their size does not depend on the number of trials.
//!
//! Here a failure becomes a zero, a missing score, or nothing. `run` defines the meaning of failures. An hour is stored
//! in this form, and longer periods are sums of hours. `score_noise` determines the uncertainty of scores.

use scoregate_base::clock::Wall;

use super::run::{Run, RunOutcome, SuiteEntry, Trial};

/// The combined score of a trial, then its axes in the order of `Axis::ALL`, then the unweighted mean of the axes. Axes
/// that the suite does not declare are 0 and not used.
pub type Marks<T> = [T; 9];

/// The counts of the runs of one suite. Trials and runs that failed only because of the harness are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCounts {
    pub runs: u32,
    /// Runs in which every trial failed.
    pub failed: u32,
    /// Runs in the score, including failed ones that count as zero.
    pub scored: u32,
    /// Runs that failed as a whole and list no trials.
    pub unlisted: u32,
    /// Trials that have scores.
    pub trials: u32,
    /// Failed trials that are listed in runs.
    pub failed_trials: u32,
    /// Failed trials that count as zero. A run that failed as a whole may count as one such trial.
    pub zeroed: u32,
    /// Trials in the score with a combined mark of exactly 1.
    pub perfect: u32,
    /// Trials in the score with a combined mark of exactly 0.
    pub zero: u32,
    /// The newest run in the score.
    pub last_scored: Option<Wall>,
    /// Trials with a cost.
    pub costed: u32,
    /// Total cost of these trials in dollars.
    pub cost: f64,
    /// Sums of the means of the runs in the score. Every run has the same weight.
    pub marks: Marks<f64>,
}

/// Trials that count for availability. The numbers may be fractions, because a failed run without trials counts as an
/// average run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Attempts {
    pub all: f64,
    pub failed: f64,
}

impl std::iter::Sum for Attempts {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            all: a.all + b.all,
            failed: a.failed + b.failed,
        })
    }
}

impl Attempts {
    /// The share of trials that did not fail; `None` if there are none.
    pub fn availability(self) -> Option<f64> {
        (self.all > 0.0).then(|| (self.all - self.failed) / self.all)
    }
}

impl RunCounts {
    /// Adds a run of the suite. A run that was stored before an axis was added to the suite is not counted, because it
    /// cannot be compared with the others.
    pub fn add(&mut self, run: &Run, suite: &SuiteEntry) {
        if run.trials().iter().all(|trial| has_axes(trial, suite)) {
            self.merge(&Self::of(run, suite));
        }
    }

    fn of(run: &Run, suite: &SuiteEntry) -> Self {
        let mut one = Self::default();
        for failure in run.failures().iter().filter(|failure| failure.is_counted()) {
            one.failed_trials += 1;
            one.zeroed += u32::from(failure.counts_as_zero());
        }
        one.zero = one.zeroed;
        for trial in run.trials() {
            one.add_trial(trial, suite);
        }
        one.runs = u32::from(one.trials + one.failed_trials > 0);
        one.failed = u32::from(one.runs > 0 && one.trials == 0);
        if let RunOutcome::Failed(_) = run.outcome() {
            one.unlisted = one.runs;
            one.failed_trials = 0;
        }
        let trials = f64::from(one.trials_in_score());
        if trials > 0.0 {
            one.scored = 1;
            one.last_scored = Some(run.at());
            one.marks.iter_mut().for_each(|sum| *sum /= trials);
        }
        one
    }

    fn add_trial(&mut self, trial: &Trial, suite: &SuiteEntry) {
        self.trials += 1;
        self.costed += u32::from(trial.cost().is_some());
        self.cost += trial.cost().unwrap_or_default();
        let scores = || declared(trial, suite).map(|(_, score)| score);
        self.perfect += u32::from(scores().all(|score| score >= 1.0));
        self.zero += u32::from(scores().all(|score| score <= 0.0));
        for (sum, mark) in self.marks.iter_mut().zip(marks(trial, suite)) {
            *sum += mark;
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.marks.iter_mut().zip(&other.marks) {
            *mine += theirs;
        }
        self.runs += other.runs;
        self.failed += other.failed;
        self.scored += other.scored;
        self.unlisted += other.unlisted;
        self.trials += other.trials;
        self.failed_trials += other.failed_trials;
        self.zeroed += other.zeroed;
        self.perfect += other.perfect;
        self.zero += other.zero;
        self.costed += other.costed;
        self.cost += other.cost;
        self.last_scored = self.last_scored.max(other.last_scored);
    }

    /// Trials in the score, including failed ones that count as zero.
    pub fn trials_in_score(&self) -> u32 {
        self.trials + self.zeroed
    }

    /// The trials that count for availability. A run that failed as a whole counts as many trials as the other runs
    /// list on average, so that it has the same weight as they do.
    pub fn attempts(&self) -> Attempts {
        let listed = f64::from(self.trials + self.failed_trials);
        let listing = f64::from(self.runs - self.unlisted);
        let whole = f64::from(self.unlisted)
            * if listing > 0.0 {
                (listed / listing).max(1.0)
            } else {
                1.0
            };
        Attempts {
            all: listed + whole,
            failed: f64::from(self.failed_trials) + whole,
        }
    }

    /// Whether all trials in the score have a mark of 0 or 1.
    pub fn has_binary_marks(&self) -> bool {
        self.scored > 0 && self.perfect + self.zero == self.trials_in_score()
    }

    /// The suite's score in points.
    pub fn score(&self) -> Option<f64> {
        self.mean(0).map(|mean| mean * 100.0)
    }

    /// The mean of a mark, from 0 to 1.
    pub fn mean(&self, mark: usize) -> Option<f64> {
        let sum = self.marks.get(mark).filter(|_| self.scored > 0)?;
        Some(sum / f64::from(self.scored))
    }
}

/// Whether a trial has a score on every axis of its suite.
fn has_axes(trial: &Trial, suite: &SuiteEntry) -> bool {
    let mut scores = trial.scores().iter().zip(suite.axes().flags());
    scores.all(|(score, is_declared)| score.is_some() || !is_declared)
}

/// The weights and scores of a trial on the axes of its suite.
fn declared(trial: &Trial, suite: &SuiteEntry) -> impl Iterator<Item = (f64, f64)> {
    let weighed = suite.axis_weights().iter().zip(trial.scores());
    let flags = suite.axes().flags().into_iter();
    weighed
        .zip(flags)
        .filter(|(_, is_declared)| *is_declared)
        .filter_map(|((weight, score), _)| Some((*weight, (*score)?)))
}

fn marks(trial: &Trial, suite: &SuiteEntry) -> Marks<f64> {
    let mut marks = Marks::default();
    let [combined, of_axes @ .., mean] = &mut marks;
    let mut axes = 0.0;
    for (weight, score) in declared(trial, suite) {
        *combined += weight * score;
        *mean += score;
        axes += 1.0;
    }
    *mean /= axes;
    for ((mark, score), is_declared) in of_axes
        .iter_mut()
        .zip(trial.scores())
        .zip(suite.axes().flags())
    {
        *mark = score.filter(|_| is_declared).unwrap_or_default();
    }
    marks
}
