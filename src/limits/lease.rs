//! The daily balance of one application in one process: units leased from the ledger, held by requests in flight,
//! spent on delivered data. Reserve, then spend: units that were not leased cannot be spent, so no crash creates
//! units. Units leased and unspent at a crash are lost to the caller, never doubled, and are never more than one
//! lease: leasing fills the balance up to one lease. Leases start at one unit and double with use, so a process that
//! crashes after a few requests loses a few units.
//!
//! The one exception is grace: units that the ledger promised for the time when it is unreachable. They are spent
//! before they are leased and owed to the ledger until it is reachable. They never exceed the quota as this process
//! knows it, and all promises together are one hundredth of the day, also after crashes.
//!
//! Pure. A lease is valid for its day only. The day only moves forward: setting the wall clock back never reopens a
//! closed day.

use crate::clock::Day;

use super::day_ledger::{NodeReport, NodeTotals};

/// Units leased of a day before it begins, unless the largest lease is smaller.
const FIRST_LEASE: u32 = 8;

/// An application's day in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayBalance {
    day: Day,
    /// Total of units granted by the ledger to this process.
    granted: u32,
    /// Total of units returned by it.
    returned: u32,
    spent: u32,
    held: u32,
    /// Units of grace promised by the ledger, and not released, for the time when it is unreachable.
    promised: u32,
    /// Granted by the ledger to other nodes and earlier processes. Together with leased units never more than a
    /// quota.
    elsewhere: u32,
}

impl DayBalance {
    /// The balance at start: nothing leased, `granted` units given to earlier processes or other nodes.
    pub fn opened(day: Day, granted: u64) -> Self {
        Self { day, elsewhere: u32::try_from(granted).unwrap_or(u32::MAX), ..Self::default() }
    }

    /// Its day.
    pub const fn day(self) -> Day {
        self.day
    }

    /// The balance of `today`: this one, or a new one if the day changed.
    pub fn on(self, today: Day) -> Self {
        if today > self.day { Self::opened(today, 0) } else { self }
    }

    /// Units that can be held now.
    pub fn available(self, quota: u32) -> u32 {
        // A quota lowered during the day also limits units leased before.
        self.idle().min(self.remaining(quota))
    }

