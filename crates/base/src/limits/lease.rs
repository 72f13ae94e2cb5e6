//! The daily balance of one application in one process: units leased from the ledger, held by requests in flight, and
//! spent on delivered data. Units are leased before they are spent, so no crash creates units. In a crash, leased and
//! unspent units are lost to the caller, but never counted twice. These units never exceed one lease, because leasing fills the
//! balance only up to one lease. Leases start at one unit and double with use, so a process that crashes
//! after a few requests loses only a few units.
//!
//! The one exception is grace while the ledger is unreachable. Units are then spent before they are leased, and are
//! owed to the ledger until it is reachable. They are durably reserved first. They never exceed the quota known to this process,
//! or the number of units that the application may owe on this gateway's share (`grace_share`).
//!
//! The code is pure. A lease is valid only for its day. The day only moves forward: if the wall clock is set back, a
//! closed day is not reopened.

#[cfg(test)]
#[path = "tests_of_lease.rs"]
mod tests;

use crate::{
    clock::Day,
    limits::{
        day_ledger::{DayTotals, NodeReport, NodeTotals},
        grace_share::grace_block,
    },
};

/// Number of units that are leased before a day begins, unless the largest lease is smaller.
// The first requests of the day do not have to wait, and a crash loses few units.
const FIRST_LEASE: u32 = 8;

/// An application's day in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DayBalance {
    day: Day,
    /// Total of units granted by the ledger to this process.
    granted: u32,
    /// Total of units returned by this process.
    returned: u32,
    spent: u32,
    held: u32,
    /// The total that is durably recorded as granted. Units are used without a lease only up to this total.
    reserved: u32,
    /// Units granted by the ledger to other nodes and earlier processes. Together with leased units, they never exceed
    /// a quota.
    elsewhere: u32,
}

impl DayBalance {
    /// The initial balance: nothing is leased, and `granted` units belong to earlier processes or other nodes.
    pub fn opened(day: Day, granted: u64) -> Self {
        Self {
            day,
            elsewhere: u32::try_from(granted).unwrap_or(u32::MAX),
            ..Self::default()
        }
    }

    /// The day of the balance.
    pub const fn day(self) -> Day {
        self.day
    }

    /// The balance of `today`: this balance, or a new one if the day has changed.
    pub fn on(self, today: Day) -> Self {
        if today > self.day {
            Self::opened(today, 0)
        } else {
            self
        }
    }

    /// Units that can be held now.
    pub fn available(self, quota: u32) -> u32 {
        // A quota that was lowered during the day also limits units that were leased before.
        self.idle().min(self.remaining(quota))
    }

