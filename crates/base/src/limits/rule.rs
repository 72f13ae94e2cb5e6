//! The limits of an application, individual limits that override the limits of the tier, and the status of a balance
//! under a limit. Individual limits are stored by name, so a new limit needs no column.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::{Day, Now, Wall};

use super::{
    table::{LimitRule, LimitSetting, Period, Scope},
    window::{CalendarLimits, CalendarQuota, Window},
};

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

impl Limits {
    /// The calendar limits in force on a day: the daily limit and the others.
    pub fn calendar_on(&self, day: Day) -> impl Iterator<Item = CalendarQuota> {
        let window = Window::around(day, LimitRule::Day, 1);
        let quota = self.day;
        let of_day = window.map(|window| CalendarQuota { window, quota });
        of_day.into_iter().chain(self.calendar.around(day))
    }
}

/// The status of a rule at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitStatus {
    /// The rule.
    pub rule: LimitRule,
    /// The total allowance.
    pub limit: u32,
    /// The length of the window.
    pub window_seconds: u32,
    /// The remaining allowance.
    pub remaining: u32,
    /// The time when the allowance is full again. It is in the future whenever nothing is left.
    pub reset: Wall,
    /// Exact time until the allowance is full. `reset` has only whole seconds.
    pub full_in: Duration,
    /// Time until another request is possible; zero if one is possible now.
    pub wait: Duration,
}

impl LimitStatus {
    /// The status for a request that this rule refused. It shows nothing remaining, even if units or tokens have been
    /// returned since the decision at `decided`. A minute limit resets at the time of the next token, a calendar limit
    /// at a midnight. If that midnight has passed, the request may be repeated immediately.
    pub fn as_hit(self, decided: Now, now: Now) -> Self {
        let soon = || now.wall.plus(Duration::from_secs(1)).rounded_up();
        let period = self.rule.row().period;
        let reset = match period {
            Period::Calendar(_) => {
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

/// The maximum of `month_anchor`, the day of the month on which months begin.
const LAST_DAY: u32 = 31;

/// The limits that are set for one application or account. In JSON they are an object with one member per limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimits {
    /// The values, in the order of [`LimitSetting::ALL`].
    values: [Option<u32>; LimitSetting::ALL.len()],
}

/// A change of some limits: new values, or `None` for the values of the tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LimitChanges {
    changed: BTreeMap<LimitSetting, Option<u32>>,
}

/// The reason why a limit cannot be set. The message states the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLimit {
    /// The value is out of range. A limit of zero would refuse everything, and an anchor must be a day of a month.
    #[error("{}: write at least 1, and for month_anchor at most 31; to block an application, revoke its keys", .0.name())]
    OutOfRange(LimitSetting),
    /// The limit is for accounts, not for applications, or vice versa.
    #[error("{}: set limits of applications with `scoregate keys set-limits`, and limits of accounts with `scoregate accounts set-limits`", .0.name())]
    OtherScope(LimitSetting),
}

impl OwnLimits {
    /// No individual limits.
    pub const NONE: Self = Self {
        values: [None; LimitSetting::ALL.len()],
    };

    /// The value of a setting.
    pub fn get(self, setting: LimitSetting) -> Option<u32> {
        self.each()
            .find(|(known, _)| *known == setting)
            .map(|(_, value)| value)
    }

    /// These limits with a new value for one setting.
    #[must_use]
    pub fn with(mut self, setting: LimitSetting, value: impl Into<Option<u32>>) -> Self {
        let value = value.into();
        for (known, before) in LimitSetting::ALL.iter().zip(&mut self.values) {
            if *known == setting {
                *before = value;
            }
        }
        self
    }

    /// The settings that have a value.
    pub fn each(self) -> impl Iterator<Item = (LimitSetting, u32)> {
        let values = LimitSetting::ALL.into_iter().zip(self.values);
        values.filter_map(|(setting, value)| Some((setting, value?)))
    }

    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// The limits of this scope.
    #[must_use]
    pub fn within(self, scope: Scope) -> Self {
        let kept = self.each().filter(|(setting, _)| setting.scope() == scope);
        kept.fold(Self::NONE, |own, (setting, value)| own.with(setting, value))
    }

    /// These limits of an application combined with the limits of an account.
    #[must_use]
    pub fn with_owner(self, account: Self) -> Self {
        let limits = account.within(Scope::Owner).each();
        limits.fold(self.within(Scope::Application), |own, (setting, value)| {
            own.with(setting, value)
        })
    }

    /// Checks that all values are in range and all settings belong to this scope.
    pub fn check(self, scope: Scope) -> Result<(), BadLimit> {
        for (setting, value) in self.each() {
            let most = match setting.rule() {
                Some(_) => u32::MAX,
                None => LAST_DAY,
            };
            if setting.scope() != scope {
                return Err(BadLimit::OtherScope(setting));
            }
            if !(1..=most).contains(&value) {
                return Err(BadLimit::OutOfRange(setting));
            }
        }
        Ok(())
    }

    /// The limits in force if these limits override the limits of a tier.
    pub fn over(self, tier: Limits) -> Limits {
        let mut limits = tier;
        for (setting, value) in self.each() {
            match setting.rule() {
                None => {
                    let day = u8::try_from(value).unwrap_or(1);
                    limits.calendar = limits.calendar.with_month_anchor(day);
                }
                Some(LimitRule::Minute) => limits.minute = value,
                Some(LimitRule::Day) => limits.day = value,
                Some(rule) => limits.calendar = limits.calendar.with(rule, value),
            }
        }
        limits
    }

    /// The stored form; `None` if no limit is set. Equal limits have equal texts.
    pub fn to_text(self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        Some(serde_json::to_string(&self).expect("names and numbers are JSON"))
    }

