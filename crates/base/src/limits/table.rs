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

words! {
    /// A setting of limits that an application or an account can have of its own. The names of limits are those of [`LimitRule`].
    #[derive(Hash, PartialOrd, Ord)]
    pub enum LimitSetting: name {
        /// Requests per minute.
        Minute = "minute",
        /// Requests per day.
        Day = "day",
        /// Requests per month.
        Month = "month",
        /// The day on which the months of the application begin.
        MonthAnchor = "month_anchor",
        /// Requests to all applications of an account per day.
        OwnerDay = "owner_day",
        /// The same per month.
        OwnerMonth = "owner_month",
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
    /// UTC days. Then the limit is exact, and a unit counts in all its windows.
    Calendar(CalendarPeriod),
}

/// The days that a calendar limit counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarPeriod {
    /// One.
    Day,
    /// A month.
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
            Self::Day => LimitRow::new(Scope::Application, Period::Calendar(CalendarPeriod::Day)),
            Self::Month => {
                LimitRow::new(Scope::Application, Period::Calendar(CalendarPeriod::Month))
            }
            Self::OwnerDay => LimitRow::new(Scope::Owner, Period::Calendar(CalendarPeriod::Day)),
            Self::OwnerMonth => {
                LimitRow::new(Scope::Owner, Period::Calendar(CalendarPeriod::Month))
            }
            Self::Guard => LimitRow::new(Scope::Application, Period::Guard),
        }
    }
}

impl LimitRow {
    const fn new(scope: Scope, period: Period) -> Self {
        Self { scope, period }
    }
}

impl LimitSetting {
    /// The limit; `None` for the day on which months begin.
    pub fn rule(self) -> Option<LimitRule> {
        LimitRule::parse(self.name())
    }

    /// Its description, for operators.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Minute => "Requests per minute; `none` for the tier's limit",
            Self::Day => "Requests per day; `none` for the tier's quota",
            Self::Month => "Requests per month; `none` for the tier's quota, if it has one",
            Self::MonthAnchor => {
                "Day on which the months of the application begin, 1 to 31; `none` for the tier's"
            }
            Self::OwnerDay => {
                "Requests to all applications of the account per day; `none` for the tier's quota, if it has one"
            }
            Self::OwnerMonth => {
                "Requests to all applications of the account per month; `none` for the tier's quota, if it has one"
            }
        }
    }

    /// The requests that it limits.
    pub fn scope(self) -> Scope {
        self.rule()
            .map_or(Scope::Application, |rule| rule.row().scope)
    }
}

impl Period {
    /// The adjective of a quota of this time.
    pub const fn adjective(self) -> &'static str {
        match self {
            Self::Minute | Self::Guard => "minute",
            Self::Calendar(CalendarPeriod::Day) => "daily",
            Self::Calendar(CalendarPeriod::Month) => "monthly",
        }
    }

    /// The present time of this kind.
    pub const fn present(self) -> &'static str {
        match self {
            Self::Minute | Self::Guard => "in the last minute",
            Self::Calendar(CalendarPeriod::Day) => "today",
            Self::Calendar(CalendarPeriod::Month) => "this month",
        }
    }

    /// Whether its windows begin and end at midnight UTC.
    pub const fn is_calendar(self) -> bool {
        matches!(self, Self::Calendar(_))
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
