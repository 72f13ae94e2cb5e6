//! Leases grow with use, and are spent, returned and released.

use super::*;

const TODAY: Day = Day::from_number(20_000);
const TOMORROW: Day = Day::from_number(20_001);

fn leased(quota: u32, units: u32) -> DayBalance {
    assert!(units <= quota);
    DayBalance::opened(TODAY, 0).grant(TODAY, units, 0, units.into())
}

fn spent(balance: DayBalance, quota: u32, units: u32) -> DayBalance {
    (0..units).fold(balance, |balance, _| {
        balance.hold(quota).unwrap().settle(TODAY, true)
    })
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
    assert_eq!(wish(10_000, 9_800, 100), 25, "a quarter of the rest");
    assert_eq!(
        [9_999, 10_000].map(|elsewhere| wish(10_000, elsewhere, 0)),
        [1, 0]
    );
}

#[test]
fn after_a_hundred_crashes_with_one_request_each_at_most_200_unspent_units_are_lost() {
    for quota in [10_000, 25_000, 100_000, 250_000] {
        let mut granted = 0u64;
        let mut delivered = 0u64;
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
            assert!(
                !balance.runs_low(quota),
                "nothing more is leased until the next request"
            );
            delivered += 1;
        }
        assert!(
            granted - delivered <= 200,
            "{} of {quota} were lost",
            granted - delivered
        );
    }
}

#[test]
fn a_burst_on_a_new_process_needs_few_leases() {
    for (at_once, most) in [(1, 2), (40, 8), (100, 9)] {
        let mut balance = DayBalance::opened(TODAY, 0);
        let mut granted = 0u64;
        let mut calls = 0;
        for _ in 0..at_once {
            while balance.available(10_000) == 0 {
                let units = balance.units_to_lease(10_000);
                (granted, calls) = (granted + u64::from(units), calls + 1);
                balance = balance.grant(TODAY, units, 0, granted);
            }
            balance = balance.hold(10_000).unwrap();
        }
        assert!(
            calls <= most,
            "{calls} leases for {at_once} concurrent requests"
        );
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
    let nearly_over = DayBalance::opened(TODAY, 9_997)
        .grant(TODAY, 1, 0, 9_998)
        .hold(10_000)
        .unwrap();
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
        let mut total = 0u64;
        let mut calls = 0u32;
        let mut waits = 0u32;
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
        assert!(
            calls <= quota / 100 * 3,
            "{calls} ledger calls for {quota} requests"
        );
    }
}

#[test]
fn a_reply_older_than_a_return_does_not_count_the_returned_units_as_used() {
    let leased = DayBalance::opened(TODAY, 0)
        .grant(TODAY, 4, 0, 4)
        .hold(300)
        .unwrap()
        .settle(TODAY, true);
    let before_the_return = leased.totals();
    let returned = leased.without_idle();
    assert_eq!((returned.leased(), returned.remaining(100)), (1, 99));
    let applied = returned.apply(TODAY, before_the_return, 4);
    assert_eq!((applied.leased(), applied.remaining(100)), (1, 99));
    let elsewhere = returned.apply(TODAY, before_the_return, 9);
    assert_eq!(elsewhere.remaining(100), 99 - 5);
}

#[test]
fn grace_is_reserved_owed_until_leased_and_within_the_quota() {
    let empty = DayBalance::opened(TODAY, 0);
    assert!(empty.may_owe(200, 2) && !empty.may_owe(200, 0) && !empty.may_owe(0, 2));
    assert_eq!(
        (empty.hold_on_grace(200, 2), empty.to_reserve(2)),
        (None, (1, 1))
    );
    assert_eq!(empty.to_reserve(80), (10, 10), "an eighth");
    let reserved = empty.reserve(TODAY, 2);
    assert_eq!(reserved.reserve(TOMORROW, 9).reserve(TODAY, 1), reserved);
    let one = reserved.hold_on_grace(200, 2).unwrap().settle(TODAY, true);
    assert_eq!(
        one.hold_on_grace(200, 1),
        None,
        "the share of this gateway became smaller"
    );
    let two = one.hold_on_grace(200, 2).unwrap().settle(TODAY, true);
    assert_eq!(
        (two.hold_on_grace(200, 9), two.to_reserve(9)),
        (None, (3, 3))
    );
    assert_eq!(
        (two.owed(), two.remaining(200), two.available(200)),
        (2, 198, 0)
    );
    assert_eq!(two.units_to_lease(200), 2 + 2);
    assert_eq!(two.release().1, None);
    assert_eq!(
        two.charge().known,
        NodeTotals {
            granted: 2,
            ..NodeTotals::default()
        }
    );
    let back = two.grant(TODAY, 4, 0, 4);
    assert_eq!(
        (back.owed(), back.remaining(200), back.available(200)),
        (0, 198, 2)
    );
    assert_eq!(
        back.hold_on_grace(200, 2),
        None,
        "units leased since then are not part of the reserve"
    );
    assert_eq!(back.to_reserve(2), (5, 1));
}

#[test]
fn a_report_requests_a_unit_even_if_others_hold_all() {
    let balance = DayBalance::opened(TODAY, 10).grant(TODAY, 0, 0, 10);
    assert_eq!(
        (balance.report(10).granted, balance.may_gain(10)),
        (1, true)
    );
    let all = spent(leased(10, 10), 10, 10);
    assert_eq!((all.report(10).granted, all.may_gain(10)), (10, false));
}
