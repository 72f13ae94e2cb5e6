//! Limits for tests.

use super::rule::Limits;
use super::window::CalendarLimits;

pub(super) const FREE: Limits = of_tier(1, 10, 0);
pub(super) const PRO: Limits = of_tier(60, 10_000, 100);

/// Limits of a minute and a day, and the units that may be owed.
pub(super) const fn of_tier(minute: u32, day: u32, grace: u32) -> Limits {
    Limits {
        minute,
        day,
        guard: 60,
        grace,
        calendar: CalendarLimits::NONE,
    }
}
