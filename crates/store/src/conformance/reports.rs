//! Conformance checks of usage and of the registered nodes.

use super::*;

/// Totals of an application on a day.
fn total(application: ApplicationId, day: Day, units: u64) -> UsageTotal {
    UsageTotal {
        day,
        application,
        units,
    }
}

fn days_ago(days: u32) -> Day {
    Day::from_number(NOON.day().number() - days)
}

/// The totals of these days, with their number and their sum.
async fn read(store: &dyn Store, first: Day, limit: usize) -> (Vec<UsageTotal>, u64, u64) {
    let query = UsageQuery {
        first,
        ..UsageQuery::on(NOON.day(), limit)
    };
    let list = store.usage(query).await.unwrap();
    (list.totals, list.matching, list.units)
}

/// Opens a day.
async fn open(store: &dyn Store, day: Day) {
    store
        .exchange(LedgerExchange {
            node: 1,
            today: day,
            reports: Vec::new(),
        })
        .await
        .unwrap();
}

async fn merge(store: &dyn Store) {
    while store.delete_outdated().await.unwrap() > 0 {}
}

pub(crate) async fn usage_is_added_up_over_nodes_and_a_repeated_or_late_total_changes_nothing(
    store: &dyn Store,
) {
    let one = an_id();
    let other = an_id();
    let today = NOON.day();
    for (node, application, units) in [
        (1, one, 5),
        (2, one, 7),
        (1, one, 9),
        (2, one, 7),
        (1, one, 4),
        (2, other, 3),
        (u64::MAX, one, 1),
    ] {
        store
            .record_usage(node, vec![total(application, today, units)])
            .await
            .unwrap();
    }
    let all = vec![total(one, today, 17), total(other, today, 3)];
    assert_eq!(read(store, today, 10).await, (all.clone(), 2, 20));
    assert_eq!(
        read(store, today, 1).await,
        (all[..1].to_vec(), 2, 20),
        "the sum includes what is not listed"
    );
    let of = |applications| UsageQuery {
        applications: Some(applications),
        ..UsageQuery::on(today, 10)
    };
    let some = store.usage(of(vec![other, an_id()])).await.unwrap();
    assert_eq!((some.totals, some.units), (all[1..].to_vec(), 3));
    assert_eq!(
        store.usage(of(Vec::new())).await.unwrap(),
        UsageList::default()
    );
}

pub(crate) async fn usage_of_days_is_listed_newest_day_first(store: &dyn Store) {
    let one = an_id();
    let other = an_id();
    let today = NOON.day();
    let yesterday = days_ago(1);
    let reported = [
        total(one, yesterday, 2),
        total(other, yesterday, 8),
        total(one, today, 1),
    ];
    store.record_usage(1, reported.to_vec()).await.unwrap();
    let expected = vec![reported[2], reported[1], reported[0]];
    assert_eq!(read(store, yesterday, 10).await, (expected, 3, 11));
    assert_eq!(read(store, today, 10).await, (vec![reported[2]], 1, 1));
}

pub(crate) async fn merged_days_keep_their_totals_and_take_no_reports(store: &dyn Store) {
    let one = an_id();
    open(store, days_ago(3)).await;
    for (node, ago, units) in [(1, 3, 5), (2, 3, 6), (1, 2, 7), (2, 2, 8)] {
        store
            .record_usage(node, vec![total(one, days_ago(ago), units)])
            .await
            .unwrap();
    }
    let all = vec![total(one, days_ago(2), 15), total(one, days_ago(3), 11)];
    merge(store).await;
    open(store, NOON.day()).await;
    assert_eq!(read(store, days_ago(3), 10).await, (all.clone(), 2, 26));
    merge(store).await;
    assert_eq!(read(store, days_ago(3), 10).await, (all.clone(), 2, 26));
    for node in [1, 2, 3] {
        store
            .record_usage(node, vec![total(one, days_ago(3), 99)])
            .await
            .unwrap();
    }
    assert_eq!(
        read(store, days_ago(3), 10).await,
        (all, 2, 26),
        "a closed day took a report"
    );
    store
        .record_usage(3, vec![total(one, days_ago(2), 1)])
        .await
        .unwrap();
    assert_eq!(
        read(store, days_ago(2), 10).await.2,
        16,
        "it is open for two more days"
    );
}

pub(crate) async fn usage_is_kept_for_400_days(store: &dyn Store) {
    let one = an_id();
    for (ago, units) in [(400, 1), (399, 2)] {
        open(store, days_ago(ago)).await;
        store
            .record_usage(1, vec![total(one, days_ago(ago), units)])
            .await
            .unwrap();
    }
    open(store, NOON.day()).await;
    merge(store).await;
    assert_eq!(
        read(store, days_ago(500), 10).await.0,
        [total(one, days_ago(399), 2)]
    );
}

fn node(number: u64, units_held: u64) -> NodeStatus {
    NodeStatus {
        node: number,
        name: format!("gateway {number}"),
        version: "1.2.3".into(),
        started_at: NOON,
        last_seen_at: NOON,
        units_held,
        usage_recorded_at: NOON.plus(HOUR),
    }
}

pub(crate) async fn a_node_is_listed_with_its_last_report_until_it_is_removed(store: &dyn Store) {
    assert!(store.nodes().await.unwrap().nodes.is_empty());
    // The highest number: numbers are random.
    let number = u64::MAX;
    for units in [3, 8] {
        store.report_node(node(number, units)).await.unwrap();
        let list = store.nodes().await.unwrap();
        let [found] = list.nodes.as_slice() else {
            panic!("{list:?}")
        };
        let last_seen_at = found.last_seen_at;
        assert_eq!(
            *found,
            NodeStatus {
                last_seen_at,
                ..node(number, units)
            }
        );
        assert_eq!(list.live(NOON).count(), 1);
        assert_eq!(
            last_seen_at == NOON,
            list.clock.is_none(),
            "a store with a clock sets the time"
        );
    }
    store.remove_node(1).await.unwrap();
    assert_eq!(store.nodes().await.unwrap().nodes.len(), 1);
    store.remove_node(number).await.unwrap();
    assert!(store.nodes().await.unwrap().nodes.is_empty());
}
