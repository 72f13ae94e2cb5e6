//! Whether the backend may be asked at all: not while it rests.
//!
//! It rests when it has asked for that (`Retry-After`), and when it has failed several times in a row; then one question
//! is a trial, and its answer decides. A document that is wrong is no failure of the backend: others may be right.
//! Pure. Not for: how many may ask at once (`line`).

use std::time::Duration;

use crate::clock::Mono;

/// So many failures in a row are no accident.
const FAILURES: u32 = 5;
/// The first rest, and the longest that is not asked for: a backend that is back is noticed within that.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(5);
/// Whoever comes during a trial is told to come back then.
const TRIAL: Duration = Duration::from_secs(1);

/// What is known of the backend's health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CircuitBreaker {
    /// Failures in a row.
    failures: u32,
    /// Until when it rests.
    rests_until: Option<Mono>,
    /// Whether a trial is under way.
    on_trial: bool,
}

/// Whether a question may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerPermission {
    /// It may.
    Granted,
    /// It may, and its answer decides.
    Trial,
    /// It may not, for so long.
    Refused(Duration),
}

/// How an answered question speaks for the backend's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BreakerSignal {
    /// It works.
    Good,
    /// It does not, and asks for a rest of its own accord if it says one.
    Bad(Option<Duration>),
    /// Neither: the question was not answered to its end.
    None,
}

/// The states that people speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// It is asked.
    Working,
    /// One question is under way that decides.
    OnTrial,
    /// It is not asked.
    Resting,
}

impl CircuitBreaker {
    /// Whether a question may go out at `now`. One that may is followed by [`CircuitBreaker::saw`].
    pub(super) fn ask(self, now: Mono) -> (Self, BreakerPermission) {
        match self.rests_until {
            None => (self, BreakerPermission::Granted),
            Some(until) if now < until => (self, BreakerPermission::Refused(until.since(now))),
            Some(_) if self.on_trial => (self, BreakerPermission::Refused(TRIAL)),
            Some(_) => (Self { on_trial: true, ..self }, BreakerPermission::Trial),
        }
    }

    /// Takes in how a question ended that had this permission.
    pub(super) fn saw(self, permission: BreakerPermission, sign: BreakerSignal, now: Mono) -> Self {
        let on_trial = self.on_trial && permission != BreakerPermission::Trial;
        match sign {
            // An answer to what was asked before the rest began does not end it.
            BreakerSignal::Good if self.rests_until.is_some() && permission != BreakerPermission::Trial => {
                self
            }
            BreakerSignal::Good => Self::default(),
            BreakerSignal::None => Self { on_trial, ..self },
            BreakerSignal::Bad(asked) => {
                let failures = self.failures.saturating_add(1);
                let own = (failures >= FAILURES).then(|| rest_after(failures));
                let until = own.max(asked).map(|rest| now.plus(rest));
                Self { failures, rests_until: self.rests_until.max(until), on_trial }
            }
        }
    }

    /// How long it still rests.
    pub(super) fn rest(self, now: Mono) -> Duration {
        self.rests_until.map_or(Duration::ZERO, |until| until.since(now))
    }

    /// How often in a row it has failed.
    pub(super) fn failures(self) -> u32 {
        self.failures
    }

    /// How it is.
    pub(super) fn health(self, now: Mono) -> BreakerState {
        match self.rests_until {
            None => BreakerState::Working,
            Some(_) if self.on_trial => BreakerState::OnTrial,
            Some(until) if now < until => BreakerState::Resting,
            // The next question will be the trial.
            Some(_) => BreakerState::OnTrial,
        }
    }
}

impl BreakerState {
    /// The state in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::OnTrial => "on_trial",
            Self::Resting => "resting",
        }
    }
}

/// How long it rests after so many failures in a row.
fn rest_after(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(FAILURES).min(8);
    (FIRST_REST * 2u32.pow(doublings)).min(LONGEST_REST)
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
        let (breaker, permission) = breaker.ask(now);
        assert!(!matches!(permission, BreakerPermission::Refused(_)), "{permission:?}");
        breaker.saw(permission, BreakerSignal::Bad(None), now)
    }

    fn resting() -> CircuitBreaker {
        (0..FAILURES).fold(CircuitBreaker::default(), |breaker, _| failing(breaker, at(0)))
    }

    #[test]
    fn it_rests_after_failures_in_a_row_and_one_good_answer_between_them_counts_anew() {
        let four = (1..FAILURES).fold(CircuitBreaker::default(), |breaker, _| failing(breaker, at(0)));
        assert_eq!(four.health(at(0)), BreakerState::Working);
        let counted_anew = four.saw(BreakerPermission::Granted, BreakerSignal::Good, at(0));
        assert_eq!(failing(counted_anew, at(0)).health(at(0)), BreakerState::Working);
        let five = failing(four, at(0));
        assert_eq!(five.ask(at(0)).1, BreakerPermission::Refused(seconds(1)));
        assert_eq!(five.health(at(0)), BreakerState::Resting);
    }

    #[test]
    fn after_the_rest_one_question_goes_out_and_its_answer_decides() {
        let (tried, permission) = resting().ask(at(1));
        assert_eq!(permission, BreakerPermission::Trial);
        assert_eq!(tried.ask(at(1)).1, BreakerPermission::Refused(TRIAL), "one alone");
        assert_eq!(tried.saw(permission, BreakerSignal::Good, at(1)), CircuitBreaker::default());
        let failed = tried.saw(permission, BreakerSignal::Bad(None), at(1));
        assert_eq!(failed.ask(at(1)).1, BreakerPermission::Refused(seconds(2)), "it rests for longer");
        let cut_off = tried.saw(permission, BreakerSignal::None, at(1));
        assert_eq!(cut_off.ask(at(1)).1, BreakerPermission::Trial, "a trial that was cut off is made again");
    }

    #[test]
    fn a_rest_of_its_own_making_is_never_longer_than_five_seconds() {
        let (mut breaker, mut now) = (resting(), 1);
        for _ in 0..100 {
            breaker = failing(breaker, at(now));
            let BreakerPermission::Refused(rest) = breaker.ask(at(now)).1 else { panic!("it does not rest") };
            assert!(rest <= LONGEST_REST);
            now += rest.as_secs();
        }
    }

    #[test]
    fn a_rest_that_was_asked_for_begins_at_once_and_is_kept_whatever_was_under_way() {
        let asked = CircuitBreaker::default().saw(
            BreakerPermission::Granted,
            BreakerSignal::Bad(Some(seconds(60))),
            at(0),
        );
        assert_eq!(asked.ask(at(0)).1, BreakerPermission::Refused(seconds(60)));
        let late = asked.saw(BreakerPermission::Granted, BreakerSignal::Good, at(1));
        assert_eq!(late.ask(at(59)).1, BreakerPermission::Refused(seconds(1)), "that was asked before");
        let shorter = asked.saw(BreakerPermission::Granted, BreakerSignal::Bad(Some(seconds(5))), at(1));
        assert_eq!(shorter.ask(at(59)).1, BreakerPermission::Refused(seconds(1)));
        assert_eq!(asked.ask(at(60)).1, BreakerPermission::Trial);
    }
}
