//! The verdict on a stored document at a given time, and how long a client may cache it.
//!
//! Pure functions. A document has no fixed lifetime. It is fresh until the backend's next expected refresh; after that
//! it can still be served, marked stale, for a while.

use std::time::Duration;

use scoregate_base::{
    clock::{Mono, Wall},
    words,
};

/// How long a document can be served after its refresh was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleWindows {
    /// Time for which a stale document is served while it is refreshed in the background.
    pub while_revalidate: Duration,
    /// Time for which a stale document is served if the backend fails.
    pub if_error: Duration,
}

words! {
    /// The permitted use of a stored document.
    pub enum Freshness: as_str {
        /// Serve it.
        Fresh = "fresh",
        /// Serve it, marked stale, and refresh it in the background.
        StaleWhileRevalidate = "stale, served while it is refreshed",
        /// Fetch first; serve it, marked stale, if that fails.
        StaleIfError = "stale, served if the backend fails",
        /// Too old to be served.
        Expired = "expired",
    }
}

/// The verdict on a document whose refresh is due at `due`.
pub fn verdict(due: Mono, windows: &StaleWindows, now: Mono) -> Freshness {
    let overdue = now.since(due);
    if now < due {
        Freshness::Fresh
    } else if overdue <= windows.while_revalidate {
        Freshness::StaleWhileRevalidate
    } else if overdue <= windows.if_error {
        Freshness::StaleIfError
    } else {
        Freshness::Expired
    }
}

/// The longest interval between requests for a document whose refresh is overdue.
const OVERDUE_INTERVAL: Duration = Duration::from_mins(1);

/// Interval between requests for a document whose refresh is overdue.
pub fn overdue_interval(cadence: Duration) -> Duration {
    OVERDUE_INTERVAL.min(cadence)
}

/// The dates of a document that was just confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreshnessDates {
    /// The next expected refresh. The document is fresh until then.
    pub due: Wall,
    /// When the document may be requested from the backend again.
    pub revalidate_at: Wall,
}

/// Times of the next refresh that are known when a document is confirmed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownRefresh {
    /// The refresh time that the backend stated for this document.
    pub stated: Option<Wall>,
    /// The next expected refresh of the whole backend, computed from the last one that was detected.
    pub of_the_backend: Option<Wall>,
}

/// The dates of a document confirmed at `now`. Its refresh is due at the time that the backend stated, else one
/// `cadence` after the time of the data, else at the next refresh of the backend. If all of these times have passed,
/// the refresh is overdue: the document is served, marked stale, and requested again soon.
pub fn dates(
    known: KnownRefresh,
    generated_at: Wall,
    cadence: Duration,
    now: Wall,
) -> FreshnessDates {
    let by_cadence = generated_at.plus(cadence);
    // Data dated in the future would be kept too long.
    let sensible = (by_cadence <= now.plus(cadence)).then_some(by_cadence);
    let due = [known.stated, sensible, known.of_the_backend]
        .into_iter()
        .flatten()
        .find(|due| *due > now);
    match due {
        Some(due) => FreshnessDates {
            due,
            revalidate_at: due,
        },
        None => FreshnessDates {
            due: now,
            revalidate_at: now.plus(overdue_interval(cadence)),
        },
    }
}

/// Maximum jitter of `max-age`, so that clients do not all return in the same second.
const JITTER_SECONDS: u64 = 120;
/// `max-age` of a document whose refresh is overdue. Also the maximum jitter that is added to it.
const OVERDUE_SECONDS: u64 = 30;

/// `max-age` in seconds: the time until the next expected refresh, plus jitter that is fixed per key (`spread`), so
/// that a client polls at a steady interval.
pub fn max_age(due: Mono, spread: u64, now: Mono) -> u64 {
    if now < due {
        // The result is rounded up: a client that requests too early would have to request again.
        let left = due.since(now);
        left.as_secs() + u64::from(left.subsec_nanos() > 0) + spread % (JITTER_SECONDS + 1)
    } else {
        OVERDUE_SECONDS + spread % (OVERDUE_SECONDS + 1)
    }
}

/// The remaining lifetime for `Cache-Status`. Negative if the refresh is overdue.
pub fn ttl(due: Mono, now: Mono) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    if now < due {
        seconds(due.since(now))
    } else {
        -seconds(now.since(due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;
    const WINDOWS: StaleWindows = StaleWindows {
        while_revalidate: Duration::from_secs(24 * HOUR),
        if_error: Duration::from_secs(7 * 24 * HOUR),
    };

    fn at(seconds: u64) -> Mono {
        Mono::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn verdicts_progress_with_age() {
        let table = [
            (0, Freshness::Fresh),
            (HOUR - 1, Freshness::Fresh),
            (HOUR, Freshness::StaleWhileRevalidate),
            (25 * HOUR, Freshness::StaleWhileRevalidate),
            (25 * HOUR + 1, Freshness::StaleIfError),
            (HOUR + 7 * 24 * HOUR, Freshness::StaleIfError),
            (HOUR + 7 * 24 * HOUR + 1, Freshness::Expired),
        ];
        for (now, expected) in table {
            assert_eq!(verdict(at(HOUR), &WINDOWS, at(now)), expected, "at {now}");
        }
    }

    #[test]
    fn next_refresh_falls_back_from_stated_to_cadence_to_backend_to_overdue() {
        let now = Wall::from_seconds(10 * HOUR);
        let hour = Duration::from_secs(HOUR);
        let at = Wall::from_seconds;
        for (stated, of_the_backend, generated, due, revalidate_at) in [
            (
                Some(10 * HOUR + 7),
                Some(11 * HOUR),
                10 * HOUR,
                10 * HOUR + 7,
                10 * HOUR + 7,
            ),
            (
                None,
                Some(11 * HOUR),
                10 * HOUR - 60,
                11 * HOUR - 60,
                11 * HOUR - 60,
            ),
            (
                Some(9 * HOUR),
                None,
                10 * HOUR - 60,
                11 * HOUR - 60,
                11 * HOUR - 60,
            ),
            (None, Some(11 * HOUR), 9 * HOUR, 11 * HOUR, 11 * HOUR),
            (None, Some(10 * HOUR), 9 * HOUR, 10 * HOUR, 10 * HOUR + 60),
            (None, None, 9 * HOUR, 10 * HOUR, 10 * HOUR + 60),
            (None, None, 99 * HOUR, 10 * HOUR, 10 * HOUR + 60),
        ] {
            let known = KnownRefresh {
                stated: stated.map(at),
                of_the_backend: of_the_backend.map(at),
            };
            let wanted = FreshnessDates {
                due: at(due),
                revalidate_at: at(revalidate_at),
            };
            assert_eq!(dates(known, at(generated), hour, now), wanted);
        }
    }

    #[test]
    fn max_age_ends_within_two_minutes_after_the_refresh() {
        for spread in [0, 1, 119, 120, 121, u64::MAX] {
            let age = max_age(at(HOUR), spread, at(10));
            assert!((HOUR - 10..=HOUR - 10 + 120).contains(&age), "{age}");
            let overdue = max_age(at(HOUR), spread, at(HOUR));
            assert!((30..=60).contains(&overdue), "{overdue}");
        }
        assert_eq!(
            (ttl(at(HOUR), at(10)), ttl(at(HOUR), at(HOUR + 5))),
            (3_590, -5)
        );
    }
}
