//! Conformance checks of the ledger.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use futures_util::future::join_all;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use scoregate_base::limits::DayTotals;

use super::*;

pub async fn lease_is_limited_by_the_remaining_quota(store: &Store) {
    let id = created(store).await;
    let other = created(store).await;
    let day = NOON.day();
    assert_eq!(store.day().await.unwrap(), None);
    for (want, quota, reply) in [
        (0, 10, given(0, 0)),
        (4, 10, given(4, 4)),
        (u32::MAX, 10, given(6, 10)),
        (1, 10, given(0, 10)),
        (5, 3, given(0, 10)), // moved to a smaller tier in between
        (5, 12, given(2, 12)),
        (
            u32::MAX,
            u32::MAX,
            given(u32::MAX - 12, u64::from(u32::MAX)),
        ),
        (u32::MAX, u32::MAX, given(0, u64::from(u32::MAX))),
    ] {
        assert_eq!(
            store.lease(asking(id, day, want, quota)).await.unwrap(),
            reply,
            "{want} of {quota}"
        );
    }
    assert_eq!(
        units(store, asking(other, day, 1, 10)).await,
        1,
        "quotas are apart"
    );
    assert_eq!(found(store, id).await.granted, u64::from(u32::MAX));
    let yesterday = store.application(id, before(1)).await.unwrap();
    assert_eq!(yesterday.unwrap().granted, 0);
    let all = applications(store).await;
    let granted: u64 = all.iter().map(|application| application.granted).sum();
    assert_eq!(granted, u64::from(u32::MAX) + 1);
}

pub async fn a_day_is_closed_once_a_later_one_is_opened(store: &Store) {
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
    // A request for zero units opens the day too, for every application.
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

pub async fn returned_units_are_leased_again_and_never_negative(store: &Store) {
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

pub async fn many_leases_and_returns_at_once_never_exceed_the_quota(store: &Store) {
    let id = created(store).await;
    let ask = || asking(id, NOON.day(), 3, 500);
    let requests: Vec<LeaseRequest> = (0..300).map(|_| ask()).collect();
    let first = join_all(requests.iter().map(|request| units(store, *request))).await;
    assert_eq!(first.iter().sum::<u32>(), 500);
    let leases = join_all((0..100).map(|_| units(store, ask())));
    let returns = join_all(
        requests[..100]
            .iter()
            .map(|request| store.give_back(*request, 2)),
    );
    let (more, returns) = tokio::join!(leases, returns);
    for returned in returns {
        returned.unwrap();
    }
    let returned: u32 = first[..100].iter().map(|units| *units.min(&2)).sum();
    let granted = 500 - returned + more.iter().sum::<u32>();
    assert_eq!(found(store, id).await.granted, u64::from(granted));
    assert!(granted <= 500, "{granted}");
}

/// A report of a node; `day` is relative to the schedule's first day.
#[derive(Clone, Copy, Debug)]
struct ScheduledReport {
    node: u64,
    day: u32,
    totals: NodeReport,
}

fn scheduled_report() -> impl Strategy<Value = ScheduledReport> {
    let numbers = (0u32..20, 0u32..20, 0u32..25, 1u32..900);
    (0u64..3, 0u32..3, numbers).prop_map(|(node, day, (granted, returned, wanted, quota))| {
        // A node returns only units that it was granted.
        let returned = returned.min(granted);
        let totals = NodeReport {
            known: NodeTotals { granted, returned },
            granted: wanted,
            quota,
        };
        ScheduledReport { node, day, totals }
    })
}

pub fn reports_are_applied_by_the_rules_and_no_day_is_opened_again(
    store: &Store,
    runtime: &tokio::runtime::Runtime,
) {
    let next = AtomicU32::new(NOON.day().number());
    let config = Config {
        cases: 48,
        failure_persistence: None,
        ..Config::default()
    };
    let schedules = prop::collection::vec(scheduled_report(), 1..20);
    let held = TestRunner::new(config).run(&schedules, |reports| {
        let first = next.fetch_add(10, Relaxed); // the days of earlier schedules are closed
        runtime.block_on(schedule_holds(store, first, reports));
        Ok(())
    });
    held.unwrap();
}

async fn schedule_holds(store: &Store, first: u32, reports: Vec<ScheduledReport>) {
    let id = created(store).await;
    let mut days = BTreeMap::<u32, DayTotals>::new();
    let mut nodes = BTreeMap::<(u32, u64), NodeTotals>::new();
    for ScheduledReport { node, day, totals } in reports {
        let newest = days.keys().next_back().copied().unwrap_or(day);
        let expected = if day < newest {
            ReportOutcome::Closed
        } else {
            let total = days.entry(day).or_default();
            let row = nodes.entry((day, node)).or_default();
            (*total, *row) = total.apply(*row, &totals);
            ReportOutcome::Applied {
                node: *row,
                granted: total.granted,
                has_outdated_terms: false,
            }
        };
        let date = Day::from_number(first + day);
        let exchange = LedgerExchange {
            node,
            today: date,
            reports: vec![LedgerReport::of_units(id, date, totals)],
        };
        let reply = store.exchange(exchange).await.unwrap();
        assert_eq!(reply.outcomes, [expected]);
        assert_eq!(reply.today.number(), first + day.max(newest));
    }
}
