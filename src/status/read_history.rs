//! The history from the store. Old days are read once a day. The most recent days are read every time, because gateways may
//! store minutes up to three days late.

use std::{collections::BTreeMap, ops::Range};

use crate::pages::status::{DayAvailability, SHOWN_DAYS, last_days};
use scoregate_base::clock::{Day, Wall};
use scoregate_store::{DAY_MINUTES, StatusDay, StatusHistory, minute_of};

/// Number of days that are always read, including the current day.
const RECENT_DAYS: u64 = 4;

/// The minutes by day, up to a certain minute.
#[derive(Debug, Default)]
pub struct ReadHistory {
    days: BTreeMap<Day, StatusDay>,
    first_minute: Option<u64>,
    /// The first minute that is not counted; `None` before the first reading.
    end: Option<u64>,
    /// The day on which all days were last read.
    all_read_on: Option<Day>,
}

impl ReadHistory {
    /// The minutes to read at `now`. The last two minutes are excluded: the current minute is not over, and the
    /// previous minute may not be stored yet.
    pub fn next_range(&self, now: Wall) -> Range<u64> {
        let end = minute_of(now).saturating_sub(1);
        let days = if self.all_read_on == Some(now.day()) {
            RECENT_DAYS
        } else {
            u64::from(SHOWN_DAYS)
        };
        let last_day = end.saturating_sub(1) / DAY_MINUTES;
        (last_day + 1).saturating_sub(days) * DAY_MINUTES..end
    }

    /// Adds the minutes that were read.
    pub fn read(&mut self, range: &Range<u64>, history: StatusHistory) {
        let start = day_of(range.start);
        self.days.retain(|day, _| *day < start);
        self.days
            .extend(history.days.into_iter().map(|stored| (stored.day, stored)));
        self.first_minute = history.first_minute;
        self.end = Some(range.end);
        if range.end.saturating_sub(range.start) > RECENT_DAYS * DAY_MINUTES {
            self.all_read_on = Some(day_of(range.end + 1));
        }
    }

    /// The days shown; empty before the history was first read.
    pub fn days(&self) -> Vec<DayAvailability> {
        let Some(end) = self.end else {
            return Vec::new();
        };
        let history = StatusHistory {
            first_minute: self.first_minute,
            days: self.days.values().copied().collect(),
        };
        last_days(&history, end)
    }

    /// The end of the counted minutes.
    pub fn end(&self) -> Option<Wall> {
        self.end.map(|end| Wall::from_seconds(end * 60))
    }

    /// The first minute ever stored.
    pub fn begun(&self) -> Option<Wall> {
        self.first_minute
            .map(|first| Wall::from_seconds(first.saturating_mul(60)))
    }
}

fn day_of(minute: u64) -> Day {
    Wall::from_seconds(minute.saturating_mul(60)).day()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: u64 = 20_413;

    fn at(minute: u64) -> Wall {
        Wall::from_seconds((TODAY * DAY_MINUTES + minute) * 60)
    }

    fn stored(days_ago: u64, ready: u64) -> StatusDay {
        StatusDay {
            day: day_of((TODAY - days_ago) * DAY_MINUTES),
            ready,
            fresh: 0,
        }
    }

    fn history(days: &[StatusDay]) -> StatusHistory {
        StatusHistory {
            first_minute: Some((TODAY - 50) * DAY_MINUTES),
            days: days.to_vec(),
        }
    }

    #[test]
    fn all_days_are_read_once_a_day_and_the_last_four_every_time() {
        let mut read = ReadHistory::default();
        assert_eq!((read.days(), read.end()), (Vec::new(), None));
        let range = read.next_range(at(10));
        assert_eq!(range, (TODAY - 89) * DAY_MINUTES..TODAY * DAY_MINUTES + 9);
        read.read(
            &range,
            history(&[stored(40, 7), stored(3, 5), stored(0, 9)]),
        );
        let range = read.next_range(at(11));
        assert_eq!(range, (TODAY - 3) * DAY_MINUTES..TODAY * DAY_MINUTES + 10);
        read.read(&range, history(&[stored(3, 6), stored(0, 10)]));
        let up = |read: &ReadHistory, ago: usize| read.days()[89 - ago].up;
        assert_eq!([40, 3, 0].map(|ago| up(&read, ago)), [7, 6, 10]);
        assert_eq!(read.end(), Some(at(10)));
        assert_eq!(
            read.begun(),
            Some(Wall::from_seconds((TODAY - 50) * 86_400))
        );
        let range = read.next_range(at(DAY_MINUTES + 5));
        assert_eq!(range.start, (TODAY - 88) * DAY_MINUTES);
    }

    #[test]
    fn shortly_after_midnight_the_last_day_is_the_one_that_ended() {
        let mut read = ReadHistory::default();
        let range = read.next_range(at(0));
        assert_eq!(range, (TODAY - 90) * DAY_MINUTES..TODAY * DAY_MINUTES - 1);
        read.read(&range, history(&[]));
        assert_eq!(
            read.next_range(at(1)).start,
            (TODAY - 4) * DAY_MINUTES,
            "all were read on this day"
        );
    }
}
