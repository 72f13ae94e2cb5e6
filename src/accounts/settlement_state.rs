//! The settlement of an account's days: the totals that the ledger has confirmed, and those that it does not know. The rules are
//! in `limits::settlement`.

use scoregate_base::clock::Day;
use scoregate_base::limits::{ConfirmedTotals, DayBalance, Limits, NodeReport, NodeTotals};

use crate::accounts::account_state::{AccountState, BalanceAhead};

impl AccountState {
    /// Records the totals of this process in the ledger's reply about a day.
    pub(crate) fn confirm(&mut self, day: Day, node: NodeTotals, granted: u64) {
        let current = self.day().day();
        if let Some(lease) = &mut self.lease {
            lease.windows.confirm(current, day, node, granted);
        }
    }

    /// Records that a call about a day failed. The ledger may have applied its report.
    pub(crate) fn call_failed(&mut self, day: Day, limits: &Limits) {
        let current = self.day().day();
        let lease = self.lease.get_or_insert_default();
        if day <= current {
            return lease.windows.without_reply(current, day);
        }
        let ahead = lease.ahead.filter(|ahead| ahead.day.day() == day);
        let ahead = ahead.unwrap_or_else(|| BalanceAhead {
            leased_under: *limits,
            day: DayBalance::opened(day, 0),
            confirmed: ConfirmedTotals::default(),
        });
        lease.ahead = Some(BalanceAhead {
            confirmed: ahead.confirmed.without_reply(),
            ..ahead
        });
    }

    /// The last day that has ended here and the report that settles it, unless the ledger has confirmed its final totals.
    pub(crate) fn last_report(&self) -> Option<(Day, NodeReport)> {
        let ended = self.windows()?.ended()?;
        Some((ended.day(), ended.report()?))
    }

    /// Whether the ledger may have other totals of the current day than those to settle it, or units of a day ahead.
    pub(crate) fn is_unsettled(&self) -> bool {
        let lease = self.lease.as_ref();
        let confirmed =
            lease.map_or_else(ConfirmedTotals::default, |lease| lease.windows.confirmed());
        !confirmed.are_final(self.day()) || lease.is_some_and(|lease| lease.ahead.is_some())
    }

    /// Whether the reply of the last call about the current day was lost.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.windows()
            .is_some_and(|windows| windows.confirmed().is_uncertain())
    }
}
