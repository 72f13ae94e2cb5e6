//! The series of one model: its runs, counted by hour and suite, and the sums of any range of hours.
//!
//! Runs are counted and then dropped. `count` defines the counts, and `period_scores` the scores of a range.

#[cfg(test)]
#[path = "tests_of_series.rs"]
mod tests;

use std::{cell::OnceCell, sync::Arc};

use scoregate_base::{clock::Wall, routes::SortBy};

use super::{
    count::RunCounts,
    hour::{Hour, HourRange},
    method,
    period_scores::{PeriodScores, ScorePart, ScoreRound, axes, last_scored, mean},
    presence::SuitePresence,
    round_length::RoundLength,
    run::{Run, SuiteTable, Trial},
};

const DAY: u64 = 24;

/// All hours of one model within a window.
#[derive(Clone, Debug)]
pub struct ScoreSeries {
    table: Arc<SuiteTable>,
    window: HourRange,
    /// Counts by hour and, within an hour, in the order of the table. All are in one allocation.
    hours: Vec<RunCounts>,
    /// The suites with a score in each hour.
    presence: SuitePresence,
    /// The latencies of all trials in suites that feed `speed`, by hour.
    latencies: Vec<f64>,
    /// The end of each hour's latencies, for hours with runs.
    latency_ends: Vec<usize>,
    /// The length of a round, computed on first use.
    round_length: OnceCell<RoundLength>,
    /// The complete rounds, oldest first, computed on first use.
    rounds: OnceCell<Vec<ScoreRound>>,
    /// The sums of whole days counted back from the window's end, newest first, each in the order of the table.
    /// Computed on first use.
    days: OnceCell<Vec<RunCounts>>,
    /// The time of the first run, even if it is before the window.
    first_seen: Option<Wall>,
}

impl ScoreSeries {
    /// A series without runs for this window.
    pub fn new(table: Arc<SuiteTable>, window: HourRange) -> Self {
        let suites = table.suites().len();
        Self {
            hours: window
                .hours()
                .flat_map(|_| std::iter::repeat_n(RunCounts::default(), suites))
                .collect(),
            presence: SuitePresence::new(window),
            latencies: Vec::new(),
            latency_ends: Vec::new(),
            round_length: OnceCell::new(),
            rounds: OnceCell::new(),
            days: OnceCell::new(),
            first_seen: None,
            table,
            window,
        }
    }

    /// Removes all runs but keeps the allocations.
    pub fn clear(&mut self) {
        for count in self.hours.iter_mut().filter(|count| count.runs > 0) {
            *count = RunCounts::default();
        }
        self.presence.clear();
        self.latencies.clear();
        self.latency_ends.clear();
        self.first_seen = None;
        self.clear_derived();
    }

    /// Records the time of a run.
    pub fn record_time(&mut self, at: Wall) {
        self.first_seen = Some(self.first_seen.map_or(at, |first| first.min(at)));
    }

    /// When the model was last updated: the time of the newest run with a score or, if there is none, of the first run.
    pub fn last_updated(&self) -> Wall {
        let scored = self.hours.rchunks(self.width()).find_map(last_scored);
        scored
            .or(self.first_seen)
            .unwrap_or(self.window.from.start())
    }

    /// Counts a run. If the run is outside the window, or its suite is not in the table, only its time is recorded.
    pub fn add(&mut self, run: &Run) {
        self.record_time(run.at());
        let table = Arc::clone(&self.table);
        let Some((index, suite)) = table.index(run.suite()).zip(table.entry(run.suite())) else {
            return;
        };
        let mut count = RunCounts::default();
        count.add(run, suite);
        let latencies = if count.runs > 0 { run.trials() } else { &[] };
        let latencies: Vec<f64> = latencies.iter().filter_map(Trial::latency_ms).collect();
        self.put(Hour::of(run.at()), index, &count, &latencies);
    }

    /// Adds counted runs of one hour and of the suite at this position in the table, with the latencies of their
    /// trials.
    pub fn put(&mut self, hour: Hour, suite: usize, count: &RunCounts, latencies: &[f64]) {
        let width = self.width();
        let Some(index) = self.index(hour) else {
            return;
        };
        let Some(counted) = self.hours.get_mut(index * width + suite) else {
            return;
        };
        counted.merge(count);
        if count.scored > 0 {
            self.presence.add(index, suite);
        }
        self.clear_derived();
        let feeds_speed = self
            .table
            .weights(SortBy::Speed)
            .get(suite)
            .is_some_and(|weight| *weight > 0.0);
        let latencies = if feeds_speed { latencies } else { &[] };
        if self.latency_ends.len() <= index {
            self.latency_ends.resize(index + 1, self.latencies.len());
        }
        // Usually inserted at the end, because sources are sorted by hour.
        let at = self.latency_ends.get(index).copied().unwrap_or_default();
        self.latencies.splice(at..at, latencies.iter().copied());
        self.latency_ends
            .iter_mut()
            .skip(index)
            .for_each(|end| *end += latencies.len());
    }

    /// The scores of a range.
    pub fn over(&self, range: HourRange) -> PeriodScores {
        let rounds = self.presence.rounds(range, self.round_length());
        // Most ranges end when the window ends, or a whole number of days earlier. The sums of these days are computed only once.
        match (self.days_ago(range.to), self.days_ago(range.from)) {
            (Some(newest), Some(oldest)) if newest + 1 < oldest => {
                let days = self.days().chunks(self.width());
                let days: Vec<&[RunCounts]> = days.skip(newest).take(oldest - newest).collect();
                PeriodScores::sum(&self.table, rounds, days.into_iter().rev())
            }
            _ => PeriodScores::sum(
                &self.table,
                rounds,
                range.hours().filter_map(|hour| self.at(hour)),
            ),
        }
    }

