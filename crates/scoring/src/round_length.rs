//! The length of a model's rounds, in hours.

use super::hour::{Hour, HourRange};

use super::method::RoundCount;

/// The length of a model's rounds, which is a divisor of a day. Rounds begin at multiples of it, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundLength(u64);

impl RoundLength {
    /// Rounds of one hour.
    pub const HOUR: Self = Self(1);

    /// Rounds of `hours` hours.
    pub const fn of(hours: u64) -> Self {
        Self(if hours == 0 { 1 } else { hours })
    }

    pub const fn hours(self) -> u64 {
        self.0
    }

    /// The hours of the round that contains `hour`.
    pub const fn round_of(self, hour: Hour) -> HourRange {
        let from = Hour::numbered(hour.number() - hour.number() % self.0);
        HourRange {
            from,
            to: from.plus(self.0),
        }
    }

    /// The number of rounds that overlap a range.
    pub fn rounds_in(self, range: HourRange) -> usize {
        let rounds = range.to.number().div_ceil(self.0) - range.from.number() / self.0;
        usize::try_from(rounds).unwrap_or(usize::MAX)
    }

    /// The number of rounds of this length for `count`.
    pub fn rounds(self, count: RoundCount) -> usize {
        let hours = usize::try_from(self.0).unwrap_or(usize::MAX);
        (count.hourly / hours).max(count.least)
    }
}
