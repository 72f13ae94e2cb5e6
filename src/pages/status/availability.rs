//! Availability in the last 90 days: minutes up, down and with stale data, and their shares. The functions are pure.

use scoregate_base::clock::{Day, Wall};
use scoregate_store::{DAY_MINUTES, StatusHistory};

/// Number of days that are shown.
pub const SHOWN_DAYS: u32 = 90;

/// The availability of the service on one day. Days before the first stored minute and minutes that have not ended are not
/// counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayAvailability {
    /// The day.
    pub day: Day,
    /// Number of counted minutes. Zero if there is no data.
    pub counted: u64,
    /// Counted minutes in which the service was up.
    pub up: u64,
    /// Minutes in which the service was up and the data was not stale.
    pub fresh: u64,
}

impl DayAvailability {
    /// Minutes in which the service was down.
    pub(super) fn down(&self) -> u64 {
        self.counted.saturating_sub(self.up)
    }

    /// Minutes in which the service was up with stale data.
    pub(super) fn stale(&self) -> u64 {
        self.up.saturating_sub(self.fresh)
    }
}

/// The last days up to the minute `end`, which is not counted. The oldest day comes first.
pub fn last_days(history: &StatusHistory, end: u64) -> Vec<DayAvailability> {
    let Some(last) = end.checked_sub(1) else {
        return Vec::new();
    };
    let last = Wall::from_seconds(last.saturating_mul(60)).day().number();
    let days = last.saturating_sub(SHOWN_DAYS - 1)..=last;
    days.map(|number| {
        let start = u64::from(number) * DAY_MINUTES;
        let first = history.first_minute.map_or(end, |first| first.max(start));
        let counted = end.min(start + DAY_MINUTES).saturating_sub(first);
        let stored = history
            .days
            .iter()
            .find(|stored| stored.day.number() == number);
        // Another gateway's clock may be ahead, so more minutes may be stored than have passed.
        let up = stored.map_or(0, |stored| stored.ready.min(counted));
        let fresh = stored.map_or(0, |stored| stored.fresh.min(up));
        DayAvailability {
            day: Day::from_number(number),
            counted,
            up,
            fresh,
        }
    })
    .collect()
}

/// The sums over all days.
pub fn total(days: &[DayAvailability]) -> DayAvailability {
    let add = |part: fn(&DayAvailability) -> u64| days.iter().map(part).sum();
    DayAvailability {
        day: days.first().map(|first| first.day).unwrap_or_default(),
        counted: add(|day| day.counted),
        up: add(|day| day.up),
        fresh: add(|day| day.fresh),
    }
}

/// Formats a share such as `99.98 %`. It is rounded down, so that only a complete share is shown as `100 %`.
pub fn share(part: u64, whole: u64) -> String {
    if part >= whole {
        return "100 %".into();
    }
    let hundredths = part.saturating_mul(10_000) / whole;
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Formats minutes as `2 d 3 h 5 min`, without the parts that are zero.
pub fn in_words(minutes: u64) -> String {
    let parts = [
        (minutes / DAY_MINUTES, "d"),
        (minutes % DAY_MINUTES / 60, "h"),
        (minutes % 60, "min"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = parts
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if words.is_empty() {
        "0 min".into()
    } else {
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_store::StatusDay;

    const TODAY: u32 = 20_413;
    const START: u64 = TODAY as u64 * DAY_MINUTES;

    fn stored(days_ago: u32, ready: u64, fresh: u64) -> StatusDay {
        StatusDay {
            day: Day::from_number(TODAY - days_ago),
            ready,
            fresh,
        }
    }

    fn history(first_minute: u64, days: &[StatusDay]) -> StatusHistory {
        StatusHistory {
            first_minute: Some(first_minute),
            days: days.to_vec(),
        }
    }

    /// Counted, up, down and stale minutes of the newest days, newest first.
    fn newest(days: &[DayAvailability], count: usize) -> Vec<[u64; 4]> {
        let numbers = |day: &DayAvailability| [day.counted, day.up, day.down(), day.stale()];
        days.iter().rev().take(count).map(numbers).collect()
    }

    #[test]
    fn gaps_count_as_down_and_days_before_the_first_minute_do_not_count() {
        let first = START - DAY_MINUTES - 100;
        let days = last_days(
            &history(first, &[stored(2, 99, 90), stored(0, 60, 60)]),
            START + 60,
        );
        assert_eq!(days.len(), 90);
        let expected = [
            [60, 60, 0, 0],
            [1_440, 0, 1_440, 0],
            [100, 99, 1, 9],
            [0, 0, 0, 0],
        ];
        assert_eq!(newest(&days, 4), expected);
        let whole = total(&days);
        assert_eq!((whole.counted, whole.up, whole.fresh), (1_600, 159, 150));
    }

    #[test]
    fn the_first_day_counts_from_its_first_minute_and_today_to_its_last_complete_one() {
        let days = last_days(&history(START + 30, &[stored(0, 10, 10)]), START + 40);
        assert_eq!(newest(&days, 2), [[10, 10, 0, 0], [0, 0, 0, 0]]);
        // Just after midnight, the previous day is the newest day.
        let days = last_days(&history(START - 20, &[stored(1, 19, 19)]), START);
        assert_eq!(days.last().unwrap().day.number(), TODAY - 1);
        assert_eq!(newest(&days, 1), [[20, 19, 1, 0]]);
    }

    #[test]
    fn without_history_no_day_counts() {
        let days = last_days(&StatusHistory::default(), START + 5);
        assert!(days.len() == 90 && days.iter().all(|day| day.counted == 0));
        assert_eq!(last_days(&StatusHistory::default(), 0), []);
        assert_eq!(
            newest(&last_days(&history(START + 9, &[]), START + 5), 1),
            [[0, 0, 0, 0]]
        );
    }

    #[test]
    fn a_share_is_never_rounded_up() {
        for (part, whole, text) in [
            (1, 1, "100 %"),
            (99_999, 100_000, "99.99 %"),
            (129_599, 129_600, "99.99 %"),
            (1_439, 1_440, "99.93 %"),
            (9_990, 10_000, "99.90 %"),
            (1, 3, "33.33 %"),
            (1, 1_000_000, "0.00 %"),
            (0, 5, "0.00 %"),
        ] {
            assert_eq!(share(part, whole), text, "{part} of {whole}");
        }
    }

    #[test]
    fn minutes_are_given_in_days_hours_and_minutes() {
        for (minutes, text) in [
            (0, "0 min"),
            (59, "59 min"),
            (60, "1 h"),
            (125, "2 h 5 min"),
            (1_440, "1 d"),
            (4_565, "3 d 4 h 5 min"),
        ] {
            assert_eq!(in_words(minutes), text);
        }
    }
}