    /// Parses the stored form. Gateways compare these strings, so a different spelling is an error.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let read = serde_json::from_str::<Self>(text)
            .map_err(|bad| format!("own_limits cannot be read: {bad}"))?;
        if read.to_text().as_deref() == Some(text) {
            Ok(read)
        } else {
            Err("own_limits is not in the form that `set-limits` writes".into())
        }
    }
}

impl LimitChanges {
    /// Adds another changed setting.
    #[must_use]
    pub fn with(mut self, setting: LimitSetting, value: impl Into<Option<u32>>) -> Self {
        self.changed.insert(setting, value.into());
        self
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
    }

    /// The changed settings and their new values.
    pub fn each(&self) -> impl Iterator<Item = (LimitSetting, Option<u32>)> {
        self.changed
            .iter()
            .map(|(setting, value)| (*setting, *value))
    }

    /// The limits after the change.
    pub fn over(&self, before: OwnLimits) -> OwnLimits {
        self.each()
            .fold(before, |own, (setting, value)| own.with(setting, value))
    }

    /// Checks that all new values are in range and all settings belong to this scope.
    pub fn check(&self, scope: Scope) -> Result<(), BadLimit> {
        let settings = self.each();
        let tried = settings.fold(OwnLimits::NONE, |own, (setting, value)| {
            own.with(setting, value.unwrap_or(1))
        });
        tried.check(scope)
    }
}

impl Serialize for OwnLimits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.each())
    }
}

impl<'de> Deserialize<'de> for OwnLimits {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = BTreeMap::<LimitSetting, u32>::deserialize(from)?;
        let each = given.into_iter();
        Ok(each.fold(Self::NONE, |own, (setting, value)| own.with(setting, value)))
    }
}

#[cfg(test)]
impl Limits {
    pub(super) const FREE: Self = Self::for_tests(1, 10, 0);
    pub(super) const PRO: Self = Self::for_tests(60, 10_000, 100);

    /// Limits per minute and day, and the units that may be owed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;

    const TIER: Limits = Limits {
        minute: 60,
        day: 10_000,
        guard: 60,
        grace: 100,
        calendar: CalendarLimits::NONE,
    };

    #[test]
    fn limits_are_stored_in_one_form_and_another_one_is_refused() {
        let own = OwnLimits::NONE
            .with(LimitSetting::OwnerDay, 9)
            .with(LimitSetting::Minute, 3);
        let text = own.to_text().unwrap();
        assert_eq!(text, r#"{"minute":3,"owner_day":9}"#);
        assert_eq!(OwnLimits::from_text(&text), Ok(own));
        assert_eq!(OwnLimits::NONE.to_text(), None);
        for bad in [
            "",
            "{}",
            r#"{"minute": 3}"#,
            r#"{"owner_day":9,"minute":3}"#,
            r#"{"minute":-1}"#,
            r#"{"minute":4294967296}"#,
            r#"{"hour":1}"#,
        ] {
            OwnLimits::from_text(bad).unwrap_err();
        }
    }

    #[test]
    fn own_limits_override_the_tier_and_the_anchor_leaves_months_of_owners_alone() {
        let tier = Limits {
            calendar: CalendarLimits::with_anchor(5).with(LimitRule::OwnerMonth, 7),
            ..TIER
        };
        let own = OwnLimits::NONE
            .with(LimitSetting::Day, 20)
            .with(LimitSetting::Month, 100)
            .with(LimitSetting::MonthAnchor, 31)
            .with(LimitSetting::OwnerDay, 30);
        let limits = own.over(tier);
        assert_eq!((limits.minute, limits.day), (60, 20));
        let today = Day::parse("2026-02-10").unwrap();
        let windows: Vec<_> = limits
            .calendar
            .around(today)
            .map(|limit| {
                let window = limit.window;
                (window.rule.name(), limit.quota, window.start.to_string())
            })
            .collect();
        assert_eq!(
            windows,
            [
                ("month", 100, "2026-01-31".to_owned()),
                ("owner_day", 30, "2026-02-10".to_owned()),
                ("owner_month", 7, "2026-02-05".to_owned()),
            ]
        );
    }

    #[test]
    fn an_impossible_limit_is_refused_with_the_remedy() {
        let one = |setting, value| OwnLimits::NONE.with(setting, value);
        for (own, scope, remedy) in [
            (one(LimitSetting::Day, 0), Scope::Application, "revoke"),
            (
                one(LimitSetting::MonthAnchor, 32),
                Scope::Application,
                "at most 31",
            ),
            (
                one(LimitSetting::OwnerDay, 1),
                Scope::Application,
                "accounts set-limits",
            ),
            (one(LimitSetting::Day, 1), Scope::Owner, "keys set-limits"),
        ] {
            let refused = own.check(scope).unwrap_err().to_string();
            assert!(refused.contains(remedy), "{refused}");
        }
        let taken_back = LimitChanges::default().with(LimitSetting::OwnerDay, None);
        assert!(taken_back.check(Scope::Application).is_err());
        assert!(taken_back.check(Scope::Owner).is_ok());
    }

    #[test]
    fn an_account_replaces_the_limits_of_accounts_only() {
        let own = OwnLimits::NONE
            .with(LimitSetting::Day, 5)
            .with(LimitSetting::OwnerDay, 9)
            .with(LimitSetting::OwnerMonth, 90);
        let account = OwnLimits::NONE.with(LimitSetting::OwnerMonth, 80);
        let expected = OwnLimits::NONE
            .with(LimitSetting::Day, 5)
            .with(LimitSetting::OwnerMonth, 80);
        assert_eq!(own.with_owner(account), expected);
    }
}
