//! The table of limits. The days of a calendar limit are in `window`.

use crate::words;

words! {
    /// A rule that can refuse a request.
    #[derive(Hash)]
    pub enum LimitRule: name {
        /// Requests per minute: a token bucket.
        Minute = "minute",
        /// Requests per UTC day: exact.
        Day = "day",
        /// Requests per calendar month: exact.
        Month = "month",
        /// Requests to all applications of an owner per UTC day: exact.
        OwnerDay = "owner_day",
        /// The same per calendar month: exact.
        OwnerMonth = "owner_month",
        /// Refused requests per minute: a token bucket.
        Guard = "guard",
    }
}

/// The requests that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of an application.
    Application,
    /// Those of all applications of an owner.
    Owner,
}

/// The time for which a limit counts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A minute: a token bucket.
    Minute,
    /// A minute of refused requests: a token bucket.
    Guard,
    /// A UTC day.
    Day,
    /// A month of UTC days.
    Month,
}

/// A row of the table of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The requests that it counts.
    pub scope: Scope,
    /// The time for which it counts them.
    pub period: Period,
}

impl LimitRule {
    /// The calendar limits besides the day. They are absent unless set, and their windows have rows of their own in the ledger.
    pub const WINDOWS: [Self; 3] = [Self::Month, Self::OwnerDay, Self::OwnerMonth];

    /// The table. Whatever differs between limits follows from their rows.
    pub const fn row(self) -> LimitRow {
        match self {
            Self::Minute => LimitRow::new(Scope::Application, Period::Minute),
            Self::Day => LimitRow::new(Scope::Application, Period::Day),
            Self::Month => LimitRow::new(Scope::Application, Period::Month),
            Self::OwnerDay => LimitRow::new(Scope::Owner, Period::Day),
            Self::OwnerMonth => LimitRow::new(Scope::Owner, Period::Month),
            Self::Guard => LimitRow::new(Scope::Application, Period::Guard),
        }
    }
}

impl LimitRow {
    const fn new(scope: Scope, period: Period) -> Self {
        Self { scope, period }
    }
}

impl Period {
    /// Whether its windows begin and end at midnight UTC. Then the limit is exact, and a unit counts in all its windows.
    pub const fn is_calendar(self) -> bool {
        match self {
            Self::Day | Self::Month => true,
            Self::Minute | Self::Guard => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_windows_are_the_calendar_limits_besides_the_day() {
        let is_window =
            |rule: &LimitRule| rule.row().period.is_calendar() && *rule != LimitRule::Day;
        let windows: Vec<_> = LimitRule::ALL.into_iter().filter(is_window).collect();
        assert_eq!(windows, LimitRule::WINDOWS);
    }
}
