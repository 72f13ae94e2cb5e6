//! Tiers: the rights and limits of a plan. The five tiers of the specification are the default.

use crate::limits::{BELOW_DAY, CalendarLimits};

use super::rights::Rights;

/// Limits of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierLimits {
    /// Requests per minute.
    pub minute: u32,
    /// Requests per UTC day.
    pub day: u32,
    /// The other calendar limits.
    pub calendar: CalendarLimits,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The name, as in keys, logs and metrics.
    pub name: String,
    /// The entitlements.
    pub rights: Rights,
    /// The request limits.
    pub limits: TierLimits,
}

impl Tier {
    /// Warnings about quotas that may be a mistake.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let small = self.limits.calendar.below_day(self.limits.day);
        small.map(|rule| format!("tiers.{}.{}: {BELOW_DAY}", self.name, rule.name()))
    }
}

/// Index of a tier among the configured tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierIndex(pub usize);

/// The five tiers of the specification.
pub fn standard_tiers() -> Vec<Tier> {
    vec![
        tier("free", Rights::FREE, 1, 10),
        tier("pro", Rights::PAID, 60, 10_000),
        tier("developer", Rights::PAID, 120, 25_000),
        tier("teams", Rights::PAID, 300, 100_000),
        tier("enterprise", Rights::PAID, 1_000, 250_000),
    ]
}

fn tier(name: &str, rights: Rights, minute: u32, day: u32) -> Tier {
    Tier {
        name: name.into(),
        rights,
        limits: TierLimits {
            minute,
            day,
            calendar: CalendarLimits::NONE,
        },
    }
}
