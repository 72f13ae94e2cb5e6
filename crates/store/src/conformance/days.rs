//! Conformance checks of the ledger.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

pub(crate) async fn lease_is_limited_by_the_remaining_quota(store: &dyn Store) {
    let id = created(store).await;
    let other = created(store).await;
    let day = NOON.day();
    let granted = |units, total| LeaseReply::Granted { units, total };
    assert_eq!(store.day().await.unwrap(), None);
    for (want, quota, given) in [
        (0, 10, granted(0, 0)),
        (4, 10, granted(4, 4)),
        (u32::MAX, 10, granted(6, 10)),
        (1, 10, granted(0, 10)),
        (5, 3, granted(0, 10)), // moved to a smaller tier since
        (5, 12, granted(2, 12)),
        (
            u32::MAX,
            u32::MAX,
            granted(u32::MAX - 12, u64::from(u32::MAX)),
        ),
        (u32::MAX, u32::MAX, granted(0, u64::from(u32::MAX))),
    ] {
        assert_eq!(
            store.lease(asking(id, day, want, quota)).await.unwrap(),
            given,
            "{want} of {quota}"
        );
    }
    assert_eq!(
        units(store, asking(other, day, 1, 10)).await,
        1,
        "quotas are apart"
    );
    let found = store.application(id, day).await.unwrap().unwrap();
    assert_eq!(found.granted, u64::from(u32::MAX));
    let yesterday = Day::from_number(day.number() - 1);
    assert_eq!(
        store
            .application(id, yesterday)
            .await
            .unwrap()
            .unwrap()
            .granted,
        0
    );
    let page = store.page(None, 10, day).await.unwrap();
    let granted: u64 = page
        .applications
        .iter()
        .map(|application| application.granted)
        .sum();
    assert_eq!(granted, u64::from(u32::MAX) + 1);
}

pub(crate) async fn a_day_is_closed_once_a_later_one_is_opened(store: &dyn Store) {
    let id = created(store).await;
    let other = created(store).await;
    let today = NOON.day();
    let tomorrow = today.next();
    let first = asking(id, today, 3, 10);
    assert_eq!(units(store, first).await, 3);
    let granted = async |day| {
        let found = store.application(id, day).await.unwrap();
        found.unwrap().granted
    };
    // A request for zero units opens it too, for every application.
    assert_eq!(units(store, asking(other, tomorrow, 0, 0)).await, 0);
    assert_eq!(store.day().await.unwrap(), Some(tomorrow));
    let closed = store.lease(asking(id, today, 1, 10)).await.unwrap();
    assert_eq!(closed, LeaseReply::Closed { newest: tomorrow });
    store.give_back(first, 1).await.unwrap();
    assert_eq!(granted(today).await, 2, "units of yesterday are returned");
    assert_eq!(units(store, asking(id, tomorrow, 99, 10)).await, 10);
    assert_eq!(units(store, asking(other, tomorrow.next(), 0, 0)).await, 0);
    store.give_back(first, 1).await.unwrap();
    assert_eq!(granted(today).await, 2, "a closed day moved");
}

pub(crate) async fn returned_units_are_leased_again_and_never_negative(store: &dyn Store) {
    let id = created(store).await;
    let day = NOON.day();
    let first = asking(id, day, 10, 10);
    store.give_back(first, 1).await.unwrap();
    assert_eq!(units(store, first).await, 10);
    store.give_back(first, 4).await.unwrap();
    store
        .give_back(asking(an_id(), day, 4, 10), 4)
        .await
        .unwrap();
    assert_eq!(
        store.day().await.unwrap(),
        Some(day),
        "units given back opened a day"
    );
    assert_eq!(units(store, asking(id, day, 10, 10)).await, 4);
    store.give_back(first, u32::MAX).await.unwrap();
    assert_eq!(units(store, asking(id, day, 99, 10)).await, 6);
}