    /// Units that the ledger may still grant.
    pub fn unleased(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.leased()))
    }

    /// Whether this process alone uses less than the quota. If so, and the quota is exhausted, other nodes have units that they
    /// may return.
    pub fn may_gain(self, quota: u32) -> bool {
        self.in_use() < quota
    }

    /// Remaining units of the day, as reported to the caller.
    pub fn remaining(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.in_use()))
    }

    /// Units granted to this process and not returned.
    pub const fn leased(self) -> u32 {
        self.granted.saturating_sub(self.returned)
    }

    /// Units granted to all processes and not returned.
    pub fn granted(self) -> u64 {
        u64::from(self.elsewhere) + u64::from(self.leased())
    }

    /// The totals of this process.
    pub const fn totals(self) -> NodeTotals {
        NodeTotals {
            granted: self.granted,
            returned: self.returned,
        }
    }

    /// The report that leases the units that are needed next.
    pub fn report(self, quota: u32) -> NodeReport {
        // At least one unit is requested even if none seems to be left, because other nodes may have returned some.
        let least = u32::from(self.idle() == 0 && self.may_gain(quota));
        let granted = self
            .granted
            .saturating_add(self.units_to_lease(quota).max(least));
        NodeReport {
            known: self.totals(),
            granted,
            quota,
        }
    }

    /// The report that leases the first units of a day before it begins.
    pub fn report_ahead(self, quota: u32) -> NodeReport {
        let granted = largest_lease(quota).min(FIRST_LEASE);
        NodeReport {
            known: self.totals(),
            granted,
            quota,
        }
    }

    /// Whether the ledger has totals of this process.
    pub const fn is_leased(self) -> bool {
        self.granted > 0
    }

    /// Whether a unit was spent in this process.
    pub const fn is_used(self) -> bool {
        self.spent > 0
    }

    /// Units spent in this process.
    pub const fn spent(self) -> u32 {
        self.spent
    }

    /// Units that were spent or are held without a lease, and are owed to the ledger.
    pub fn owed(self) -> u32 {
        self.in_use().saturating_sub(self.leased())
    }

    /// Number of units to lease next: the owed units, plus the units that fill the balance up to one lease. Units held by
    /// requests in flight count as part of the balance. If these requests hold a whole lease or more, one additional unit is
    /// leased.
    pub fn units_to_lease(self, quota: u32) -> u32 {
        let grown = self.in_use().saturating_add(self.one_lease(quota));
        let filled = grown.min(self.spent.saturating_add(self.full_lease(quota)));
        let enough_for_one_more = self.in_use().saturating_add(u32::from(self.idle() == 0));
        filled
            .max(enough_for_one_more)
            .saturating_sub(self.leased())
            .min(self.unleased(quota))
    }

    /// Whether to lease more units now. This is the case once at most half a lease is left, so that requests do not have to wait. Under a
    /// small quota, whose lease is always a single unit, units are leased on demand.
    pub fn runs_low(self, quota: u32) -> bool {
        let is_low = self.idle() == 0 || self.unspent() <= self.one_lease(quota) / 2;
        largest_lease(quota) > 1 && is_low && self.units_to_lease(quota) > 0
    }

    /// Holds a unit. `None` if none is available.
    pub fn hold(self, quota: u32) -> Option<Self> {
        (self.available(quota) > 0).then(|| Self {
            held: self.held + 1,
            ..self
        })
    }

    /// Whether another unit may be owed, if the application may owe `grace` units in this process.
    pub fn may_owe(self, quota: u32, grace: u32) -> bool {
        self.owed() < grace && self.remaining(quota) > 0
    }

    /// Holds an unleased unit because the ledger is unreachable. `None` if the unit must not be owed or is not
    /// reserved.
    pub fn hold_on_grace(self, quota: u32, grace: u32) -> Option<Self> {
        let may = self.may_owe(quota, grace) && self.has_reserved();
        may.then(|| Self {
            held: self.held + 1,
            ..self
        })
    }

    /// Whether more units are reserved than owed.
    pub fn has_reserved(self) -> bool {
        self.granted.saturating_add(self.owed()) < self.reserved
    }

    /// The total to record as granted before more units are owed, and the number of owed units that it includes.
    pub fn to_reserve(self, grace: u32) -> (u32, u32) {
        let owed = self.owed().saturating_add(grace_block(grace)).min(grace);
        (self.granted.saturating_add(owed), owed)
    }

    /// The reserved total.
    pub const fn reserved(self) -> u32 {
        self.reserved
    }

    /// Records `total` as the reserved total of `day`.
    pub fn reserve(self, day: Day, total: u32) -> Self {
        if day == self.day {
            Self {
                reserved: self.reserved.max(total),
                ..self
            }
        } else {
            self
        }
    }

    /// The balance without reserved units.
    pub fn without_reserve(self) -> Self {
        Self {
            reserved: 0,
            ..self
        }
    }

    /// Settles a unit held on `day`. It is spent if `kept`, otherwise available again. Units of an earlier day are
    /// ignored.
    pub fn settle(self, day: Day, kept: bool) -> Self {
        if day != self.day {
            return self;
        }
        Self {
            held: self.held.saturating_sub(1),
            spent: self.spent + u32::from(kept),
            ..self
        }
    }

    /// Applies the ledger's reply for `day`: the totals of this process and the units granted to all processes.
    pub fn apply(self, day: Day, node: NodeTotals, total: u64) -> Self {
        let current = self.on(day);
        if day != current.day {
            return current; // leased for a day that has ended
        }
        let NodeTotals {
            granted, returned, ..
        } = current.totals().merged(node);
        let leased = Self {
            granted,
            returned,
            ..current
        };
        // The reply may be older than a return by this process. `total` then still includes the returned units.
        let elsewhere = total.saturating_sub(u64::from(node.held()));
        Self {
            elsewhere: u32::try_from(elsewhere).unwrap_or(u32::MAX),
            ..leased
        }
    }

    /// The balance after a ledger call, if the ledger has the totals known to this process and grants all requested units.
    pub fn leased_in_full(self, quota: u32) -> Self {
        let before = self.without_excess(quota);
        let known = DayTotals {
            granted: u64::from(self.elsewhere) + u64::from(self.leased()),
        };
        let (total, node) = known.apply(self.totals(), &before.report(quota));
        before.apply(self.day, node, total.granted)
    }

    /// Takes out leased units that are neither spent nor held. The report returns them to the ledger; `None` if there
    /// are none.
    pub fn release(self) -> (Self, Option<NodeReport>) {
        let left = self.without_idle();
        let report = NodeReport {
            known: left.totals(),
            ..NodeReport::default()
        };
        (left, (self.idle() > 0).then_some(report))
    }

    /// The balance without units that are neither spent nor held. The next report returns these units.
    pub fn without_idle(self) -> Self {
        Self {
            returned: self.returned.saturating_add(self.idle()),
            ..self
        }
    }

    /// The balance without idle units beyond the quota, which were leased under a larger quota. The next report returns
    /// these units.
    pub fn without_excess(self, quota: u32) -> Self {
        let excess = self.idle().saturating_sub(self.remaining(quota));
        Self {
            returned: self.returned.saturating_add(excess),
            ..self
        }
    }

    /// The report that charges unleased units to the ledger. All units in use count as granted.
    pub fn charge(self) -> NodeReport {
        let known = NodeTotals {
            granted: self.granted.saturating_add(self.owed()),
            ..self.totals()
        };
        NodeReport {
            known,
            ..NodeReport::default()
        }
    }

    /// The last report, after the day has ended: units in use are charged, and all others are returned.
    pub fn final_report(self) -> NodeReport {
        self.without_idle().charge()
    }

    /// Units known to be used: spent here, or granted to other nodes or earlier processes.
    pub const fn used(self) -> u32 {
        self.elsewhere.saturating_add(self.spent)
    }

    /// Whether the balance can be dropped without loss: nothing was used, and the ledger has no totals of this process.
    pub const fn can_be_dropped(self) -> bool {
        self.held == 0 && self.spent == 0 && !self.is_leased()
    }

    pub(super) fn in_use(self) -> u32 {
        self.spent.saturating_add(self.held)
    }

    /// Leased and unspent units, which a crash would lose.
    pub const fn unspent(self) -> u32 {
        self.leased().saturating_sub(self.spent)
    }

    fn idle(self) -> u32 {
        self.leased().saturating_sub(self.in_use())
    }

    /// The size of the current lease: as many units as this process has used today, so that leases double, up to a full
    /// lease.
    fn one_lease(self, quota: u32) -> u32 {
        self.full_lease(quota).min(self.in_use().max(1))
    }

    /// The size of a full lease now: one hundredth of the quota, at most a quarter of the remaining units, but at least
    /// one.
    fn full_lease(self, quota: u32) -> u32 {
        let left = self.unleased(quota).saturating_sub(self.owed());
        largest_lease(quota).min((left / 4).max(1))
    }
}

#[cfg(any(test, feature = "lab"))]
impl DayBalance {
    /// Applies a grant of units with the total of all nodes, and reserves additional units of grace.
    pub fn grant(self, day: Day, units: u32, grace: u32, total: u64) -> Self {
        let before = self.on(day).totals();
        let granted = before.granted + units;
        self.apply(day, NodeTotals { granted, ..before }, total)
            .reserve(day, granted + grace)
    }
}

/// The maximum number of leased and unspent units: one hundredth of the quota, but at least one. A crash cannot lose
/// more units, unless more requests are in flight.
pub const fn largest_lease(quota: u32) -> u32 {
    if quota < 100 { 1 } else { quota / 100 }
}
