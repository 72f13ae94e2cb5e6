//! Hours of the UTC calendar, which are the resolution of all scores, and ranges of hours.

use std::time::Duration;

use scoregate_base::{clock::Wall, routes::Period};

use super::method;

const SECONDS: u64 = 3_600;

/// An hour, counted from 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hour(u64);

/// A half-open range of hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourRange {
    /// The first hour.
    pub from: Hour,
    /// The first hour after the range.
    pub to: Hour,
}

impl Hour {
    /// The hour that contains a time.
    pub const fn of(at: Wall) -> Self {
        Self(at.seconds() / SECONDS)
    }

    /// The hour with this number.
    pub const fn numbered(number: u64) -> Self {
        Self(number)
    }

    /// The time at which the hour begins.
    pub const fn start(self) -> Wall {
        Wall::from_seconds(self.0.saturating_mul(SECONDS))
    }

    /// Hours since 1970-01-01.
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The hour `hours` hours later.
    pub const fn plus(self, hours: u64) -> Self {
        Self(self.0.saturating_add(hours))
    }

    /// The hour `hours` hours earlier, but not before 1970.
    pub const fn minus(self, hours: u64) -> Self {
        Self(self.0.saturating_sub(hours))
    }

    /// The range of `hours` hours that ends at the beginning of this hour.
    pub const fn last(self, hours: u64) -> HourRange {
        HourRange {
            from: self.minus(hours),
            to: self,
        }
    }
}

impl HourRange {
    /// The range that contains only this hour.
    pub const fn one(hour: Hour) -> Self {
        Self {
            from: hour,
            to: hour.plus(1),
        }
    }

    /// The preceding range of equal length.
    pub const fn before(self) -> Self {
        self.from.last(self.to.0.saturating_sub(self.from.0))
    }

    /// Whether the range contains an hour.
    pub fn has(self, hour: Hour) -> bool {
        (self.from..self.to).contains(&hour)
    }

    /// Whether the range contains a time.
    pub fn holds(self, at: Wall) -> bool {
        self.has(Hour::of(at))
    }

    /// The number of hours of the range that are before `hour`.
    pub fn hours_before(self, hour: Hour) -> usize {
        usize::try_from(hour.clamp(self.from, self.to).0 - self.from.0).unwrap_or(usize::MAX)
    }

    /// The hours of the range, oldest first.
    pub fn hours(self) -> impl DoubleEndedIterator<Item = Hour> {
        (self.from.0..self.to.0).map(Hour)
    }

    /// The parts of the calendar, of `hours` hours each, that begin in the range, oldest first. Each part begins at a
    /// multiple of `hours`, regardless of the end of the range. The newest part may be incomplete.
    pub fn calendar_parts(self, hours: u64) -> impl Iterator<Item = Self> {
        let hours = hours.max(1);
        let first = self.from.0.div_ceil(hours);
        let last = self.to.0.div_ceil(hours);
        (first..last).map(move |part| {
            let from = Hour(part * hours);
            Self {
                from,
                to: from.plus(hours).min(self.to),
            }
        })
    }

    /// The time between `at` and the end of the range.
    pub fn age(self, at: Wall) -> Duration {
        self.to.start().since(at)
    }
}

/// Number of hours in a period. `latest` is the newest hour, whose score may come from an older hour, see
/// [`method::LATEST_REACH_HOURS`].
pub fn hours_of(period: Period) -> u64 {
    *of_period(period, &method::PERIOD_HOURS)
}

/// The element for a period, in an array ordered like [`Period::ALL`].
pub fn of_period<T>(period: Period, [latest, day, week, month]: &[T; 4]) -> &T {
    match period {
        Period::Latest => latest,
        Period::Day => day,
        Period::Week => week,
        Period::Month => month,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_its_first_instant_and_not_its_end() {
        let hour = Hour::of(Wall::parse_rfc3339("2026-11-21T12:34:56Z").unwrap());
        assert_eq!(hour.start().rfc3339(), "2026-11-21T12:00:00Z");
        let day = hour.last(24);
        assert!(day.holds(day.from.start()) && !day.holds(hour.start()));
        assert_eq!(day.before().to, day.from);
        assert_eq!(day.before().hours().count(), 24);
    }

    #[test]
    fn calendar_parts_begin_at_the_same_instants_for_every_end() {
        let noon = Hour::of(Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap());
        let starts = |end: Hour| {
            end.last(24)
                .calendar_parts(3)
                .map(|part| part.from)
                .collect::<Vec<_>>()
        };
        for (later, shift) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2)] {
            let expected: Vec<Hour> = (shift..shift + 8)
                .map(|part| noon.minus(24).plus(3 * part))
                .collect();
            assert_eq!(starts(noon.plus(later)), expected, "{later}");
        }
        let newest = noon.plus(1).last(24).calendar_parts(3).last().unwrap();
        assert_eq!((newest.from, newest.to), (noon, noon.plus(1)));
        assert!(
            noon.last(24)
                .calendar_parts(3)
                .all(|part| part.hours().count() == 3)
        );
    }

    #[test]
    fn every_period_has_its_own_index() {
        for (index, period) in Period::ALL.into_iter().enumerate() {
            assert_eq!(*of_period(period, &[0, 1, 2, 3]), index);
        }
    }
}
