//! The circuit breaker of an address of the backend.
//!
//! The breaker opens after several consecutive failures, and when a response has `Retry-After`. After the open time it
//! is half-open: one request is sent, and its result closes or reopens the breaker. While other addresses can be used, a single
//! failure is enough to avoid this address for a time. An invalid document is not a failure, because other documents may be valid.
//! The functions are pure.

use std::time::Duration;

use scoregate_base::{clock::Mono, words};

/// Consecutive failures that open the breaker.
const FAILURES: u32 = 5;
/// The first open time, and the longest open time without `Retry-After`. A recovered backend is used again after the
/// longest open time at the latest.
const FIRST_OPEN: Duration = Duration::from_secs(1);
const LONGEST_OPEN: Duration = Duration::from_secs(5);
/// The longest time for which other addresses are preferred. It is long because each attempt may cost a caller a
/// timeout.
const LONGEST_AVOIDED: Duration = Duration::from_secs(30);
/// `Retry-After` for requests while the breaker is half-open.
const TRIAL: Duration = Duration::from_secs(1);

/// The state of the breaker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitBreaker {
    /// Consecutive failures.
    failures: u32,
    /// The time until which the breaker is open.
    open_until: Option<Mono>,
    /// Other addresses are preferred until this time.
    avoided_until: Option<Mono>,
    /// Whether the trial request is in flight.
    is_half_open: bool,
}

/// Whether a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerPermission {
    Granted,
    /// The request may be sent as the trial request of a half-open breaker.
    Trial,
    /// The request must not be sent before this time has passed.
    Refused(Duration),
}

/// The result of a request, for the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerSignal {
    Good,
    /// A failure, with the time from `Retry-After`.
    Bad(Option<Duration>),
    /// No result: the request was not completed.
    None,
}

words! {
    /// The states of a circuit breaker.
    pub enum BreakerState: as_str {
        /// Requests are sent.
        Closed = "closed",
        /// One trial request is sent.
        HalfOpen = "half_open",
        /// No request is sent.
        Open = "open",
    }
}

impl CircuitBreaker {
    /// Whether a request may be sent at `now`. If so, report its result to [`CircuitBreaker::record`].
    pub fn request(self, now: Mono) -> (Self, BreakerPermission) {
        self.request_after(self.open_until, now)
    }

    /// Whether a request may be sent at `now` while other addresses can be used.
    pub fn request_if_preferred(self, now: Mono) -> (Self, BreakerPermission) {
        self.request_after(self.open_until.max(self.avoided_until), now)
    }

    fn request_after(self, until: Option<Mono>, now: Mono) -> (Self, BreakerPermission) {
        match until {
            None => (self, BreakerPermission::Granted),
            Some(until) if now < until => (self, BreakerPermission::Refused(until.since(now))),
            Some(_) if self.is_half_open => (self, BreakerPermission::Refused(TRIAL)),
            Some(_) => (
                Self {
                    is_half_open: true,
                    ..self
                },
                BreakerPermission::Trial,
            ),
        }
    }

    /// Records the result of a request that was sent with this permission.
    pub fn record(self, permission: BreakerPermission, signal: BreakerSignal, now: Mono) -> Self {
        let is_half_open = self.is_half_open && permission != BreakerPermission::Trial;
        match signal {
            // A response to a request sent before the breaker opened does not close it.
            BreakerSignal::Good
                if self.open_until.is_some() && permission != BreakerPermission::Trial =>
            {
                self
            }
            BreakerSignal::Good => Self::default(),
            BreakerSignal::None => Self {
                is_half_open,
                ..self
            },
            BreakerSignal::Bad(retry_after) => {
                let failures = self.failures.saturating_add(1);
                let avoided = doubled(failures - 1).min(LONGEST_AVOIDED);
                let backoff = failures.checked_sub(FAILURES).map(doubled);
                let backoff = backoff.map(|time| time.min(LONGEST_OPEN));
                let until = backoff.max(retry_after).map(|duration| now.plus(duration));
                Self {
                    failures,
                    open_until: self.open_until.max(until),
                    avoided_until: Some(now.plus(avoided)),
                    is_half_open,
                }
            }
        }
    }

