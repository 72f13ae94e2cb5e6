//! The suites with a score in each hour of a window, and the resulting rounds and their length.
//!
//! A benchmark may run hourly or daily, or run each suite at a different hour. The length of a model's rounds is chosen
//! so that nearly every round has a score in all suites of the combined score.

use super::{
    hour::{Hour, HourRange},
    method,
    round_length::RoundLength,
    run::MAX_SUITES,
};

/// The suites with a score in each hour of a window.
#[derive(Clone, Debug)]
pub struct SuitePresence {
    window: HourRange,
    hours: Vec<SuiteSet>,
}

/// A set of suites: one bit for each position in the table.
type SuiteSet = u8;

/// For each suite, by its position in the table: the number of rounds of a range in which it has a score.
pub type SuiteRounds = [u32; MAX_SUITES];

impl SuitePresence {
    /// A window without any score.
    pub fn new(window: HourRange) -> Self {
        Self {
            window,
            hours: window.hours().map(|_| 0).collect(),
        }
    }

    /// Removes all scores.
    pub fn clear(&mut self) {
        self.hours.fill(0);
    }

    /// Adds a score of the suite at this position in the table to the hour with this index.
    pub fn add(&mut self, index: usize, suite: usize) {
        if let Some(suites) = self.hours.get_mut(index) {
            *suites |= 1 << suite;
        }
    }

    /// For each suite, the number of rounds of a range in which it has a score.
    pub fn rounds(&self, range: HourRange, length: RoundLength) -> SuiteRounds {
        let mut counts = SuiteRounds::default();
        for suites in self.by_round(range, length) {
            for (index, count) in counts.iter_mut().enumerate() {
                *count += u32::from(suites >> index & 1);
            }
        }
        counts
    }

    /// The length of a round for a score with these suite weights, based on the newest week with scores.
    ///
    /// This is the shortest length for which at least three quarters of the rounds with any suite of the score have all of its
    /// suites. If there is no such length, it is the length with the largest share. The length is at least the usual
    /// distance between complete rounds.
    pub fn round_length(&self, weights: &[f64]) -> RoundLength {
        let fed = weights.iter().zip(0..).filter(|(weight, _)| **weight > 0.0);
        let score: SuiteSet = fed.fold(0, |set, (_, index)| set | 1 << index);
        let newest = self
            .window
            .hours()
            .zip(&self.hours)
            .filter(|(_, suites)| **suites & score != 0)
            .last();
        let Some((newest, _)) = newest else {
            return RoundLength::HOUR;
        };
        let mut best = (self.week(RoundLength::HOUR, newest, score), 0.0);
        for length in method::ROUND_HOURS {
            let week = self.week(RoundLength::of(length), newest, score);
            let share = week.complete_share();
            if share > best.1 {
                best = (week, share);
            }
            if share >= method::ROUND_COMPLETE_SHARE {
                break;
            }
        }
        let least = best.0.length.hours().max(best.0.usual_distance());
        let lengths = method::ROUND_HOURS.into_iter();
        RoundLength::of(
            lengths
                .clone()
                .find(|hours| *hours >= least)
                .or(lengths.last())
                .unwrap_or(1),
        )
    }

    /// The rounds of the week before the newest round, and the newest round if it is complete.
    fn week(&self, length: RoundLength, newest: Hour, score: SuiteSet) -> WeekOfRounds {
        let current = length.round_of(newest);
        let is_complete = |suites: &SuiteSet| suites & score == score;
        let week = self.by_round(current.from.last(method::ROUND_WEEK_HOURS), length);
        let current = self.by_round(current, length).filter(is_complete);
        let mut rounds = WeekOfRounds {
            length,
            begun: 0,
            complete: Vec::new(),
        };
        for (suites, number) in week.chain(current).zip(0..) {
            rounds.begun += u32::from(suites & score != 0);
            rounds
                .complete
                .extend(is_complete(&suites).then_some(number));
        }
        rounds
    }

    /// The suites of each round that a range touches, counting only the hours of the range.
    fn by_round(&self, range: HourRange, length: RoundLength) -> impl Iterator<Item = SuiteSet> {
        let first = range.from.max(self.window.from);
        let [from, to] = [range.from, range.to].map(|hour| self.window.hours_before(hour));
        let hours = self.hours.get(from..to).unwrap_or_default();
        // The first round may have begun before the range.
        let whole = usize::try_from(length.hours()).unwrap_or(usize::MAX);
        let rest =
            usize::try_from(length.round_of(first).to.number() - first.number()).unwrap_or(whole);
        let (head, tail) = hours.split_at_checked(rest).unwrap_or((hours, &[]));
        std::iter::once(suites_of(head)).chain(tail.chunks(whole).map(suites_of))
    }
}

fn suites_of(round: &[SuiteSet]) -> SuiteSet {
    round.iter().fold(0, |set, suites| set | suites)
}

/// The rounds of a week for one round length.
struct WeekOfRounds {
    length: RoundLength,
    /// Rounds with any suite of the score.
    begun: u32,
    /// The positions of the rounds with all suites of the score.
    complete: Vec<u32>,
}

impl WeekOfRounds {
    fn complete_share(&self) -> f64 {
        let complete = u32::try_from(self.complete.len()).unwrap_or(u32::MAX);
        if self.begun > 0 {
            f64::from(complete) / f64::from(self.begun)
        } else {
            0.0
        }
    }

    /// The median distance between the starts of complete rounds, in hours. For an even number of distances, it is the
    /// larger of the two middle values.
    fn usual_distance(&self) -> u64 {
        let nexts = self.complete.iter().skip(1);
        let mut distances: Vec<u32> = self
            .complete
            .iter()
            .zip(nexts)
            .map(|(one, next)| next - one)
            .collect();
        distances.sort_unstable();
        let rounds = distances.get(distances.len() / 2).copied().unwrap_or(1);
        u64::from(rounds) * self.length.hours()
    }
}
