//! An application as requests meet it: its terms, which an operator changes, and its books, which every request
//! changes. Not for: finding it (`key_directory`) nor for leasing units (`leases`).

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::clock::{Day, Now};
use crate::keys::ApplicationId;
use crate::limits::{AccountBalance, LimitRule, LimitStatus, Limits};
use crate::store::StoredApplication;

use super::terms::Terms;

/// An application, as far as requests are concerned.
#[derive(Debug)]
pub struct Account {
    /// Its identifier.
    pub id: ApplicationId,
    terms: ArcSwap<Terms>,
    books: Mutex<AccountState>,
}

/// What changes with every request.
#[derive(Debug)]
pub(crate) struct AccountState {
    /// Its name, for people.
    name: Box<str>,
    /// The balances.
    pub(crate) balance: AccountBalance,
    /// The ledger call under way for it, if any.
    /// Apart: of a million applications hardly any has one.
    pub(super) leasing: Option<Box<LeaseCall>>,
    /// Whether it is on the list of those that delivered on grace.
    pub(super) is_owing: bool,
}

/// A ledger call under way: `true` once it succeeded, `false` once it failed, nothing before.
#[derive(Clone, Debug)]
pub(super) struct LeaseCall(pub(super) watch::Receiver<Option<bool>>);

impl LeaseCall {
    /// Whether somebody still works on it: a call whose task is gone is over, however it went.
    pub(super) fn is_under_way(&self) -> bool {
        self.0.has_changed().is_ok()
    }
}

impl Account {
    /// An application as stored, of which this process knows nothing yet but what the ledger granted of `day`.
    pub(crate) fn new(stored: &StoredApplication, terms: Arc<Terms>, day: Day) -> Self {
        let balance = AccountBalance::opened(&terms.limits, day, stored.granted);
        Self {
            id: stored.id,
            terms: ArcSwap::new(terms),
            books: Mutex::new(AccountState {
                name: stored.name.as_str().into(),
                balance,
                leasing: None,
                is_owing: false,
            }),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> Box<str> {
        self.books().name.clone()
    }

    /// Another name, from now on.
    pub(super) fn set_name(&self, name: &str) {
        let mut books = self.books();
        if *books.name != *name {
            books.name = name.into();
        }
    }

    /// The terms in force.
    pub fn terms(&self) -> arc_swap::Guard<Arc<Terms>> {
        self.terms.load()
    }

    /// Other terms, from now on.
    pub(super) fn set_terms(&self, terms: Arc<Terms>) {
        self.terms.store(terms);
    }

    /// Whether forgetting it loses nothing: its balance is what a fresh start would give, and no unit is on its way.
    pub(super) fn is_at_rest(&self, now: Now) -> bool {
        !self.is_leasing() && self.books().balance.is_at_rest(now)
    }

    /// Whether a ledger call is under way for it.
    pub fn is_leasing(&self) -> bool {
        self.books().leasing.as_ref().is_some_and(|call| call.is_under_way())
    }

    /// The books, for one step without waiting.
    pub(crate) fn books(&self) -> MutexGuard<'_, AccountState> {
        #[cfg(test)]
        super::preemption::switch_here();
        // A step is pure arithmetic; a panic elsewhere leaves the books as they were before or after one.
        self.books.lock()
    }

    /// Units of today that were used, as far as this machine knows.
    pub(super) fn used(&self, today: Day) -> u32 {
        self.books().balance.day.on(today).used()
    }

    /// What is left under a rule.
    pub fn standing(&self, rule: LimitRule, limits: &Limits, now: Now) -> LimitStatus {
        self.books().balance.standing(rule, limits, now)
    }

    /// What is left of the minute and of the day, and under `rule`: one step for all headers of an answer.
    pub(crate) fn standings(&self, rule: LimitRule, limits: &Limits, now: Now) -> [LimitStatus; 3] {
        let balance = self.books().balance;
        let [minute, day] =
            [LimitRule::Minute, LimitRule::Day].map(|rule| balance.standing(rule, limits, now));
        let asked = match rule {
            LimitRule::Minute => minute,
            LimitRule::Day => day,
            LimitRule::Guard => balance.standing(rule, limits, now),
        };
        [minute, day, asked]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_application_is_small() {
        // With the two counts of an `Arc` and the allocator's own word this is a piece of 128 bytes, and not of 144.
        assert!(size_of::<Account>() <= 104, "{}", size_of::<Account>());
    }
}