    /// Remaining open time.
    pub fn open_time_left(self, now: Mono) -> Duration {
        self.open_until
            .map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Consecutive failures.
    pub fn failures(self) -> u32 {
        self.failures
    }

    pub fn state(self, now: Mono) -> BreakerState {
        match self.open_until {
            None => BreakerState::Closed,
            Some(_) if self.is_half_open => BreakerState::HalfOpen,
            Some(until) if now < until => BreakerState::Open,
            // The next request is the trial request.
            Some(_) => BreakerState::HalfOpen,
        }
    }
}

/// The first open time, doubled `times` times.
fn doubled(times: u32) -> Duration {
    FIRST_OPEN * 2u32.pow(times.min(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::from_nanos(seconds * 1_000_000_000)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failing(breaker: CircuitBreaker, now: Mono) -> CircuitBreaker {
        let (breaker, permission) = breaker.request(now);
        assert!(
            !matches!(permission, BreakerPermission::Refused(_)),
            "{permission:?}"
        );
        breaker.record(permission, BreakerSignal::Bad(None), now)
    }

    fn open_breaker() -> CircuitBreaker {
        (0..FAILURES).fold(CircuitBreaker::default(), |breaker, _| {
            failing(breaker, at(0))
        })
    }

    #[test]
    fn the_breaker_opens_after_consecutive_failures_and_a_success_resets_the_count() {
        let four = (1..FAILURES).fold(CircuitBreaker::default(), |breaker, _| {
            failing(breaker, at(0))
        });
        assert_eq!(four.state(at(0)), BreakerState::Closed);
        let counted_anew = four.record(BreakerPermission::Granted, BreakerSignal::Good, at(0));
        assert_eq!(
            failing(counted_anew, at(0)).state(at(0)),
            BreakerState::Closed
        );
        let five = failing(four, at(0));
        assert_eq!(
            five.request(at(0)).1,
            BreakerPermission::Refused(seconds(1))
        );
        assert_eq!(five.state(at(0)), BreakerState::Open);
    }

    #[test]
    fn after_the_open_time_one_trial_request_decides() {
        let (tried, permission) = open_breaker().request(at(1));
        assert_eq!(permission, BreakerPermission::Trial);
        assert_eq!(
            tried.request(at(1)).1,
            BreakerPermission::Refused(TRIAL),
            "only one trial request"
        );
        assert_eq!(
            tried.record(permission, BreakerSignal::Good, at(1)),
            CircuitBreaker::default()
        );
        let failed = tried.record(permission, BreakerSignal::Bad(None), at(1));
        assert_eq!(
            failed.request(at(1)).1,
            BreakerPermission::Refused(seconds(2)),
            "the open time doubles"
        );
        let cut_off = tried.record(permission, BreakerSignal::None, at(1));
        assert_eq!(
            cut_off.request(at(1)).1,
            BreakerPermission::Trial,
            "an interrupted trial request is repeated"
        );
    }

    #[test]
    fn without_retry_after_the_breaker_is_open_for_at_most_five_seconds() {
        let mut breaker = open_breaker();
        let mut now = 1;
        for _ in 0..100 {
            breaker = failing(breaker, at(now));
            let BreakerPermission::Refused(duration) = breaker.request(at(now)).1 else {
                panic!("the breaker is closed")
            };
            assert!(duration <= LONGEST_OPEN);
            now += duration.as_secs();
        }
    }

    #[test]
    fn retry_after_opens_the_breaker_for_its_duration() {
        let retry_after = CircuitBreaker::default().record(
            BreakerPermission::Granted,
            BreakerSignal::Bad(Some(seconds(60))),
            at(0),
        );
        assert_eq!(
            retry_after.request(at(0)).1,
            BreakerPermission::Refused(seconds(60))
        );
        let late = retry_after.record(BreakerPermission::Granted, BreakerSignal::Good, at(1));
        assert_eq!(
            late.request(at(59)).1,
            BreakerPermission::Refused(seconds(1)),
            "the request was sent before the breaker opened"
        );
        let shorter = retry_after.record(
            BreakerPermission::Granted,
            BreakerSignal::Bad(Some(seconds(5))),
            at(1),
        );
        assert_eq!(
            shorter.request(at(59)).1,
            BreakerPermission::Refused(seconds(1))
        );
        assert_eq!(retry_after.request(at(60)).1, BreakerPermission::Trial);
    }
}
