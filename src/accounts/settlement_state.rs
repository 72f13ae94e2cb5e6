//! The settlement of an account's days: the totals that the ledger has confirmed, and the totals that it has not confirmed yet. The rules are
//! in `limits::settlement`.

use scoregate_base::{
    clock::Day,
    limits::{ConfirmedTotals, DayBalance, Limits, NodeReport, NodeTotals},
};

use crate::accounts::{
    account_state::AccountState, balance_ahead::BalanceAhead, window_state::WindowState,
};

impl AccountState {
    /// Records this process's totals for a day, as stated in the ledger's reply.
    pub(crate) fn confirm(&mut self, day: Day, node: NodeTotals, granted: u64) {
        let current = self.day().day();
        if self.windows().is_some() {
            self.windows_mut().confirm(current, day, node, granted);
        }
    }

    /// Records that a ledger call for a day failed. The ledger may have applied its report.
    pub(crate) fn call_failed(&mut self, day: Day, limits: &Limits) {
        let current = self.day().day();
        if day > current {
            let ahead = self.ahead().filter(|ahead| ahead.day() == day);
            let ahead = ahead.unwrap_or_else(|| {
                let balance = DayBalance::opened(day, 0);
                BalanceAhead::new(*limits, balance, ConfirmedTotals::default())
            });
            self.set_ahead(ahead.without_reply());
        } else {
            self.windows_mut().without_reply(current, day);
        }
    }

    /// Whether units of this day were leased in advance.
    pub(crate) fn is_leased_ahead(&self, day: Day) -> bool {
        self.ahead()
            .is_some_and(|ahead| ahead.day() == day && !ahead.confirmed().is_uncertain())
    }

    /// The last day that has ended in this process, and the report that settles it. `None` once the ledger has confirmed the day's final totals.
    pub(crate) fn last_report(&self) -> Option<(Day, NodeReport)> {
        let ended = self.windows()?.ended()?;
        Some((ended.day(), ended.report()?))
    }

    /// Whether the ledger may lack the final totals of the current day, or may have granted units of a later day.
    pub(crate) fn is_unsettled(&self) -> bool {
        let confirmed = self.windows().map(WindowState::confirmed);
        !confirmed.unwrap_or_default().are_final(self.day()) || self.ahead().is_some()
    }

    /// Whether the reply to the last ledger call for the current day was lost.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.windows()
            .is_some_and(|windows| windows.confirmed().is_uncertain())
    }
}
