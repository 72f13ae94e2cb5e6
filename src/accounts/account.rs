//! An application: its terms, changed by operators, and its balances, changed by every request. Lookup by key is in
//! `key_directory`, leasing in `leases`.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::clock::{Day, Now};
use crate::keys::ApplicationId;
use crate::limits::{AccountBalance, LimitRule, LimitStatus, Limits};
use crate::store::StoredApplication;

use super::terms::Terms;

/// An application, as requests use it.
#[derive(Debug)]
pub struct Account {
    /// Its id.
    pub id: ApplicationId,
    terms: ArcSwap<Terms>,
    state: Mutex<AccountState>,
}

/// The state that requests change.
#[derive(Debug)]
pub(crate) struct AccountState {
    /// Its display name.
    name: Box<str>,
    pub(crate) balance: AccountBalance,
    /// The ledger call in flight, if any. Boxed: of a million applications hardly any has one.
    pub(super) leasing: Option<Box<LeaseCall>>,
    /// Whether it is listed among the accounts that delivered units on grace.
    pub(super) is_uncharged: bool,
}

/// A ledger call in flight: `true` once it succeeded, `false` once it failed, `None` before.
#[derive(Clone, Debug)]
pub(super) struct LeaseCall(pub(super) watch::Receiver<Option<bool>>);

impl LeaseCall {
    /// Whether the call still runs: a call whose task is gone has ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.has_changed().is_ok()
    }
}

impl Account {
    /// An application as stored. Of its use only the units granted for `day` are known.
    pub(crate) fn new(stored: &StoredApplication, terms: Arc<Terms>, day: Day) -> Self {
        let balance = AccountBalance::opened(&terms.limits, day, stored.granted);
        Self {
            id: stored.id,
            terms: ArcSwap::new(terms),
            state: Mutex::new(AccountState {
                name: stored.name.as_str().into(),
                balance,
                leasing: None,
                is_uncharged: false,
            }),
        }
    }

    /// Its display name.
    pub(crate) fn name(&self) -> Box<str> {
        self.state().name.clone()
    }

    /// Changes the display name.
    pub(super) fn set_name(&self, name: &str) {
        let mut state = self.state();
        if *state.name != *name {
            state.name = name.into();
        }
    }

    /// The current terms.
    pub fn terms(&self) -> arc_swap::Guard<Arc<Terms>> {
        self.terms.load()
    }

    /// Changes the terms.
    pub(super) fn set_terms(&self, terms: Arc<Terms>) {
        self.terms.store(terms);
    }

    /// Whether it can be dropped without loss: its balance equals that of a new account, and no ledger call is in
    /// flight.
    pub(super) fn can_be_dropped(&self, now: Now) -> bool {
        !self.is_leasing() && self.state().balance.can_be_dropped(now)
    }

    /// Whether a ledger call is in flight for it.
    pub fn is_leasing(&self) -> bool {
        self.state().leasing.as_ref().is_some_and(|call| call.is_under_way())
    }

    /// Locks the state for one step that does not wait.
    pub(crate) fn state(&self) -> MutexGuard<'_, AccountState> {
        #[cfg(test)]
        super::preemption::switch_here();
        // A step is pure arithmetic, so a panic cannot leave the state half changed.
        self.state.lock()
    }

    /// Units of today used through this process.
    pub(super) fn used(&self, today: Day) -> u32 {
        self.state().balance.day.on(today).used()
    }

    /// Whether it used a unit of this day through this process.
    pub(super) fn is_used_on(&self, day: Day) -> bool {
        let current = self.state().balance.day;
        current.day() == day && current.is_used()
    }

    /// Status of one rule.
    pub fn limit_status(&self, rule: LimitRule, limits: &Limits, now: Now) -> LimitStatus {
        self.state().balance.limit_status(rule, limits, now)
    }

    /// Status of the minute, the day and `rule`, read in one step for all headers of a response.
    pub(crate) fn limit_statuses(&self, rule: LimitRule, limits: &Limits, now: Now) -> [LimitStatus; 3] {
        let balance = self.state().balance;
        let [minute, day] =
            [LimitRule::Minute, LimitRule::Day].map(|rule| balance.limit_status(rule, limits, now));
        let hit = match rule {
            LimitRule::Minute => minute,
            LimitRule::Day => day,
            LimitRule::Guard => balance.limit_status(rule, limits, now),
        };
        [minute, day, hit]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_application_is_small() {
        // With the two counters of an `Arc` and the allocator's header this fits into 128 bytes instead of 144.
        assert!(size_of::<Account>() <= 104, "{}", size_of::<Account>());
    }
}
