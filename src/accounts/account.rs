//! Applications. Operators change an application's terms, and its requests change its balances. Lookup by key is in
//! `key_directory`, leasing in `leases`.

use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};

use scoregate_base::{
    clock::{Day, Now},
    keys::ApplicationId,
    limits::{
        AccountBalance, CalendarQuota, ConfirmedTotals, DayBalance, LimitRule, LimitStatus, Limits,
        NodeTotals, WindowUnits,
    },
};
use scoregate_store::StoredApplication;

use crate::accounts::{account_state::AccountState, balance_ahead::BalanceAhead, terms::Terms};

/// The account of an application: its terms and balances.
#[derive(Debug)]
pub struct Account {
    /// The id of the application.
    pub id: ApplicationId,
    // Every request reads the terms, which rarely change, so reading needs no lock.
    terms: ArcSwap<Terms>,
    // One lock protects all balances, so that a request takes both a minute token and a unit of the day, or neither.
    state: Mutex<AccountState>,
}

impl Account {
    /// Creates the account of a stored application. The only stored usage is the number of units granted for `day`.
    pub(crate) fn new(stored: &StoredApplication, terms: Arc<Terms>, day: Day) -> Self {
        let balance = AccountBalance::opened(&terms.limits, day, stored.granted);
        Self {
            id: stored.id,
            terms: ArcSwap::new(terms),
            state: Mutex::new(AccountState::new(&stored.name, balance)),
        }
    }

    /// A copy of the account for a dry run.
    pub(crate) fn copied(&self) -> Self {
        Self {
            id: self.id,
            terms: ArcSwap::new(self.terms.load_full()),
            state: Mutex::new(self.state().clone()),
        }
    }

    /// Applies a ledger call that grants the next requested units in full, as if no other process had taken units since
    /// the last call.
    pub(crate) fn lease_in_full(&self, today: Day) {
        let limits = self.terms().limits;
        let mut state = self.state();
        let leased = state.open_day(today, &limits).leased_in_full(limits.day);
        state.set_day(leased);
    }

    /// Applies a reservation of all grace units.
    pub(crate) fn reserve_in_full(&self, grace: u32) {
        let mut state = self.state();
        let day = state.day();
        state.reserve(day.day(), day.to_reserve(grace).0);
    }

    /// The display name of the application.
    pub(crate) fn name(&self) -> Box<str> {
        self.state().name()
    }

    /// Changes the display name.
    pub(crate) fn set_name(&self, name: &str) {
        self.state().set_name(name);
    }

    /// The current terms.
    pub fn terms(&self) -> arc_swap::Guard<Arc<Terms>> {
        self.terms.load()
    }

    /// Changes the terms. Units leased under other limits can no longer be used. Returns their number, or `None` if the
    /// change does not affect the ledger.
    pub(crate) fn set_terms(&self, terms: &Arc<Terms>) -> Option<u32> {
        let mut state = self.state();
        // The terms are changed under the lock of the state. Reports are also built under this lock, so the units and
        // the terms of a report are consistent.
        let before = self.terms.swap(Arc::clone(terms));
        let day = state.day();
        // If `is_leased` is false, the ledger has granted nothing to this process under the old limits.
        let is_leased =
            day.is_leased() || state.known_minute_lease().is_some() || state.call().is_some();
        if state.known_minute_lease().is_some() {
            state.minute_lease().ask_again();
        }
        (before.limits != terms.limits && is_leased).then(|| {
            state.set_day(day.without_idle());
            day.leased() - state.day().leased()
        })
    }

    /// Applies the ledger's reply to an advance lease for `day`, and returns the number of leased units. If the day
    /// has begun in the meantime, the account may already have leased units of that day. The totals then include both
    /// leases.
    pub(crate) fn lease_ahead(
        &self,
        leased_under: Limits,
        day: Day,
        node: NodeTotals,
        granted: u64,
    ) -> u32 {
        let mut state = self.state();
        let current = state.day();
        if current.day() < day {
            let ahead = DayBalance::opened(day, 0).apply(day, node, granted);
            let confirmed = ConfirmedTotals::new(node);
            state.set_ahead(BalanceAhead::new(leased_under, ahead, confirmed));
            return ahead.leased();
        }
        let applied = current.apply(day, node, granted);
        let is_current = leased_under == self.terms.load().limits;
        state.set_day(if is_current {
            applied
        } else {
            applied.without_idle()
        });
        state.confirm(day, node, granted);
        applied.leased().saturating_sub(current.leased())
    }

