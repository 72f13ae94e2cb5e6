//! The balance of a day that was leased before it began.

use scoregate_base::{
    clock::Day,
    limits::{ConfirmedTotals, DayBalance, Limits, NodeReport},
};

/// The balance, with the limits under which it was leased and the totals that the ledger has confirmed.
#[derive(Clone, Copy, Debug)]
pub struct BalanceAhead {
    leased_under: Limits,
    balance: DayBalance,
    confirmed: ConfirmedTotals,
}

impl BalanceAhead {
    pub const fn new(
        leased_under: Limits,
        balance: DayBalance,
        confirmed: ConfirmedTotals,
    ) -> Self {
        Self {
            leased_under,
            balance,
            confirmed,
        }
    }

    pub const fn day(self) -> Day {
        self.balance.day()
    }

    pub const fn confirmed(self) -> ConfirmedTotals {
        self.confirmed
    }

    /// The balance with which the day begins. Units leased under other limits cannot be used. The next report returns them.
    pub fn begin(self, limits: &Limits) -> DayBalance {
        if self.leased_under == *limits {
            self.balance
        } else {
            self.balance.without_idle()
        }
    }

    /// The balance after a ledger call whose reply was lost.
    pub const fn without_reply(self) -> Self {
        let confirmed = self.confirmed.without_reply();
        Self { confirmed, ..self }
    }

    /// The report that returns all units, unless the ledger has confirmed its totals.
    pub fn last_report(self) -> Option<(Day, NodeReport)> {
        let is_final = self.confirmed.are_final(self.balance);
        (!is_final).then(|| (self.day(), self.balance.final_report()))
    }
}
