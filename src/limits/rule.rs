//! The three rules, and how a balance under one of them is told.

use std::time::Duration;

use crate::clock::Wall;

/// A rule that can refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LimitRule {
    /// Requests a minute: a token bucket.
    Minute,
    /// Requests a UTC day: exact.
    Day,
    /// Refused requests a minute: a token bucket.
    Guard,
}

/// The limits in force for an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute.
    pub minute: u32,
    /// Requests a day.
    pub day: u32,
    /// Refused requests a minute.
    pub guard: u32,
    /// Units of a day that may be delivered before they are leased, while the ledger cannot be reached.
    pub grace: u32,
}

/// What is left under a rule, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The rule.
    pub rule: LimitRule,
    /// What it allows in all.
    pub limit: u32,
    /// What is left.
    pub remaining: u32,
    /// When all of it is there again. Always in the future when nothing is left.
    pub reset: Wall,
    /// How long until then, to the nanosecond: `reset` is in whole seconds.
    pub whole_in: Duration,
    /// How long until one more request is possible; zero if one is possible now.
    pub wait: Duration,
}

impl LimitRule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Day, Self::Guard];

    /// Its name in headers, bodies, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Day => "day",
            Self::Guard => "guard",
        }
    }

    /// The length of its window.
    pub const fn window_seconds(self) -> u32 {
        match self {
            Self::Minute | Self::Guard => 60,
            Self::Day => 86_400,
        }
    }
}
