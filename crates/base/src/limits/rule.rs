//! The limits of an application, and the status of a balance under one of them.

use std::time::Duration;

use crate::clock::{Now, Wall};

use super::table::{LimitRule, Period};
use super::window::CalendarLimits;

/// The limits of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests per minute.
    pub minute: u32,
    /// Requests per day.
    pub day: u32,
    /// Refused requests per minute.
    pub guard: u32,
    /// Units of a day that may be delivered without a lease while the ledger is unreachable.
    pub grace: u32,
    /// The other calendar limits.
    pub calendar: CalendarLimits,
}

/// The status of a rule at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The rule.
    pub rule: LimitRule,
    /// Its total allowance.
    pub limit: u32,
    /// The length of its window.
    pub window_seconds: u32,
    /// Its remaining allowance.
    pub remaining: u32,
    /// When the allowance is full again. In the future whenever nothing is left.
    pub reset: Wall,
    /// Time until then in nanoseconds; `reset` has whole seconds.
    pub full_in: Duration,
    /// Time until one more request is possible; zero if one is possible now.
    pub wait: Duration,
}

impl LimitStatus {
    /// The status for a request that this rule refused: zero remaining, even if units or tokens came back since it
    /// was `decided`. The reset of the minute is the time of the next token. That of a calendar limit is a midnight; if it has
    /// passed since, the request may be repeated without a wait.
    pub fn as_hit(self, decided: Now, now: Now) -> Self {
        let soon = || now.wall.plus(Duration::from_secs(1)).rounded_up();
        let period = self.rule.row().period;
        let reset = match period {
            Period::Day | Period::Month => {
                let window = Duration::from_secs(self.window_seconds.into());
                let start = self.reset.minus(window);
                if decided.wall < start && start <= now.wall {
                    start
                } else {
                    self.reset
                }
            }
            Period::Minute => now.wall.plus(self.wait).rounded_up().max(soon()),
            Period::Guard => self.reset.max(soon()),
        };
        let wait = if period.is_calendar() {
            reset.since(now.wall)
        } else {
            self.wait
        };
        Self {
            remaining: 0,
            reset,
            full_in: reset.since(now.wall),
            wait,
            ..self
        }
    }
}

#[cfg(test)]
impl Limits {
    pub(super) const FREE: Self = Self::for_tests(1, 10, 0);
    pub(super) const PRO: Self = Self::for_tests(60, 10_000, 100);

    /// Limits of a minute and a day, and the units that may be owed.
    pub(super) const fn for_tests(minute: u32, day: u32, grace: u32) -> Self {
        Self {
            minute,
            day,
            guard: 60,
            grace,
            calendar: CalendarLimits::NONE,
        }
    }
}