    /// Units that the ledger may still grant.
    pub fn unleased(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.leased()))
    }

    /// Units left of the day, as reported to the caller.
    pub fn remaining(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.in_use()))
    }

    /// Units granted to this process and not returned.
    pub const fn leased(self) -> u32 {
        self.granted.saturating_sub(self.returned)
    }

    /// The totals of this process.
    pub const fn totals(self) -> NodeTotals {
        NodeTotals { granted: self.granted, returned: self.returned, promised: self.promised, released: 0 }
    }

    /// The report that leases what is needed next, with `grace` as the application's grace.
    pub fn report(self, quota: u32, grace: u32) -> NodeReport {
        let granted = self.granted.saturating_add(self.units_to_lease(quota));
        NodeReport { known: self.totals(), granted, promised: grace, quota }
    }

    /// The report that leases the first units of a day before it begins.
    pub fn report_ahead(self, quota: u32, grace: u32) -> NodeReport {
        let granted = largest_lease(quota).min(FIRST_LEASE);
        NodeReport { known: self.totals(), granted, promised: grace, quota }
    }

    /// Whether a unit was spent here.
    pub const fn is_used(self) -> bool {
        self.spent > 0
    }

    /// Units spent or held without a lease, which the ledger is owed.
    pub fn owed(self) -> u32 {
        self.in_use().saturating_sub(self.leased())
    }

    /// Number of units to lease next: owed units, plus what fills the balance up to one lease, requests in flight
    /// included. With more requests in flight than that, one unit.
    pub fn units_to_lease(self, quota: u32) -> u32 {
        let grown = self.in_use().saturating_add(self.one_lease(quota));
        let filled = grown.min(self.spent.saturating_add(self.full_lease(quota)));
        let enough_for_one_more = self.in_use().saturating_add(u32::from(self.idle() == 0));
        filled.max(enough_for_one_more).saturating_sub(self.leased()).min(self.unleased(quota))
    }

    /// Whether to lease ahead: at half a lease, so that requests need not wait. Small quotas, whose lease is a single
    /// unit all day, lease on demand.
    pub fn runs_low(self, quota: u32) -> bool {
        let is_low = self.idle() == 0 || self.unspent() <= self.one_lease(quota) / 2;
        largest_lease(quota) > 1 && is_low && self.units_to_lease(quota) > 0
    }

    /// Holds a unit. `None` if none is available.
    pub fn hold(self, quota: u32) -> Option<Self> {
        (self.available(quota) > 0).then(|| Self { held: self.held + 1, ..self })
    }

    /// Holds an unleased unit because the ledger is unreachable. `None` if no grace or no quota is left.
    pub fn hold_on_grace(self, quota: u32) -> Option<Self> {
        let may = self.owed() < self.promised && self.remaining(quota) > 0;
        may.then(|| Self { held: self.held + 1, ..self })
    }

    /// Settles a unit held on `day`: spent if `kept`, else available again. Units of an earlier day are ignored.
    pub fn settle(self, day: Day, kept: bool) -> Self {
        if day != self.day {
            return self;
        }
        Self { held: self.held.saturating_sub(1), spent: self.spent + u32::from(kept), ..self }
    }

    /// Applies the ledger's reply for `day`: the totals of this process, and the units granted to all.
    pub fn apply(self, day: Day, node: NodeTotals, total: u64) -> Self {
        let current = self.on(day);
        if day != current.day {
            return current; // leased for a day that has ended: worthless
        }
        let NodeTotals { granted, returned, .. } = current.totals().merged(node);
        let leased = Self { granted, returned, promised: node.grace(), ..current };
        let elsewhere = total.saturating_sub(u64::from(leased.leased()));
        Self { elsewhere: u32::try_from(elsewhere).unwrap_or(u32::MAX), ..leased }
    }

    /// Takes out everything to return to the ledger, and reports it: leased units neither spent nor held, and the
    /// promise of grace unless units are owed on it. `None` if there is nothing. This process uses no grace afterwards.
    pub fn drain(self) -> (Self, Option<NodeReport>) {
        let (idle, unused) = (self.idle(), self.promised.saturating_sub(self.owed()));
        let left =
            Self { returned: self.returned.saturating_add(idle), promised: self.promised - unused, ..self };
        let known = NodeTotals { promised: self.promised, released: unused, ..left.totals() };
        let report = NodeReport { known, granted: 0, promised: 0, quota: 0 };
        (left, (idle > 0 || unused > 0).then_some(report))
    }

    /// Charges units without a lease to the ledger: all units in use count as granted.
    pub fn charge(self) -> NodeReport {
        let known = NodeTotals { granted: self.granted.saturating_add(self.owed()), ..self.totals() };
        NodeReport { known, granted: 0, promised: 0, quota: 0 }
    }

    /// Units used as far as known: spent here, and granted to other nodes or earlier processes.
    pub const fn used(self) -> u32 {
        self.elsewhere.saturating_add(self.spent)
    }

    /// Whether dropping it loses nothing: nothing was used, and the ledger has no totals of this process.
    pub const fn can_be_dropped(self) -> bool {
        self.held == 0 && self.spent == 0 && self.granted == 0 && self.promised == 0
    }

    fn in_use(self) -> u32 {
        self.spent.saturating_add(self.held)
    }

    /// Leased and unspent: what a crash would lose.
    pub(super) fn unspent(self) -> u32 {
        self.leased().saturating_sub(self.spent)
    }

    fn idle(self) -> u32 {
        self.leased().saturating_sub(self.in_use())
    }

    /// The current lease: as much as this process has used today, so that leases double, up to a full one.
    fn one_lease(self, quota: u32) -> u32 {
        self.full_lease(quota).min(self.in_use().max(1))
    }

    /// The largest lease now: one hundredth of the quota, at most a quarter of the rest, at least one.
    fn full_lease(self, quota: u32) -> u32 {
        let left = self.unleased(quota).saturating_sub(self.owed());
        largest_lease(quota).min((left / 4).max(1))
    }
}

#[cfg(test)]
impl DayBalance {
    /// Applies a grant of units and a promise of grace, with the total of all nodes.
    pub(crate) fn grant(self, day: Day, units: u32, grace: u32, total: u64) -> Self {
        let before = self.on(day).totals();
        let (granted, promised) = (before.granted + units, before.promised + grace);
        self.apply(day, NodeTotals { granted, promised, ..before }, total)
    }
}

