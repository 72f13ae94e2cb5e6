//! The balance of a window of several days, as known to one process. Units granted to others count as used. The process's own
//! units are the units of its day balance, because a unit that is leased for the day already counts in all windows.
//!
//! The code is pure.

use std::time::Duration;

use crate::clock::Now;

use super::{
    day_ledger::NodeTotals,
    lease::DayBalance,
    rule::LimitStatus,
    window::{CalendarQuota, Window, WindowUnits},
};

/// The balance of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBalance {
    window: Window,
    /// Units granted in the window to other nodes, to earlier processes, and for days other than the current one.
    elsewhere: u64,
}

impl WindowBalance {
    /// The balance according to a ledger reply. The reply includes `node`, the totals of this process for the current day.
    pub fn new(units: WindowUnits, node: NodeTotals) -> Self {
        Self {
            window: units.window,
            elsewhere: units.granted.saturating_sub(node.held().into()),
        }
    }

    /// The balance of a window that has just begun, in which nothing is granted.
    pub const fn begun(window: Window) -> Self {
        Self {
            window,
            elsewhere: 0,
        }
    }

    /// The window.
    pub const fn window(self) -> Window {
        self.window
    }

    /// The balance after a new day has begun. The units of `ended` now count as units of another day.
    pub fn after(self, ended: DayBalance) -> Self {
        Self {
            elsewhere: self.elsewhere.saturating_add(ended.leased().into()),
            ..self
        }
    }

    /// Units granted to all nodes and not returned.
    pub fn granted(self, day: DayBalance) -> u64 {
        self.elsewhere.saturating_add(day.leased().into())
    }

    /// Units that the ledger may still grant.
    pub fn unleased(self, quota: u32, day: DayBalance) -> u32 {
        left(quota, self.granted(day))
    }

    /// Remaining units of the window, as reported to the caller.
    pub fn remaining(self, quota: u32, day: DayBalance) -> u32 {
        left(quota, self.elsewhere.saturating_add(day.in_use().into()))
    }
}

fn left(quota: u32, used: u64) -> u32 {
    u32::try_from(u64::from(quota).saturating_sub(used)).unwrap_or(0)
}

impl CalendarQuota {
    /// The status of the window with this balance.
    pub fn status(self, balance: WindowBalance, day: DayBalance, now: Now) -> LimitStatus {
        let remaining = balance.remaining(self.quota, day);
        let reset = self.window.ends_at();
        let full_in = reset.since(now.wall);
        LimitStatus {
            rule: self.window.rule,
            limit: self.quota,
            window_seconds: self.window.seconds(),
            remaining,
            reset,
            full_in,
            wait: if remaining == 0 {
                full_in
            } else {
                Duration::ZERO
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Day, Mono};
    use crate::limits::table::LimitRule;

    fn day(number: u32) -> Day {
        let first = Day::parse("2026-11-29").unwrap();
        Day::from_number(first.number() + number)
    }

    fn month() -> Window {
        Window::around(day(0), LimitRule::Month, 1).unwrap()
    }

    #[test]
    fn units_leased_here_are_left_until_they_are_spent_and_those_of_others_are_used() {
        let leased = DayBalance::opened(day(0), 0).grant(day(0), 10, 0, 10);
        let units = WindowUnits {
            window: month(),
            granted: 70,
        };
        let balance = WindowBalance::new(units, leased.totals());
        assert_eq!(balance.remaining(100, leased), 40);
        assert_eq!(balance.unleased(100, leased), 30);
        let spent = leased.hold(1_000).unwrap().settle(day(0), true);
        assert_eq!(balance.remaining(100, spent), 39);
        let tomorrow = balance.after(spent);
        assert_eq!(tomorrow.remaining(100, spent.on(day(1))), 30);
        assert_eq!(tomorrow.remaining(50, spent.on(day(1))), 0);
    }

    #[test]
    fn a_window_that_is_used_up_resets_when_it_ends() {
        let quota = CalendarQuota {
            window: month(),
            quota: 100,
        };
        let now = Now {
            wall: day(0).start(),
            mono: Mono::default(),
        };
        let units = WindowUnits {
            window: month(),
            granted: 100,
        };
        let balance = WindowBalance::new(units, NodeTotals::default());
        let status = quota.status(balance, DayBalance::opened(day(0), 0), now);
        assert_eq!(
            (status.remaining, status.wait),
            (0, Duration::from_hours(48))
        );
        assert_eq!(status.reset.rfc3339(), "2026-12-01T00:00:00Z");
        assert_eq!(status.window_seconds, 30 * 86_400);
        let later = Now {
            wall: day(2).start(),
            mono: Mono::default(),
        };
        let next = CalendarQuota {
            window: Window::around(day(2), LimitRule::Month, 1).unwrap(),
            quota: 100,
        };
        let begun = WindowBalance::begun(next.window);
        let hit = next
            .status(begun, DayBalance::opened(day(2), 0), later)
            .as_hit(now, later);
        assert_eq!(
            (hit.reset, hit.wait),
            (later.wall, Duration::ZERO),
            "it ended since"
        );
    }
}
