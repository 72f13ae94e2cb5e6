//! The settlement of a day: after its end, a process returns its unspent units to the ledger. Otherwise, these
//! units would continue to count in the month and in the owner's windows.
//!
//! A process reports the final totals of a day until the ledger has confirmed them. A reply states all units that were
//! granted to the process, so units granted in a lost reply are returned by the next report. Only the process that
//! leased a unit returns it. So no unit that may still be spent is granted again, and only a crash leaves units unsettled.
//!
//! Pure.

use crate::clock::Day;

use super::{
    day_ledger::{NodeReport, NodeTotals},
    lease::DayBalance,
};

/// The totals of a process for a day, as the ledger confirmed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConfirmedTotals {
    totals: NodeTotals,
    /// Whether a later call, whose reply was lost, may have changed the totals.
    is_uncertain: bool,
}

/// A day that has ended in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EndedDay {
    day: DayBalance,
    confirmed: ConfirmedTotals,
}

impl ConfirmedTotals {
    /// The totals of a reply.
    pub const fn new(totals: NodeTotals) -> Self {
        Self {
            totals,
            is_uncertain: false,
        }
    }

    /// The totals after a call without a reply.
    #[must_use]
    pub const fn without_reply(self) -> Self {
        Self {
            is_uncertain: true,
            ..self
        }
    }

    /// Whether the reply of the last call was lost.
    pub const fn is_uncertain(self) -> bool {
        self.is_uncertain
    }

    /// Whether the ledger has the final totals of this balance.
    pub fn are_final(self, day: DayBalance) -> bool {
        !self.is_uncertain && self.totals == day.final_report().known
    }
}

impl EndedDay {
    /// The last balance of the day.
    pub const fn new(day: DayBalance, confirmed: ConfirmedTotals) -> Self {
        Self { day, confirmed }
    }

    /// The day.
    pub const fn day(self) -> Day {
        self.day.day()
    }

    /// The report of the final totals. `None` once the ledger has confirmed them.
    pub fn report(self) -> Option<NodeReport> {
        (!self.confirmed.are_final(self.day)).then(|| self.day.final_report())
    }

    /// Applies the reply to a report about the day.
    #[must_use]
    pub fn apply(self, node: NodeTotals, granted: u64) -> Self {
        Self {
            day: self.day.apply(self.day(), node, granted),
            confirmed: ConfirmedTotals::new(node),
        }
    }

    /// After a call about the day that got no reply.
    #[must_use]
    pub const fn without_reply(self) -> Self {
        let confirmed = self.confirmed.without_reply();
        Self { confirmed, ..self }
    }

    /// A request that began on the day has ended: its unit is spent if `kept`, else returned.
    #[must_use]
    pub fn settle(self, kept: bool) -> Self {
        let day = self.day.settle(self.day(), kept);
        Self { day, ..self }
    }
}
