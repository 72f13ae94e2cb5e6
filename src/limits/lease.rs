//! The day's balance of one application on this machine: units leased from the ledger, held by requests that run,
//! spent by data delivered. Reserve, then spend: what was not leased first cannot be spent, so no crash can create
//! units; what is leased and not spent when the process dies is lost to the caller, never doubled. That is never more
//! than one lease: a balance is filled up to it, not by it. Leases start at one unit and double as they are used, so a
//! process that crashes after a few requests loses a few units.
//!
//! The one exception is grace: units that the ledger promised for the time when it cannot be reached. They are spent
//! before they are leased and owed to the ledger until it is back. They never take a caller above the quota as this
//! machine knows it, and what is promised in all is a hundredth of the day, whoever crashes.
//!
//! Pure. A lease knows its day and is worth nothing in the next. The day only moves forward: a backward step of the
//! wall clock never reopens one that was closed.

use crate::clock::Day;

/// What this machine knows and has of an application's day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayBalance {
    day: Day,
    leased: u32,
    spent: u32,
    held: u32,
    /// Promised by the ledger for the time when it cannot be reached.
    grace: u32,
    /// Granted by the ledger to other nodes, or to earlier lives of this one. With what is leased never more than a quota.
    elsewhere: u32,
}

impl DayBalance {
    /// The balance of an application at start: nothing leased, `granted` units gone in earlier lives or elsewhere.
    pub fn opened(day: Day, granted: u64) -> Self {
        Self { day, elsewhere: u32::try_from(granted).unwrap_or(u32::MAX), ..Self::default() }
    }

    /// The day it is about.
    pub const fn day(self) -> Day {
        self.day
    }

    /// The balance on `today`: itself, or an empty one if a new day has begun.
    pub fn on(self, today: Day) -> Self {
        if today > self.day { Self::opened(today, 0) } else { self }
    }

    /// Units that can be held now.
    pub fn available(self, quota: u32) -> u32 {
        // A quota that was lowered during the day binds what was leased under the higher one.
        self.idle().min(self.remaining(quota))
    }

    /// Units that the ledger may still have.
    pub fn unleased(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.leased))
    }

    /// Units left of the day, as the caller is told.
    pub fn remaining(self, quota: u32) -> u32 {
        quota.saturating_sub(self.elsewhere.saturating_add(self.in_use()))
    }

    /// Units that the ledger granted to this machine.
    pub const fn leased(self) -> u32 {
        self.leased
    }

    /// Units spent or held that were never leased: what the ledger is owed.
    pub fn owed(self) -> u32 {
        self.in_use().saturating_sub(self.leased)
    }

    /// How many units to lease next: what is owed, and what fills the balance up to one lease, requests that run
    /// included. With more than that running at once it is one by one.
    pub fn wish(self, quota: u32) -> u32 {
        let grown = self.in_use().saturating_add(self.one_lease(quota));
        let filled = grown.min(self.spent.saturating_add(self.full_lease(quota)));
        let enough_for_one_more = self.in_use().saturating_add(u32::from(self.idle() == 0));
        filled.max(enough_for_one_more).saturating_sub(self.leased).min(self.unleased(quota))
    }

    /// How much grace to ask for: what is missing of the application's.
    pub fn wish_for_grace(self, grace: u32) -> u32 {
        grace.saturating_sub(self.grace)
    }

    /// Whether to lease ahead now, so that nobody waits for the next lease: at half of one. Small quotas, whose lease
    /// is a single unit all day long, lease when they are asked.
    pub fn runs_low(self, quota: u32) -> bool {
        let is_low = self.idle() == 0 || self.in_hand() <= self.one_lease(quota) / 2;
        largest_lease(quota) > 1 && is_low && self.wish(quota) > 0
    }

    /// Holds a unit. `None` if there is none to hold.
    pub fn hold(self, quota: u32) -> Option<Self> {
        (self.available(quota) > 0).then(|| Self { held: self.held + 1, ..self })
    }

    /// Holds a unit that was not leased, because the ledger cannot be reached. `None` if nothing was promised for that,
    /// or the promise is used up, or the quota.
    pub fn hold_on_grace(self, quota: u32) -> Option<Self> {
        let may = self.owed() < self.grace && self.remaining(quota) > 0;
        may.then(|| Self { held: self.held + 1, ..self })
    }

    /// Settles a unit that was held on `day`: spent if `kept`, else free again. One of an earlier day is history.
    pub fn settle(self, day: Day, kept: bool) -> Self {
        if day != self.day {
            return self;
        }
        Self { held: self.held.saturating_sub(1), spent: self.spent + u32::from(kept), ..self }
    }

    /// Takes in what the ledger granted of `day`, what it promised for bad times, and what it has granted in all.
    pub fn grant(self, day: Day, units: u32, grace: u32, total: u64) -> Self {
        let current = self.on(day);
        if day != current.day {
            return current; // leased for a day that has ended meanwhile: worth nothing
        }
        let leased = current.leased.saturating_add(units);
        let grace = current.grace.saturating_add(grace);
        let elsewhere = u32::try_from(total.saturating_sub(u64::from(leased))).unwrap_or(u32::MAX);
        Self { leased, grace, elsewhere, ..current }
    }

    /// Gives up what is leased and neither spent nor held, and the promise of grace as far as nothing is owed on it:
    /// what goes back to the ledger.
    pub fn drain(self) -> (Self, DrainedUnits) {
        let drained = DrainedUnits { units: self.idle(), grace: self.grace.saturating_sub(self.owed()) };
        let left = Self { leased: self.leased - drained.units, grace: self.grace - drained.grace, ..self };
        (left, drained)
    }

    /// Units used, as far as is known: those spent on this machine, and those granted elsewhere or to earlier processes.
    pub const fn used(self) -> u32 {
        self.elsewhere.saturating_add(self.spent)
    }

    /// Whether forgetting it loses nothing: no unit is held, none is leased and unspent, none is owed.
    pub const fn is_at_rest(self) -> bool {
        self.held == 0 && self.leased == self.spent
    }

    fn in_use(self) -> u32 {
        self.spent.saturating_add(self.held)
    }

    /// Leased and not spent: what a crash would lose.
    fn in_hand(self) -> u32 {
        self.leased.saturating_sub(self.spent)
    }

    fn idle(self) -> u32 {
        self.leased.saturating_sub(self.in_use())
    }

    /// The lease at this point: as much as this process has used of the day, so that leases double, up to a full one.
    fn one_lease(self, quota: u32) -> u32 {
        self.full_lease(quota).min(self.in_use().max(1))
    }

    /// The largest lease at this point: a hundredth of the quota, at most a quarter of what is left, at least one.
    fn full_lease(self, quota: u32) -> u32 {
        let left = self.unleased(quota).saturating_sub(self.owed());
        largest_lease(quota).min((left / 4).max(1))
    }
}

