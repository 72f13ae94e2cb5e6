//! The three rules, and the status of a balance under a rule.

use std::time::Duration;

use crate::clock::{Now, Wall};
use crate::words;

words! {
    /// A rule that can refuse a request.
    #[derive(Hash)]
    pub enum LimitRule: name {
        /// Requests per minute: a token bucket.
        Minute = "minute",
        /// Requests per UTC day: exact.
        Day = "day",
        /// Refused requests per minute: a token bucket.
        Guard = "guard",
    }
}

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
}

/// The status of a rule at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The rule.
    pub rule: LimitRule,
    /// Its total allowance.
    pub limit: u32,
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
    /// was `decided`. The reset of the minute is the time of the next token. That of the day is a midnight; if it has passed
    /// since, the request may be repeated without a wait.
    pub fn as_hit(self, decided: Now, now: Now) -> Self {
        let soon = || now.wall.plus(Duration::from_secs(1)).rounded_up();
        let reset = match self.rule {
            LimitRule::Day => {
                let decided_end = decided.wall.day().end();
                if now.wall >= decided_end {
                    decided_end
                } else {
                    self.reset
                }
            }
            LimitRule::Minute => now.wall.plus(self.wait).rounded_up().max(soon()),
            LimitRule::Guard => self.reset.max(soon()),
        };
        let wait = if self.rule == LimitRule::Day {
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

impl LimitRule {
    /// The length of its window.
    pub const fn window_seconds(self) -> u32 {
        match self {
            Self::Minute | Self::Guard => 60,
            Self::Day => 86_400,
        }
    }
}