pub(crate) async fn many_leases_at_once_never_exceed_the_quota(store: &dyn Store) {
    let id = created(store).await;
    let day = NOON.day();
    let asks = (0..300).map(|_| store.lease(asking(id, day, 3, 500)));
    let given: u64 = join_all(asks)
        .await
        .into_iter()
        .map(|lease| match lease.unwrap() {
            LeaseReply::Granted { units, .. } => u64::from(units),
            LeaseReply::Closed { newest } => panic!("closed by {newest}"),
        })
        .sum();
    assert_eq!(given, 500);
    assert_eq!(
        store.application(id, day).await.unwrap().unwrap().granted,
        500
    );
}

/// A call of a schedule; `day` is relative to the schedule's first day.
#[derive(Clone, Copy, Debug)]
enum LedgerCall {
    Lease { day: u32, want: u32, quota: u32 },
    GiveBack { day: u32, units: u32 },
}

pub(crate) fn no_schedule_grants_more_than_the_quota_or_reopens_a_day(
    store: &dyn Store,
    runtime: &tokio::runtime::Runtime,
) {
    let call = prop_oneof![
        3 => (0u32..4, 0u32..9, prop_oneof![Just(10u32), 1u32..20])
            .prop_map(|(day, want, quota)| LedgerCall::Lease { day, want, quota }),
        1 => (0u32..4, 1u32..6).prop_map(|(day, units)| LedgerCall::GiveBack { day, units }),
    ];
    // Calls of one round are concurrent; rounds are sequential.
    let schedules = prop::collection::vec(prop::collection::vec(call, 1..6), 1..10);
    let next = AtomicU32::new(NOON.day().number());
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let held = TestRunner::new(config).run(&schedules, |rounds| {
        let first = next.fetch_add(10, Relaxed); // the days of earlier schedules are closed
        runtime.block_on(schedule_holds(store, first, rounds));
        Ok(())
    });
    held.unwrap();
}

async fn schedule_holds(store: &dyn Store, first: u32, rounds: Vec<Vec<LedgerCall>>) {
    let id = created(store).await;
    let mut held = BTreeMap::<u32, u64>::new();
    let mut largest = BTreeMap::<u32, u64>::new();
    let mut holders: Vec<(LeaseRequest, u32)> = Vec::new();
    let mut newest = None;
    for round in rounds {
        // Only held units are returned: a gateway has no others.
        let mut back = Vec::new();
        for call in &round {
            if let LedgerCall::GiveBack { day, units } = *call {
                let of_day =
                    |holder: &&mut (LeaseRequest, u32)| holder.0.day.number() == first + day;
                let Some((request, left)) = holders.iter_mut().find(of_day) else {
                    continue;
                };
                let units = units.min(*left);
                *left -= units;
                *held.entry(day).or_default() -= u64::from(units);
                back.push(store.give_back(*request, units));
            }
        }
        let asks = round.iter().filter_map(|call| match *call {
            LedgerCall::Lease { day, want, quota } => Some((day, want, quota)),
            LedgerCall::GiveBack { .. } => None,
        });
        let leases = join_all(asks.map(|(day, want, quota)| async move {
            let request = asking(id, Day::from_number(first + day), want, quota);
            (day, request, store.lease(request).await)
        }));
        let (leases, back) = tokio::join!(leases, join_all(back));
        back.into_iter().collect::<Result<(), _>>().unwrap();
        let before = newest;
        for (day, request, lease) in leases {
            let most = largest.entry(day).or_default();
            *most = u64::from(request.quota).max(*most);
            match lease.unwrap() {
                LeaseReply::Granted { units, total, .. } => {
                    assert!(
                        before.is_none_or(|before| day >= before),
                        "a closed day was opened again"
                    );
                    let most = u64::from(request.quota).max(total - u64::from(units));
                    assert!(units <= request.want && total <= most);
                    holders.push((request, units));
                    *held.entry(day).or_default() += u64::from(units);
                    newest = newest.max(Some(day));
                }
                LeaseReply::Closed { newest } => assert!(newest.number() > first + day),
            }
        }
        assert!(
            held.iter()
                .all(|(day, held)| *held <= largest.get(day).copied().unwrap_or(0)),
            "{held:?}"
        );
        let found = store.day().await.unwrap();
        assert!(newest.is_none_or(|newest| found == Some(Day::from_number(first + newest))));
    }
}