    /// Records that a ledger call for a day failed.
    pub(crate) fn call_failed(&self, day: Day) {
        self.state().call_failed(day, &self.terms().limits);
    }

    /// Opens the day again with the units granted so far, unless this process has leased or used units.
    pub(crate) fn reopen_unused(&self, day: Day, granted: u64) {
        let mut state = self.state();
        // Only the current balance contains the units that this process leased or used.
        if state.day().can_be_dropped() {
            state.set_day(DayBalance::opened(day, granted));
        }
    }

    /// Whether the account can be dropped without loss: its balance equals that of a new account, no ledger call is in flight, and its
    /// days are settled.
    pub(crate) fn can_be_dropped(&self, now: Now) -> bool {
        let today = now.wall.day();
        let has_windows = !self.terms().limits.calendar.is_empty();
        let state = self.state();
        let was_used = has_windows && state.day().day().next() >= today;
        let is_settled = !was_used || !state.is_unsettled() && state.last_report().is_none();
        is_settled && state.call().is_none() && state.balance().can_be_dropped(now)
    }

    /// Whether a ledger call is in flight for the account.
    pub fn is_leasing(&self) -> bool {
        self.state().call().is_some()
    }

    /// Locks the state for one step that does not wait.
    pub(crate) fn state(&self) -> MutexGuard<'_, AccountState> {
        #[cfg(test)]
        super::preemption::switch_here();
        // A step is pure arithmetic, so a panic cannot leave the state half changed.
        self.state.lock()
    }

    /// Today's units that were used through this process.
    pub(crate) fn used(&self, today: Day) -> u32 {
        self.state().day().on(today).used()
    }

    /// Whether the application used a unit of this day through this process.
    pub(crate) fn is_used_on(&self, day: Day) -> bool {
        let current = self.state().day();
        current.day() == day && current.is_used()
    }

    /// Status of one rule.
    pub fn limit_status(&self, rule: LimitRule, limits: &Limits, now: Now) -> LimitStatus {
        self.state().limit_status(rule, limits, now)
    }

    /// Status of the minute limit, the daily limit and `rule`, read in one step for all headers of a response.
    pub(crate) fn limit_statuses(
        &self,
        rule: LimitRule,
        limits: &Limits,
        now: Now,
    ) -> [LimitStatus; 3] {
        let state = self.state();
        let [minute, day] =
            [LimitRule::Minute, LimitRule::Day].map(|rule| state.limit_status(rule, limits, now));
        let read = [minute, day].into_iter().find(|read| read.rule == rule);
        let hit = read.unwrap_or_else(|| state.limit_status(rule, limits, now));
        [minute, day, hit]
    }

    /// Units granted to all gateways, for each calendar limit that is in force and has a known balance.
    pub(crate) fn granted(&self, limits: &Limits, now: Now) -> Vec<WindowUnits> {
        let state = self.state();
        let today = state.day().on(now.wall.day());
        let mut units = Vec::new();
        for CalendarQuota { window, .. } in limits.calendar_on(today.day()) {
            let granted = if window.rule == LimitRule::Day {
                Some(today.granted())
            } else {
                state
                    .windows()
                    .and_then(|windows| windows.granted(window, state.day(), today))
            };
            units.extend(granted.map(|granted| WindowUnits { window, granted }));
        }
        units
    }

    /// Status of the minute limit, the day limit, and every other calendar limit that is in force and has a known balance.
    pub(crate) fn statuses(&self, now: Now) -> Vec<LimitStatus> {
        let limits = self.terms().limits;
        let [minute, day, _] = self.limit_statuses(LimitRule::Day, &limits, now);
        let mut statuses = vec![minute, day];
        statuses.extend(self.window_statuses(&limits, now));
        statuses
    }

    /// Status of each calendar window other than the day, if its balance is known. The balance is known once the window has been
    /// used since startup.
    pub(crate) fn window_statuses(&self, limits: &Limits, now: Now) -> Vec<LimitStatus> {
        if limits.calendar.is_empty() {
            return Vec::new();
        }
        self.state().window_statuses(limits, now)
    }
}

#[cfg(test)]
mod tests {
    use crate::accounts::account::*;

    #[test]
    fn an_idle_application_is_small() {
        // With the two counters of an `Arc` and the allocator's header, this fits into 128 bytes instead of 144.
        assert!(size_of::<Account>() <= 104, "{}", size_of::<Account>());
    }
}
