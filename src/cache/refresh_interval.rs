//! The times at which the backend is polled for a refresh: occasionally before the expected time, so that an early refresh is
//! detected; at the expected time; and then at increasing intervals until the refresh has happened.
//!
//! Pure functions. `documents::refresher` makes the requests.

use std::time::Duration;

use scoregate_base::clock::Mono;

/// Intervals between requests while a refresh is overdue, in order. `LONG_OVERDUE` applies after these.
const OVERDUE: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(40),
];
const LONG_OVERDUE: Duration = Duration::from_mins(1);
/// Before a refresh is due, the interval between requests is the cadence divided by one of these numbers: in the first
/// half of the cadence, when refreshes are rare; in the second half, when early refreshes are possible; and in the last
/// twelfth, when most early refreshes happen. Requests are never more frequent than when a refresh is long overdue,
/// because a backend may be slow even for short responses.
const IN_THE_FIRST_HALF: u32 = 12;
const IN_THE_SECOND_HALF: u32 = 30;
const IN_THE_LAST_TWELFTH: u32 = 60;

/// The expected refreshes of a backend, and the next time to poll it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefreshInterval {
    cadence: Duration,
    expected: Mono,
    /// Number of requests since the last refresh, none of which found changed data.
    overdue_requests: usize,
    next: Mono,
}

impl RefreshInterval {
    /// Creates the state for a backend that refreshes at `expected`, and about every `cadence` after that.
    pub fn new(cadence: Duration, expected: Mono, now: Mono) -> Self {
        Self {
            cadence,
            expected,
            overdue_requests: 0,
            next: expected,
        }
        .in_between(now)
    }

    /// When the next refresh is expected.
    pub fn expected(&self) -> Mono {
        self.expected
    }

    /// When to poll next.
    pub fn next(&self) -> Mono {
        self.next
    }

    /// The state after a request at `now` found a refresh, or found a stated time of the next refresh for the first time. The next refresh
    /// is due at `expected`.
    pub fn refreshed(self, expected: Mono, now: Mono) -> Self {
        Self::new(self.cadence, expected, now)
    }

    /// The state after a request at `now` failed or found nothing new.
    pub fn not_refreshed(self, now: Mono) -> Self {
        if now < self.expected {
            return self.in_between(now);
        }
        let wait = OVERDUE
            .get(self.overdue_requests)
            .copied()
            .unwrap_or(LONG_OVERDUE);
        Self {
            overdue_requests: self.overdue_requests + 1,
            next: now.plus(wait),
            ..self
        }
    }

    fn in_between(self, now: Mono) -> Self {
        let remaining = self.expected.since(now);
        let requests = if remaining <= self.cadence / 12 {
            IN_THE_LAST_TWELFTH
        } else if remaining <= self.cadence / 2 {
            IN_THE_SECOND_HALF
        } else {
            IN_THE_FIRST_HALF
        };
        let wait = (self.cadence / requests).max(LONG_OVERDUE.min(self.cadence));
        Self {
            next: self.expected.min(now.plus(wait)).max(now),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(seconds: u64) -> Mono {
        Mono::from_nanos(seconds * 1_000_000_000)
    }

    /// The times of requests that find nothing new.
    fn asked_in_vain(interval: RefreshInterval, requests: usize) -> Vec<Mono> {
        let rhythms = std::iter::successors(Some(interval), |interval| {
            Some(interval.not_refreshed(interval.next()))
        });
        rhythms
            .take(requests)
            .map(|interval| interval.next())
            .collect()
    }

    #[test]
    fn an_overdue_refresh_is_requested_at_growing_intervals_and_then_every_minute() {
        let requested_at = asked_in_vain(RefreshInterval::new(HOUR, at(3_600), at(3_599)), 8);
        let wanted = [0, 5, 15, 35, 75, 135, 195, 255];
        assert_eq!(requested_at, wanted.map(|late| at(3_600 + late)));
    }

    #[test]
    fn before_the_expected_time_requests_become_more_frequent_and_never_pass_it() {
        let requested_at = asked_in_vain(RefreshInterval::new(HOUR, at(2_410), at(0)), 18);
        let second = (1_020..=2_220).step_by(120);
        let last = (2_280..=2_400).step_by(60);
        let wanted: Vec<Mono> = [300, 600, 900]
            .into_iter()
            .chain(second)
            .chain(last)
            .chain([2_410])
            .map(at)
            .collect();
        assert_eq!(requested_at, wanted);
    }

    #[test]
    fn a_refresh_restarts_the_interval() {
        let late = RefreshInterval::new(HOUR, at(0), at(0))
            .not_refreshed(at(0))
            .not_refreshed(at(5));
        let interval = late.refreshed(at(3_615), at(15));
        assert_eq!(interval, RefreshInterval::new(HOUR, at(3_615), at(15)));
        assert_eq!(interval.next(), at(315));
    }

    #[test]
    fn a_long_overdue_refresh_is_requested_at_once() {
        assert_eq!(
            RefreshInterval::new(HOUR, at(10), at(5_000)).next(),
            at(5_000)
        );
    }

    #[test]
    fn a_backend_that_refreshes_every_second_is_polled_every_second() {
        let second = Duration::from_secs(1);
        assert_eq!(RefreshInterval::new(second, at(10), at(0)).next(), at(1));
    }
}
