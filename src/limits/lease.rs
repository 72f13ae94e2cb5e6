//! The day's balance of one application on this machine: units leased from the ledger, held by requests that run,
//! spent by data delivered. Reserve, then spend: what was not leased first cannot be spent, so no crash can create
//! units; what is leased and not spent when the process dies is lost to the caller, never doubled.
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
    /// Granted by the ledger to other nodes, or to earlier lives of this one.
    elsewhere: u64,
}

impl DayBalance {
    /// The balance of an application at start: nothing leased, `granted` units gone in earlier lives or elsewhere.
    pub fn opened(day: Day, granted: u64) -> Self {
        Self { day, elsewhere: granted, ..Self::default() }
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
        let leased = self.leased.saturating_sub(self.spent).saturating_sub(self.held);
        // A quota that was lowered during the day binds what was leased under the higher one.
        leased.min(self.remaining(quota))
    }

    /// Units that the ledger may still have.
    pub fn unleased(self, quota: u32) -> u32 {
        let taken = self.elsewhere.saturating_add(u64::from(self.leased));
        u32::try_from(u64::from(quota).saturating_sub(taken)).unwrap_or(u32::MAX)
    }

    /// Units left of the day, as the caller is told.
    pub fn remaining(self, quota: u32) -> u32 {
        let used = self.elsewhere.saturating_add(u64::from(self.spent)).saturating_add(u64::from(self.held));
        u32::try_from(u64::from(quota).saturating_sub(used)).unwrap_or(u32::MAX)
    }

    /// How many units to lease next: a hundredth of the quota, at most a quarter of what is left, at least one.
    pub fn wish(self, quota: u32) -> u32 {
        let unleased = self.unleased(quota);
        (quota / 100).min(unleased / 4).max(1).min(unleased)
    }

    /// Whether to lease ahead now, so that nobody waits for the next lease: at half of one.
    pub fn runs_low(self, quota: u32) -> bool {
        let wish = self.wish(quota);
        wish > 1 && self.available(quota) <= wish / 2
    }

    /// Holds a unit. `None` if there is none to hold.
    pub fn hold(self, quota: u32) -> Option<Self> {
        (self.available(quota) > 0).then(|| Self { held: self.held + 1, ..self })
    }

    /// Settles a unit that was held on `day`: spent if `kept`, else free again. One of an earlier day is history.
    pub fn settle(self, day: Day, kept: bool) -> Self {
        if day != self.day {
            return self;
        }
        Self { held: self.held.saturating_sub(1), spent: self.spent + u32::from(kept), ..self }
    }

    /// Takes in what the ledger granted of `day`, and what it has granted of it in all.
    pub fn grant(self, day: Day, units: u32, total: u64) -> Self {
        let current = self.on(day);
        if day != current.day {
            return current; // leased for a day that has ended meanwhile: worth nothing
        }
        let leased = current.leased.saturating_add(units);
        Self { leased, elsewhere: total.saturating_sub(u64::from(leased)), ..current }
    }

    /// Gives up what is leased and neither spent nor held: how many units go back to the ledger.
    pub fn drain(self) -> (Self, u32) {
        let idle = self.leased.saturating_sub(self.spent).saturating_sub(self.held);
        (Self { leased: self.leased - idle, ..self }, idle)
    }

    /// Whether forgetting it loses nothing: no unit is held, none is leased and unspent.
    pub const fn is_at_rest(self) -> bool {
        self.held == 0 && self.leased == self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TODAY: Day = Day::from_number(20_000);
    const TOMORROW: Day = Day::from_number(20_001);

    #[test]
    fn free_leases_one_by_one_and_larger_tiers_a_hundredth() {
        let fresh = DayBalance::opened(TODAY, 0);
        assert_eq!(fresh.wish(10), 1);
        assert_eq!(fresh.wish(10_000), 100);
        assert_eq!(DayBalance::opened(TODAY, 9_900).wish(10_000), 25);
        assert_eq!(DayBalance::opened(TODAY, 9_999).wish(10_000), 1);
        assert_eq!(DayBalance::opened(TODAY, 10_000).wish(10_000), 0);
    }

    #[test]
    fn a_lease_of_yesterday_is_worth_nothing() {
        let yesterday = DayBalance::opened(TODAY, 0).grant(TODAY, 100, 100).hold(10_000).unwrap();
        let today = yesterday.on(TOMORROW);
        assert_eq!((today.available(10_000), today.remaining(10_000)), (0, 10_000));
        assert_eq!(today.settle(TODAY, false), today);
        assert_eq!(today.grant(TODAY, 50, 150), today);
        assert_eq!(today.on(TODAY).day(), TOMORROW);
    }

    #[test]
    fn a_lower_quota_binds_what_was_leased_under_the_higher_one() {
        let mut balance = DayBalance::opened(TODAY, 0).grant(TODAY, 100, 100);
        for _ in 0..8 {
            balance = balance.hold(10_000).unwrap().settle(TODAY, true);
        }
        assert_eq!((balance.remaining(10), balance.available(10)), (2, 2));
        assert_eq!(balance.remaining(5), 0);
    }

    #[test]
    fn a_drain_returns_what_is_neither_spent_nor_held() {
        let balance = DayBalance::opened(TODAY, 7).grant(TODAY, 10, 17);
        let busy = balance.hold(100).unwrap().hold(100).unwrap().settle(TODAY, true);
        let (rest, returned) = busy.drain();
        assert_eq!(returned, 8);
        assert!(!rest.is_at_rest() && rest.settle(TODAY, true).is_at_rest());
        assert_eq!(rest.remaining(100), 100 - 7 - 2);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Hold,
        Settle(bool),
        Lease,
        Drain,
        Crash,
        NextDay,
        Quota(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => Just(Step::Hold), 6 => any::<bool>().prop_map(Step::Settle), 4 => Just(Step::Lease), 1 => Just(Step::Drain),
            1 => Just(Step::Crash), 1 => Just(Step::NextDay), 1 => (1u32..400).prop_map(Step::Quota),
        ]
    }

    proptest! {
        #[test]
        fn delivered_never_exceeds_the_largest_quota_of_the_day(steps in prop::collection::vec(step(), 1..300)) {
            let (mut quota, mut largest, mut day) = (100u32, 100u32, TODAY);
            let (mut ledger, mut delivered) = (0u64, 0u32);
            let mut balance = DayBalance::opened(day, 0);
            let mut holds: Vec<Day> = Vec::new();
            for step in steps {
                match step {
                    Step::Hold => if let Some(held) = balance.on(day).hold(quota) { balance = held; holds.push(day); },
                    Step::Settle(kept) => if let Some(of) = holds.pop() {
                        balance = balance.settle(of, kept);
                        delivered += u32::from(kept && of == day);
                    },
                    Step::Lease => {
                        balance = balance.on(day);
                        let units = u64::from(balance.wish(quota)).min(u64::from(quota).saturating_sub(ledger));
                        ledger += units;
                        balance = balance.grant(day, u32::try_from(units).unwrap(), ledger);
                    }
                    Step::Drain => { let (rest, idle) = balance.drain(); balance = rest; ledger -= u64::from(idle); }
                    Step::Crash => { holds.clear(); balance = DayBalance::opened(day, ledger); }
                    Step::NextDay => { day = Day::from_number(day.number() + 1); (ledger, delivered, largest) = (0, 0, quota); balance = balance.on(day); }
                    Step::Quota(new) => { quota = new; largest = largest.max(new); }
                }
                prop_assert!(delivered <= largest, "{} > {}", delivered, largest);
                prop_assert!(balance.remaining(quota) >= balance.available(quota));
            }
        }
    }
}
