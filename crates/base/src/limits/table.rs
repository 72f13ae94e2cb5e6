//! The table of limits. The days of a calendar limit are in `window`.

use crate::words;

words! {
    /// A rule that can refuse a request.
    #[derive(Hash)]
    pub enum LimitRule: name {
        /// Requests per minute, limited by a token bucket.
        Minute = "minute",
        /// Requests per UTC day, counted exactly.
        Day = "day",
        /// Requests per calendar month, counted exactly.
        Month = "month",
        /// Requests of all applications of an owner per UTC day, counted exactly.
        OwnerDay = "owner_day",
        /// Requests of all applications of an owner per calendar month, counted exactly.
        OwnerMonth = "owner_month",
        /// Refused requests per minute, limited by a token bucket.
        Guard = "guard",
    }
}

words! {
    /// A limit setting that can be set for an individual application or account. Limits have the same names as in
    /// [`LimitRule`].
    #[derive(Hash, PartialOrd, Ord)]
    pub enum LimitSetting: name {
        /// Requests per minute.
        Minute = "minute",
        /// Requests per day.
        Day = "day",
        /// Requests per month.
        Month = "month",
        /// The day on which the application's month begins.
        MonthAnchor = "month_anchor",
        /// Requests of all applications of an account per day.
        OwnerDay = "owner_day",
        /// Requests of all applications of an account per month.
        OwnerMonth = "owner_month",
    }
}

/// The requests that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The requests of one application.
    Application,
    /// The requests of all applications of an owner.
    Owner,
}

/// The time for which a limit counts requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// A minute, with a token bucket.
    Minute,
    /// A minute, with a token bucket for refused requests.
    Guard,
    /// UTC days. The limit is exact, and a unit counts in all windows that contain its day.
    Calendar(CalendarPeriod),
}

/// The days that a calendar limit counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalendarPeriod {
    /// A single day.
    Day,
    /// A month.
    Month,
}

/// A row of the table of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The requests that the limit counts.
    pub scope: Scope,
    /// The time for which the limit counts requests.
    pub period: Period,
}

impl LimitRule {
    /// The calendar limits other than the day. They apply only if set, and their windows have separate rows in the
    /// ledger.
    pub const WINDOWS: [Self; 3] = [Self::Month, Self::OwnerDay, Self::OwnerMonth];

    /// The table. All differences between limits are in their rows.
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

    /// A description for operators.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Minute => "Requests per minute; `none` for the tier's limit",
            Self::Day => "Requests per day; `none` for the tier's quota",
            Self::Month => "Requests per month; `none` for the tier's quota, if it has one",
            Self::MonthAnchor => {
                "Day on which the application's month begins, 1 to 31; `none` for the tier's day"
            }
            Self::OwnerDay => {
                "Requests per day of all the account's applications together; `none` for the tier's quota, if it has one"
            }
            Self::OwnerMonth => {
                "Requests per month of all the account's applications together; `none` for the tier's quota, if it has one"
            }
        }
    }

    /// The requests that the setting limits.
    pub fn scope(self) -> Scope {
        self.rule()
            .map_or(Scope::Application, |rule| rule.row().scope)
    }
}

impl Period {
    /// The adjective for a quota with this period.
    pub const fn adjective(self) -> &'static str {
        match self {
            Self::Minute | Self::Guard => "minute",
            Self::Calendar(CalendarPeriod::Day) => "daily",
            Self::Calendar(CalendarPeriod::Month) => "monthly",
        }
    }

    /// The phrase for the current period.
    pub const fn present(self) -> &'static str {
        match self {
            Self::Minute | Self::Guard => "in the last minute",
            Self::Calendar(CalendarPeriod::Day) => "today",
            Self::Calendar(CalendarPeriod::Month) => "this month",
        }
    }

    /// Whether the windows begin and end at midnight UTC.
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