    /// The number of days from an hour to the end of the window, if it is a whole number.
    fn days_ago(&self, hour: Hour) -> Option<usize> {
        let hours = self.window.to.number().checked_sub(hour.number())?;
        hours
            .is_multiple_of(DAY)
            .then(|| usize::try_from(hours / DAY).ok())?
    }

    /// The length of a round of this model: the shortest length for which nearly every round is complete.
    pub fn round_length(&self) -> RoundLength {
        *self.round_length.get_or_init(|| {
            self.presence
                .round_length(self.table.weights(SortBy::Combined))
        })
    }

    fn days(&self) -> &[RunCounts] {
        self.days.get_or_init(|| {
            let width = self.width();
            let mut days = Vec::new();
            for day in self
                .hours
                .rchunks(width * usize::try_from(DAY).unwrap_or(1))
            {
                let start = days.len();
                days.resize(start + width, RunCounts::default());
                for hour in day.chunks(width) {
                    days.iter_mut()
                        .skip(start)
                        .zip(hour)
                        .for_each(|(sum, count)| sum.merge(count));
                }
            }
            days
        })
    }

    /// The suite table.
    pub fn table(&self) -> &SuiteTable {
        &self.table
    }

    /// For each of several scores, the rounds of a range that have it, oldest first.
    pub fn part_values(&self, range: HourRange, parts: &[ScorePart<'_>]) -> Vec<Vec<ScoreRound>> {
        let mut values = vec![Vec::new(); parts.len()];
        self.each_round(range, |hour, counts| {
            for (values, part) in values.iter_mut().zip(parts) {
                values.extend(mean(counts, *part).map(|score| ScoreRound { hour, score }));
            }
        });
        values
    }

    /// Passes the counts of every round within a range to `each`, oldest first. The newest round of the series may
    /// still be in progress.
    fn each_round(&self, range: HourRange, mut each: impl FnMut(Hour, &[RunCounts])) {
        let width = self.width();
        let length = self.round_length();
        let first = range.from.max(self.window.from);
        let mut round = length.round_of(first);
        if round.from < first {
            round = length.round_of(round.to);
        }
        let mut sums = Vec::with_capacity(width);
        while round.to.min(self.window.to) <= range.to && round.from < self.window.to {
            let hours = self.between(round);
            if hours.len() <= width {
                each(round.from, hours);
            } else {
                sums.clear();
                sums.resize(width, RunCounts::default());
                for hour in hours.chunks(width) {
                    sums.iter_mut()
                        .zip(hour)
                        .for_each(|(sum, count)| sum.merge(count));
                }
                each(round.from, &sums);
            }
            round = length.round_of(round.to);
        }
    }

    /// The counts of the hours of a range that are within the window.
    fn between(&self, range: HourRange) -> &[RunCounts] {
        self.hours
            .get(self.counts_before(range.from)..self.counts_before(range.to))
            .unwrap_or_default()
    }

    /// Number of counts of hours before `hour`.
    fn counts_before(&self, hour: Hour) -> usize {
        self.window.hours_before(hour) * self.width()
    }

    /// Number of counts per hour.
    fn width(&self) -> usize {
        self.table.suites().len()
    }

    fn clear_derived(&mut self) {
        self.round_length.take();
        self.rounds.take();
        self.days.take();
    }

    /// The counts of one hour, in the order of the table; `None` if it is outside the window.
    pub fn at(&self, hour: Hour) -> Option<&[RunCounts]> {
        Some(self.between(HourRange::one(hour))).filter(|counts| !counts.is_empty())
    }

    /// The complete rounds that begin in a range, oldest first. In a complete round, every suite of the combined score
    /// has a score.
    pub fn rounds(&self, range: HourRange) -> &[ScoreRound] {
        let rounds = self.rounds.get_or_init(|| {
            let mut rounds = Vec::new();
            self.each_round(self.window, |hour, counts| {
                rounds.extend(ScoreRound::of(&self.table, hour, counts));
            });
            rounds
        });
        let before = |hour: Hour| rounds.partition_point(|round| round.hour < hour);
        rounds
            .get(before(range.from)..before(range.to))
            .unwrap_or_default()
    }

    /// The complete rounds within a range, with the scores on the axes.
    pub fn axis_rounds(&self, range: HourRange) -> Vec<(Hour, [Option<f64>; 7])> {
        let mut rounds = Vec::new();
        self.each_round(range, |hour, counts| {
            if ScoreRound::of(&self.table, hour, counts).is_some() {
                rounds.push((hour, axes(&self.table, counts)));
            }
        });
        rounds
    }

    /// The newest complete round that began before an hour, if it ended less than a day before that hour.
    pub fn newest_round(&self, before: Hour) -> Option<HourRange> {
        let reach = method::LATEST_REACH_HOURS + self.round_length().hours() - 1;
        let newest = self.rounds(before.last(reach)).last()?;
        Some(self.round_length().round_of(newest.hour))
    }

    /// The latencies of the trials in a range.
    pub fn latencies_of(&self, range: HourRange) -> &[f64] {
        let from = self.trials_before(range.from);
        let to = self.trials_before(range.to);
        self.latencies.get(from..to).unwrap_or_default()
    }

    fn trials_before(&self, hour: Hour) -> usize {
        let Some(last) = self.window.hours_before(hour).checked_sub(1) else {
            return 0;
        };
        self.latency_ends
            .get(last)
            .copied()
            .unwrap_or(self.latencies.len())
    }

    fn index(&self, hour: Hour) -> Option<usize> {
        self.window
            .has(hour)
            .then(|| self.window.hours_before(hour))
    }
}
