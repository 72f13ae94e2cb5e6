//! Windows of calendar limits. A window is a range of whole UTC days, so a day is in exactly one window of each limit.
//! Units are granted for a day, and count in all windows that contain the day. The code is pure.

use crate::clock::{Day, Wall};

use super::table::{CalendarPeriod, LimitRule, Period, Scope};

/// The warning if a quota for several days is smaller than the daily quota.
pub const BELOW_DAY: &str =
    "the quota is smaller than the daily quota, which no application can then use up";

/// The days that a calendar limit counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The limit.
    pub rule: LimitRule,
    /// The first day.
    pub start: Day,
    /// The first day after the window.
    pub end: Day,
}

/// The calendar limits, other than the day, that are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarLimits {
    /// Units, in the order of [`LimitRule::WINDOWS`]; 0 if there is no limit.
    quotas: [u32; LimitRule::WINDOWS.len()],
    /// The day on which an application's month begins.
    anchor: u8,
    /// The day on which an owner's month begins; the same for all applications in a tier.
    owner_anchor: u8,
}

/// A window and the number of units that may be granted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarQuota {
    /// The window.
    pub window: Window,
    /// The number of units.
    pub quota: u32,
}

/// A window and the units granted in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUnits {
    /// The window.
    pub window: Window,
    /// Units granted to all nodes and not returned.
    pub granted: u64,
}

impl CalendarLimits {
    /// No limits.
    pub const NONE: Self = Self::with_anchor(1);

    /// No limits. Months begin on this day, or on the last day of a shorter month.
    pub const fn with_anchor(anchor: u8) -> Self {
        let quotas = [0; LimitRule::WINDOWS.len()];
        Self {
            quotas,
            anchor,
            owner_anchor: anchor,
        }
    }

    /// These limits, with the application's month beginning on this day.
    #[must_use]
    pub const fn with_month_anchor(self, anchor: u8) -> Self {
        Self { anchor, ..self }
    }

    /// These limits with another limit.
    #[must_use]
    pub fn with(mut self, rule: LimitRule, quota: u32) -> Self {
        for (limited, known) in LimitRule::WINDOWS.iter().zip(&mut self.quotas) {
            if *limited == rule {
                *known = quota;
            }
        }
        self
    }

    /// The quota of a limit, if it is set.
    pub fn quota(self, rule: LimitRule) -> Option<u32> {
        self.each()
            .find(|(limited, _)| *limited == rule)
            .map(|(_, quota)| quota)
    }

    /// Whether no limit is set.
    pub fn is_empty(self) -> bool {
        self.quotas.iter().all(|quota| *quota == 0)
    }

    /// The windows in force that contain `day`.
    pub fn around(self, day: Day) -> impl Iterator<Item = CalendarQuota> {
        self.each().filter_map(move |(rule, quota)| {
            let anchor = match rule.row().scope {
                Scope::Application => self.anchor,
                Scope::Owner => self.owner_anchor,
            };
            let window = Window::around(day, rule, anchor)?;
            Some(CalendarQuota { window, quota })
        })
    }

    /// The limits with a quota smaller than the daily quota. This may be a mistake, because no application can then use up its
    /// daily quota.
    pub fn below_day(self, day: u32) -> impl Iterator<Item = LimitRule> {
        self.each()
            .filter(move |(_, quota)| *quota < day)
            .map(|(rule, _)| rule)
    }

    fn each(self) -> impl Iterator<Item = (LimitRule, u32)> {
        let limits = LimitRule::WINDOWS.into_iter().zip(self.quotas);
        limits.filter(|(_, quota)| *quota > 0)
    }
}

impl Window {
    /// The window of a limit that contains `day`. Months begin on day `anchor`. `None` if the limit is not a calendar
    /// limit.
    pub fn around(day: Day, rule: LimitRule, anchor: u8) -> Option<Self> {
        let [start, end] = match rule.row().period {
            Period::Minute | Period::Guard => return None,
            Period::Calendar(CalendarPeriod::Day) => [day, day.next()],
            Period::Calendar(CalendarPeriod::Month) => day.month(anchor),
        };
        Some(Self { rule, start, end })
    }

    /// Whether the window contains this day.
    pub fn contains(self, day: Day) -> bool {
        self.start <= day && day < self.end
    }

    /// The time when the window ends.
    pub const fn ends_at(self) -> Wall {
        self.end.start()
    }

    /// The length in seconds.
    pub const fn seconds(self) -> u32 {
        (self.end.number() - self.start.number()) * 86_400
    }
}
