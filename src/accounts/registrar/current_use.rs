//! The current use of the limits of an application, for its owner. `/me` shows the same to its keys.

use std::sync::Arc;

use crate::clock::Wall;
use crate::limits::LimitRule;
use crate::store::StoredApplication;

use super::super::account::Account;
use super::Registrar;

/// The use of the limits of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentUse {
    /// Units used today.
    pub day_used: u32,
    /// Units of a day.
    pub day_limit: u32,
    /// When the next day begins.
    pub day_resets_at: Wall,
    /// Requests that are possible at once.
    pub minute_remaining: u32,
    /// Requests of a minute.
    pub minute_limit: u32,
    /// When all requests of a minute are possible again.
    pub minute_resets_at: Wall,
}

impl Registrar {
    /// The current use of an application as stored, with the units granted today. `None` if its tier is not configured.
    /// If none of its keys is in memory, all granted units count as used.
    pub fn current_use(&self, stored: &StoredApplication) -> Option<CurrentUse> {
        let now = self.clock.now();
        let account = if let Some(account) = self.account_of(stored) {
            account
        } else {
            let terms = self.terms.load().of(&stored.tier, stored.own)?;
            Arc::new(Account::new(stored, terms, now.wall.day()))
        };
        let terms = account.terms();
        let [minute, day, _] = account.limit_statuses(LimitRule::Day, &terms.limits, now);
        Some(CurrentUse {
            day_used: day.limit - day.remaining,
            day_limit: day.limit,
            day_resets_at: day.reset,
            minute_remaining: minute.remaining,
            minute_limit: minute.limit,
            minute_resets_at: minute.reset,
        })
    }
}
