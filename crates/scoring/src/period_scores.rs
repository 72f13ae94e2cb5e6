//! The scores of a range of hours or a round, weighted over the suites of the table.
//!
//! A measure needs a score in every suite that feeds it. Otherwise scores would not be comparable. `count` counts runs,
//! and `series` sums ranges.

use std::sync::Arc;

use scoregate_base::{clock::Wall, routes::SortBy};

use super::{
    count::{Attempts, RunCounts},
    hour::Hour,
    measure::Measure,
    presence::SuiteRounds,
    run::{SuiteEntry, SuiteTable},
};

/// The indexes of the marks for the combined score and for the unweighted mean of the axes. The marks of the axes are between them.
const COMBINED_MARK: usize = 0;
const MEAN_MARK: usize = 8;

/// The scores of a range.
#[derive(Clone, Debug)]
pub struct PeriodScores {
    table: Arc<SuiteTable>,
    /// Counts in the order of the table.
    suites: Vec<RunCounts>,
    rounds: SuiteRounds,
}

/// A score, defined by a mark of the trials and the weights of the suites that feed it, in the order of the table.
#[derive(Clone, Copy, Debug)]
pub struct ScorePart<'t> {
    mark: usize,
    pub weights: &'t [f64],
}

/// A complete round, in points.
#[derive(Clone, Copy, Debug)]
pub struct ScoreRound {
    /// The first hour of the round.
    pub hour: Hour,
    pub score: f64,
}

impl PeriodScores {
    /// The sum of several hours, each with one count per suite of the table, and the number of their rounds.
    pub fn sum<'c>(
        table: &Arc<SuiteTable>,
        rounds: SuiteRounds,
        hours: impl Iterator<Item = &'c [RunCounts]>,
    ) -> Self {
        let mut suites = vec![RunCounts::default(); table.suites().len()];
        for hour in hours {
            for (sum, count) in suites.iter_mut().zip(hour) {
                sum.merge(count);
            }
        }
        Self {
            table: Arc::clone(table),
            suites,
            rounds,
        }
    }

    /// The suites of the table with their counts.
    pub fn suites(&self) -> impl Iterator<Item = (&SuiteEntry, &RunCounts)> {
        self.table.suites().iter().zip(&self.suites)
    }

    /// The counts of the suites, in the order of the table.
    pub fn counts(&self) -> &[RunCounts] {
        &self.suites
    }

    /// The mean of a score, in points.
    pub fn mean(&self, part: ScorePart<'_>) -> Option<f64> {
        mean(&self.suites, part)
    }

    /// The scores on the axes.
    pub fn axes(&self) -> [Option<f64>; 7] {
        axes(&self.table, &self.suites)
    }

    /// The number of rounds of a score: the number of scored rounds of the suite with the fewest such rounds, but at least one.
    pub fn rounds(&self, part: ScorePart<'_>) -> u32 {
        let fed = self
            .rounds
            .iter()
            .zip(part.weights)
            .filter(|(_, weight)| **weight > 0.0);
        fed.map(|(rounds, _)| *rounds)
            .min()
            .unwrap_or_default()
            .max(1)
    }

    /// Number of runs, and number of failed runs.
    pub fn runs(&self) -> (u32, u32) {
        runs(&self.suites)
    }

    /// Number of runs in the scores.
    pub fn scored(&self) -> u32 {
        self.suites.iter().map(|suite| suite.scored).sum()
    }

    /// Number of trials in the scores of each axis, in the order of `Axis::ALL`.
    pub fn trials_of_axes(&self) -> [u32; 7] {
        let mut trials = [0; 7];
        for (suite, count) in self.suites() {
            for (trials, is_declared) in trials.iter_mut().zip(suite.axes().flags()) {
                *trials += if is_declared {
                    count.trials_in_score()
                } else {
                    0
                };
            }
        }
        trials
    }

    /// Trials that count for availability.
    pub fn attempts(&self) -> Attempts {
        self.suites.iter().map(RunCounts::attempts).sum()
    }

    /// The mean cost of the trials that have a cost, in dollars, in the suites that feed `price`.
    pub fn cost(&self) -> Option<f64> {
        let mut cost = 0.0;
        let mut trials = 0;
        for (_, count) in self
            .suites()
            .filter(|(suite, _)| suite.feeds().contains(&SortBy::Price))
        {
            cost += count.cost;
            trials += count.costed;
        }
        (trials > 0).then(|| cost / f64::from(trials))
    }

    /// The time of the newest run in the scores.
    pub fn last_scored(&self) -> Option<Wall> {
        last_scored(&self.suites)
    }
}

impl<'t> ScorePart<'t> {
    /// A score that models can be ranked by.
    pub fn measure(table: &'t SuiteTable, measure: Measure) -> Self {
        let mark = match measure {
            Measure::Combined | Measure::Coding | Measure::Reasoning | Measure::Tooling => {
                COMBINED_MARK
            }
            Measure::SevenAxis => MEAN_MARK,
        };
        Self {
            mark,
            weights: table.weights(measure.sort_by()),
        }
    }

    /// An axis, given by its position in `Axis::ALL`.
    pub fn axis(table: &'t SuiteTable, index: usize) -> Self {
        Self {
            mark: index + 1,
            weights: table.axis_weights().get(index).map_or(&[], Vec::as_slice),
        }
    }
}

impl ScoreRound {
    /// The round that begins at an hour, if every suite of the combined score has a score.
    pub fn of(table: &SuiteTable, hour: Hour, counts: &[RunCounts]) -> Option<Self> {
        let score = mean(counts, ScorePart::measure(table, Measure::Combined))?;
        Some(Self { hour, score })
    }
}

/// Number of runs of all suites, and number of failed runs.
pub fn runs(counts: &[RunCounts]) -> (u32, u32) {
    (
        counts.iter().map(|suite| suite.runs).sum(),
        counts.iter().map(|suite| suite.failed).sum(),
    )
}

/// The time of the newest run in the scores of all suites.
pub fn last_scored(counts: &[RunCounts]) -> Option<Wall> {
    counts.iter().filter_map(|suite| suite.last_scored).max()
}

/// The scores on the axes, in points. `None` if no suite has the axis, or a suite with the axis has no score.
pub fn axes(table: &SuiteTable, counts: &[RunCounts]) -> [Option<f64>; 7] {
    let mut axes = [None; 7];
    for (index, axis) in axes.iter_mut().enumerate() {
        *axis = mean(counts, ScorePart::axis(table, index));
    }
    axes
}

/// A weighted mean in points. Uses plain loops without allocations, because a refresh calls it for every hour of every
/// model.
pub fn mean(counts: &[RunCounts], part: ScorePart<'_>) -> Option<f64> {
    let mut sum = 0.0;
    let mut is_fed = false;
    for (count, weight) in counts
        .iter()
        .zip(part.weights)
        .filter(|(_, weight)| **weight > 0.0)
    {
        sum += weight * count.mean(part.mark)? * 100.0;
        is_fed = true;
    }
    is_fed.then_some(sum)
}