/// The most that is ever leased and unspent, and so the most that a crash can lose unless more requests are in
/// flight: one hundredth of the quota, at least one.
pub const fn largest_lease(quota: u32) -> u32 {
    if quota < 100 { 1 } else { quota / 100 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: Day = Day::from_number(20_000);
    const TOMORROW: Day = Day::from_number(20_001);

    fn leased(quota: u32, units: u32) -> DayBalance {
        assert!(units <= quota);
        DayBalance::opened(TODAY, 0).grant(TODAY, units, 0, units.into())
    }

    fn spent(balance: DayBalance, quota: u32, units: u32) -> DayBalance {
        (0..units).fold(balance, |balance, _| balance.hold(quota).unwrap().settle(TODAY, true))
    }

    #[test]
    fn free_tier_leases_single_units_and_larger_tiers_double() {
        let wish = |quota: u32, elsewhere: u64, used: u32| {
            let total = elsewhere + u64::from(used);
            let balance = DayBalance::opened(TODAY, elsewhere).grant(TODAY, used, 0, total);
            spent(balance, quota, used).units_to_lease(quota)
        };
        assert_eq!([0, 1, 5].map(|used| wish(10, 0, used)), [1, 1, 1]);
        let doubled = [0, 1, 2, 4, 8, 16, 32, 64, 100, 5_000].map(|used| wish(10_000, 0, used));
        assert_eq!(doubled, [1, 1, 2, 4, 8, 16, 32, 64, 100, 100]);
        assert_eq!(wish(10_000, 9_800, 100), 25, "a quarter of what is left");
        assert_eq!([9_999, 10_000].map(|elsewhere| wish(10_000, elsewhere, 0)), [1, 0]);
    }

    #[test]
    fn after_a_hundred_crashes_with_one_request_each_at_most_200_unspent_units_are_lost() {
        for quota in [10_000, 25_000, 100_000, 250_000] {
            let (mut granted, mut delivered) = (0u64, 0u64);
            for _ in 0..100 {
                let mut balance = DayBalance::opened(TODAY, granted);
                let mut lease = |balance: DayBalance| {
                    let units = balance.units_to_lease(quota);
                    granted += u64::from(units);
                    balance.grant(TODAY, units, 0, granted)
                };
                balance = lease(balance).hold(quota).unwrap();
                while balance.runs_low(quota) {
                    balance = lease(balance);
                }
                balance = balance.settle(TODAY, true);
                assert!(!balance.runs_low(quota), "nothing more is leased until the next request");
                delivered += 1;
            }
            assert!(granted - delivered <= 200, "{} of {quota} were lost", granted - delivered);
        }
    }

    #[test]
    fn a_burst_on_a_new_process_needs_few_leases() {
        for (at_once, most) in [(1, 2), (40, 8), (100, 9)] {
            let (mut balance, mut granted, mut calls) = (DayBalance::opened(TODAY, 0), 0u64, 0);
            for _ in 0..at_once {
                while balance.available(10_000) == 0 {
                    let units = balance.units_to_lease(10_000);
                    (granted, calls) = (granted + u64::from(units), calls + 1);
                    balance = balance.grant(TODAY, units, 0, granted);
                }
                balance = balance.hold(10_000).unwrap();
            }
            assert!(calls <= most, "{calls} leases for {at_once} requests at once");
        }
    }

    #[test]
    fn a_balance_is_filled_up_at_half_of_a_lease_and_never_above_one() {
        let balance = spent(leased(10_000, 200), 10_000, 149);
        assert!(!balance.runs_low(10_000));
        let balance = spent(balance, 10_000, 1);
        assert!(balance.runs_low(10_000));
        assert_eq!(balance.units_to_lease(10_000), 50);
        let running = (0..30).fold(balance, |balance, _| balance.hold(10_000).unwrap());
        assert_eq!(running.units_to_lease(10_000), 50);
    }

    #[test]
    fn a_small_quota_is_never_leased_ahead_and_a_large_one_to_its_end() {
        assert!(!spent(leased(10, 1), 10, 1).runs_low(10));
        let nearly_over = DayBalance::opened(TODAY, 9_997).grant(TODAY, 1, 0, 9_998).hold(10_000).unwrap();
        assert!(nearly_over.runs_low(10_000));
        assert_eq!(nearly_over.units_to_lease(10_000), 1);
        assert!(
            !nearly_over
                .grant(TODAY, 2, 0, 10_000)
                .hold(10_000)
                .unwrap()
                .hold(10_000)
                .unwrap()
                .runs_low(10_000)
        );
    }

    #[test]
    fn whole_paid_day_needs_at_most_three_ledger_calls_per_hundred_requests() {
        for quota in [10_000, 25_000, 100_000, 250_000] {
            let mut balance = DayBalance::opened(TODAY, 0);
            let (mut total, mut calls, mut waits) = (0u64, 0u32, 0u32);
            let mut lease = |balance: DayBalance| {
                let units = balance.units_to_lease(quota);
                (calls, total) = (calls + 1, total + u64::from(units));
                balance.grant(TODAY, units, 0, total)
            };
            for _ in 0..quota {
                if balance.available(quota) == 0 {
                    waits += 1;
                    balance = lease(balance);
                }
                balance = balance.hold(quota).unwrap();
                if balance.runs_low(quota) {
                    balance = lease(balance);
                }
                balance = balance.settle(TODAY, true);
            }
            assert_eq!((balance.remaining(quota), waits), (0, 1));
            assert!(calls <= quota / 100 * 3, "{calls} ledger calls for {quota} requests");
        }
    }

    #[test]
    fn a_lease_of_yesterday_is_worthless() {
        let yesterday = leased(10_000, 100).hold(10_000).unwrap();
        let today = yesterday.on(TOMORROW);
        assert_eq!((today.available(10_000), today.remaining(10_000)), (0, 10_000));
        assert_eq!(today.settle(TODAY, false), today);
        assert_eq!(today.grant(TODAY, 50, 0, 150), today);
        assert_eq!(today.on(TODAY).day(), TOMORROW);
    }

    #[test]
    fn a_lower_quota_limits_units_leased_before() {
        let balance = spent(leased(10_000, 100), 10_000, 8);
        assert_eq!((balance.remaining(10), balance.available(10)), (2, 2));
        assert_eq!(balance.remaining(5), 0);
    }

    #[test]
    fn a_drain_returns_what_is_neither_spent_nor_held() {
        let balance = DayBalance::opened(TODAY, 7).grant(TODAY, 10, 3, 17);
        let busy = balance.hold(100).unwrap().hold(100).unwrap().settle(TODAY, true);
        let (rest, returned) = busy.drain();
        let known = NodeTotals { granted: 10, returned: 8, promised: 3, released: 3 };
        assert_eq!(returned.map(|report| report.known), Some(known));
        assert!(!rest.settle(TODAY, true).can_be_dropped() && rest.on(TOMORROW).can_be_dropped());
        assert_eq!(rest.remaining(100), 100 - 7 - 2);
    }

    #[test]
    fn released_grace_is_not_used_again() {
        let (drained, report) = DayBalance::opened(TODAY, 0).grant(TODAY, 1, 3, 1).drain();
        let again = drained.apply(TODAY, NodeTotals { granted: 2, ..report.unwrap().known }, 1);
        assert_eq!((again.available(300), again.hold(300).unwrap().hold_on_grace(300)), (1, None));
    }

    #[test]
    fn grace_is_promised_owed_until_leased_and_within_the_quota() {
        let promised = DayBalance::opened(TODAY, 0).grant(TODAY, 0, 2, 0);
        assert_eq!(DayBalance::opened(TODAY, 0).hold_on_grace(200), None);
        let one = promised.hold_on_grace(200).unwrap().settle(TODAY, true);
        let two = one.hold_on_grace(200).unwrap().settle(TODAY, true);
        assert_eq!(two.hold_on_grace(200), None);
        assert_eq!((two.owed(), two.remaining(200), two.available(200)), (2, 198, 0));
        assert_eq!(two.units_to_lease(200), 2 + 2);
        assert_eq!(two.drain().1, None);
        assert_eq!(two.charge().known, NodeTotals { granted: 2, promised: 2, ..NodeTotals::default() });
        let back = two.grant(TODAY, 4, 0, 4);
        assert_eq!((back.owed(), back.remaining(200), back.available(200)), (0, 198, 2));
        assert!(back.hold_on_grace(200).is_some());
        assert_eq!(promised.hold_on_grace(0), None);
    }
}