/// What a drain gives back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DrainedUnits {
    /// Units that were leased and not spent.
    pub units: u32,
    /// Units that were promised for bad times and not needed.
    pub grace: u32,
}

/// The most that is ever leased and not spent, and so the most that a crash can lose, unless more requests than that run
/// at once: a hundredth of the quota, at least one.
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
    fn free_leases_one_by_one_and_larger_tiers_double_up_to_a_hundredth() {
        let wish = |quota: u32, elsewhere: u64, used: u32| {
            let total = elsewhere + u64::from(used);
            let balance = DayBalance::opened(TODAY, elsewhere).grant(TODAY, used, 0, total);
            spent(balance, quota, used).wish(quota)
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
                    let units = balance.wish(quota);
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
                    let units = balance.wish(10_000);
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
        assert_eq!(balance.wish(10_000), 50);
        let running = (0..30).fold(balance, |balance, _| balance.hold(10_000).unwrap());
        assert_eq!(running.wish(10_000), 50);
    }

    #[test]
    fn a_small_quota_is_never_leased_ahead_and_a_large_one_to_its_end() {
        assert!(!spent(leased(10, 1), 10, 1).runs_low(10));
        let nearly_over = DayBalance::opened(TODAY, 9_997).grant(TODAY, 1, 0, 9_998).hold(10_000).unwrap();
        assert!(nearly_over.runs_low(10_000));
        assert_eq!(nearly_over.wish(10_000), 1);
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
    fn a_whole_day_costs_a_paid_tier_at_most_three_ledger_calls_in_a_hundred_and_one_wait() {
        for quota in [10_000, 25_000, 100_000, 250_000] {
            let mut balance = DayBalance::opened(TODAY, 0);
            let (mut total, mut calls, mut waits) = (0u64, 0u32, 0u32);
            let mut lease = |balance: DayBalance| {
                let units = balance.wish(quota);
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
    fn a_lease_of_yesterday_is_worth_nothing() {
        let yesterday = leased(10_000, 100).hold(10_000).unwrap();
        let today = yesterday.on(TOMORROW);
        assert_eq!((today.available(10_000), today.remaining(10_000)), (0, 10_000));
        assert_eq!(today.settle(TODAY, false), today);
        assert_eq!(today.grant(TODAY, 50, 0, 150), today);
        assert_eq!(today.on(TODAY).day(), TOMORROW);
    }

    #[test]
    fn a_lower_quota_binds_what_was_leased_under_the_higher_one() {
        let balance = spent(leased(10_000, 100), 10_000, 8);
        assert_eq!((balance.remaining(10), balance.available(10)), (2, 2));
        assert_eq!(balance.remaining(5), 0);
    }

    #[test]
    fn a_drain_returns_what_is_neither_spent_nor_held() {
        let balance = DayBalance::opened(TODAY, 7).grant(TODAY, 10, 3, 17);
        let busy = balance.hold(100).unwrap().hold(100).unwrap().settle(TODAY, true);
        let (rest, returned) = busy.drain();
        assert_eq!(returned, DrainedUnits { units: 8, grace: 3 });
        assert!(!rest.is_at_rest() && rest.settle(TODAY, true).is_at_rest());
        assert_eq!(rest.remaining(100), 100 - 7 - 2);
    }

    #[test]
    fn grace_is_what_was_promised_is_owed_until_it_is_leased_and_never_exceeds_the_quota() {
        let promised = DayBalance::opened(TODAY, 0).grant(TODAY, 0, 2, 0);
        assert_eq!(DayBalance::opened(TODAY, 0).hold_on_grace(200), None);
        let one = promised.hold_on_grace(200).unwrap().settle(TODAY, true);
        let two = one.hold_on_grace(200).unwrap().settle(TODAY, true);
        assert_eq!(two.hold_on_grace(200), None);
        assert_eq!((two.owed(), two.remaining(200), two.available(200)), (2, 198, 0));
        assert_eq!(two.wish(200), 2 + 2);
        assert_eq!(two.drain().1, DrainedUnits::default());
        let back = two.grant(TODAY, 4, 0, 4);
        assert_eq!((back.owed(), back.remaining(200), back.available(200)), (0, 198, 2));
        assert!(back.hold_on_grace(200).is_some());
        assert_eq!(promised.hold_on_grace(0), None);
    }
}
