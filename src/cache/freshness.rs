//! What a stored document is good for at a moment, and how long a client may keep it.
//!
//! Pure. An entry does not live for a fixed time from when it happened to be fetched: it is fresh until the backend's
//! next expected refresh, and usable, marked stale, for a good while after.

use std::time::Duration;

use crate::clock::{Mono, Wall};

/// How long a document is usable after its refresh was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// So long it is served at once while it is refreshed.
    pub while_refreshed: Duration,
    /// So long it is served if the backend fails.
    pub on_error: Duration,
}

/// What a stored document is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serve it.
    Fresh,
    /// Serve it, marked stale, and refresh it meanwhile.
    UsableWhileRefreshed,
    /// Ask the backend first; serve it, marked stale, if that fails.
    UsableOnError,
    /// It is too old for anything.
    Gone,
}

/// The verdict on a document whose refresh is due at `due`.
pub fn verdict(due: Mono, windows: &Windows, now: Mono) -> Verdict {
    let overdue = now.since(due);
    if now < due {
        Verdict::Fresh
    } else if overdue <= windows.while_refreshed {
        Verdict::UsableWhileRefreshed
    } else if overdue <= windows.on_error {
        Verdict::UsableOnError
    } else {
        Verdict::Gone
    }
}

/// So soon is a backend asked again that is late with its refresh and does not say when it will come.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// When the next refresh is expected: by the backend's own word, else one `cadence` after the data's instant, else,
/// if that has passed, soon.
pub fn next_refresh(stated: Option<Wall>, generated_at: Wall, cadence: Duration, now: Wall) -> Wall {
    let by_cadence = generated_at.plus(cadence);
    // Data dated in the future would be kept for too long.
    let sensible = by_cadence > now && by_cadence <= now.plus(cadence);
    stated
        .filter(|instant| *instant > now)
        .or(sensible.then_some(by_cadence))
        .unwrap_or_else(|| now.plus(ASK_AGAIN.min(cadence)))
}

/// The most that is added to `max-age` so that clients do not all return in the same second.
const JITTER_SECONDS: u64 = 120;
/// How long a client may keep a document whose refresh is overdue, and the jitter on that.
const OVERDUE_SECONDS: u64 = 30;

/// Seconds for which a client may keep a document: to the next expected refresh, plus a jitter that is fixed for a
/// key (`spread`), so that a client's rhythm is steady.
pub fn max_age(due: Mono, spread: u64, now: Mono) -> u64 {
    if now < due {
        // Rounded up: a client that returns a moment early would only have to return again.
        let left = due.since(now);
        left.as_secs() + u64::from(left.subsec_nanos() > 0) + spread % (JITTER_SECONDS + 1)
    } else {
        OVERDUE_SECONDS + spread % (OVERDUE_SECONDS + 1)
    }
}

/// The remaining lifetime for `Cache-Status`: negative once the refresh is overdue.
pub fn ttl(due: Mono, now: Mono) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    if now < due { seconds(due.since(now)) } else { -seconds(now.since(due)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;
    const WINDOWS: Windows = Windows {
        while_refreshed: Duration::from_secs(24 * HOUR),
        on_error: Duration::from_secs(7 * 24 * HOUR),
    };

    fn at(seconds: u64) -> Mono {
        Mono::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_four_verdicts_follow_each_other_in_time() {
        let table = [
            (0, Verdict::Fresh),
            (HOUR - 1, Verdict::Fresh),
            (HOUR, Verdict::UsableWhileRefreshed),
            (25 * HOUR, Verdict::UsableWhileRefreshed),
            (25 * HOUR + 1, Verdict::UsableOnError),
            (HOUR + 7 * 24 * HOUR, Verdict::UsableOnError),
            (HOUR + 7 * 24 * HOUR + 1, Verdict::Gone),
        ];
        for (now, expected) in table {
            assert_eq!(verdict(at(HOUR), &WINDOWS, at(now)), expected, "at {now}");
        }
    }

    #[test]
    fn the_next_refresh_is_the_backend_s_word_then_the_cadence_then_soon() {
        let (now, hour) = (Wall::from_seconds(10 * HOUR), Duration::from_secs(HOUR));
        let at = Wall::from_seconds;
        for (stated, generated, expected) in [
            (Some(10 * HOUR + 7), 10 * HOUR, 10 * HOUR + 7),
            (None, 10 * HOUR - 60, 11 * HOUR - 60),
            (Some(9 * HOUR), 10 * HOUR - 60, 11 * HOUR - 60),
            (None, 9 * HOUR, 10 * HOUR + 60),
            (None, 99 * HOUR, 10 * HOUR + 60),
        ] {
            assert_eq!(next_refresh(stated.map(at), at(generated), hour, now), at(expected));
        }
    }

    #[test]
    fn a_client_is_sent_back_after_the_refresh_and_never_more_than_two_minutes_after() {
        for spread in [0, 1, 119, 120, 121, u64::MAX] {
            let age = max_age(at(HOUR), spread, at(10));
            assert!((HOUR - 10..=HOUR - 10 + 120).contains(&age), "{age}");
            let overdue = max_age(at(HOUR), spread, at(HOUR));
            assert!((30..=60).contains(&overdue), "{overdue}");
        }
        assert_eq!((ttl(at(HOUR), at(10)), ttl(at(HOUR), at(HOUR + 5))), (3_590, -5));
    }
}
