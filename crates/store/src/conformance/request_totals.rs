//! Conformance checks of request totals by endpoint and outcome.

use super::*;

/// Requests by day: endpoint, outcome and number.
type DayRequests<'e> = Vec<(Day, &'e str, RequestOutcome, u64)>;

pub fn total(
    application: ApplicationId,
    day: Day,
    of: (&'static str, RequestOutcome),
    requests: u64,
) -> RequestTotal {
    RequestTotal {
        day,
        application,
        endpoint: of.0.into(),
        outcome: of.1,
        requests,
    }
}

pub const MODELS: (&str, RequestOutcome) = ("models", RequestOutcome::Ok);
const LIMITED: (&str, RequestOutcome) = ("models", RequestOutcome::RateLimited);
const ME: (&str, RequestOutcome) = ("me", RequestOutcome::Ok);
const OTHER: (&str, RequestOutcome) = ("none", RequestOutcome::ClientError);

async fn list(store: &Store, application: ApplicationId, first: Day, last: Day) -> RequestList {
    store
        .requests(RequestQuery {
            application,
            first,
            last,
        })
        .await
        .unwrap()
}

fn shown(list: &RequestList) -> DayRequests<'_> {
    list.totals
        .iter()
        .map(|total| (total.day, &*total.endpoint, total.outcome, total.requests))
        .collect()
}

/// Records the requests of an application for one node.
async fn record(store: &Store, node: u64, total: RequestTotal) {
    store.record_requests(node, vec![total]).await.unwrap();
}

pub async fn requests_are_added_up_over_nodes_and_a_repeated_or_late_total_changes_nothing(
    store: &Store,
) {
    let one = an_id();
    let other = an_id();
    let today = NOON.day();
    store.record_requests(1, Vec::new()).await.unwrap();
    for (node, application, of, requests) in [
        (1, one, MODELS, 5),
        (2, one, MODELS, 7),
        (1, one, MODELS, 9),
        (1, one, LIMITED, 2),
        (2, one, MODELS, 7),
        (1, one, MODELS, 4),
        (2, other, MODELS, 3),
        (u64::MAX, one, OTHER, 1),
    ] {
        record(store, node, total(application, today, of, requests)).await;
    }
    let found = list(store, one, today, today).await;
    assert!(found.totals.iter().all(|total| total.application == one));
    let expected = [
        (today, MODELS.0, MODELS.1, 16),
        (today, LIMITED.0, LIMITED.1, 2),
        (today, OTHER.0, OTHER.1, 1),
    ];
    assert_eq!(shown(&found), expected);
    assert_eq!(list(store, other, today, today).await.sum().ok, 3);
    assert_eq!(
        list(store, an_id(), today, today).await,
        RequestList::default()
    );
}

pub async fn requests_are_read_by_day_oldest_first_within_the_bounds(store: &Store) {
    let one = an_id();
    let today = NOON.day();
    let reported = [
        total(one, today, MODELS, 1),
        total(one, before(1), OTHER, 2),
        total(one, before(1), MODELS, 3),
        total(one, before(2), MODELS, 4),
    ];
    store.record_requests(1, reported.to_vec()).await.unwrap();
    let found = list(store, one, before(1), today).await;
    let yesterday = before(1);
    assert_eq!(
        shown(&found),
        [
            (yesterday, MODELS.0, MODELS.1, 3),
            (yesterday, OTHER.0, OTHER.1, 2),
            (today, MODELS.0, MODELS.1, 1)
        ]
    );
    assert_eq!(
        list(store, one, before(9), before(2)).await.sum().total(),
        4
    );
    assert_eq!(
        list(store, one, today, before(1)).await,
        RequestList::default(),
        "the last day is before"
    );
    assert_eq!(
        list(store, one, Day::from_number(0), today)
            .await
            .totals
            .len(),
        4
    );
}

pub async fn requests_of_closed_days_are_merged_and_take_no_reports(store: &Store) {
    let one = an_id();
    open_day(store, before(3)).await;
    for (node, ago, of, requests) in [
        (1, 3, MODELS, 5),
        (2, 3, MODELS, 6),
        (2, 3, OTHER, 1),
        (1, 2, MODELS, 7),
        (2, 2, MODELS, 8),
    ] {
        record(store, node, total(one, before(ago), of, requests)).await;
    }
    let all = [
        (before(3), MODELS.0, MODELS.1, 11),
        (before(3), OTHER.0, OTHER.1, 1),
        (before(2), MODELS.0, MODELS.1, 15),
    ];
    delete_outdated(store).await;
    open_day(store, NOON.day()).await;
    for _ in 0..2 {
        assert_eq!(shown(&list(store, one, before(3), NOON.day()).await), all);
        delete_outdated(store).await;
    }
    for node in [1, 2, 3] {
        record(store, node, total(one, before(3), MODELS, 99)).await;
    }
    let after = list(store, one, before(3), NOON.day()).await;
    assert_eq!(shown(&after), all, "a closed day accepted a report");
    record(store, 3, total(one, before(2), MODELS, 1)).await;
    assert_eq!(
        list(store, one, before(2), before(2)).await.sum().ok,
        16,
        "a day is open for two days after its end"
    );
}

pub async fn requests_are_kept_for_92_days(store: &Store) {
    let one = an_id();
    // There are more records than one batch deletes.
    let endpoints = || (0..1_100).map(|number| format!("endpoint_{number}"));
    for ago in [92, 91] {
        open_day(store, before(ago)).await;
        let all = endpoints().map(|name| RequestTotal {
            endpoint: name.into(),
            ..total(one, before(ago), MODELS, 1)
        });
        store.record_requests(1, all.collect()).await.unwrap();
    }
    open_day(store, NOON.day()).await;
    delete_outdated(store).await;
    assert_eq!(
        list(store, one, before(92), before(92)).await,
        RequestList::default()
    );
    let kept = list(store, one, before(91), before(91)).await;
    assert_eq!((kept.totals.len(), kept.sum().ok), (1_100, 1_100));
}

pub async fn usage_of_a_day_is_its_requests_with_content_except_me_over_all_nodes(store: &Store) {
    let one = an_id();
    let two = an_id();
    let none = an_id();
    let day = before(3);
    open_day(store, day).await;
    for (node, application, of, requests) in [
        (1, one, MODELS, 5),
        (2, one, MODELS, 7),
        (2, one, ("index", RequestOutcome::Ok), 1),
        (1, one, LIMITED, 20),
        (1, one, ME, 30),
        (u64::MAX, two, MODELS, 3),
        (1, none, ME, 40),
        (1, none, OTHER, 50),
    ] {
        record(store, node, total(application, day, of, requests)).await;
    }
    record(store, 1, total(one, before(2), MODELS, 100)).await;
    let all = [(one, 13), (two, 3)];
    let units = |list: &UsageList| -> Vec<_> {
        let totals = list.totals.iter();
        totals
            .map(|total| (total.application, total.units))
            .collect()
    };
    for is_merged in [false, true] {
        let list = store.usage(day, 10, None).await.unwrap();
        assert_eq!(units(&list), all, "{is_merged}");
        assert_eq!((list.matching, list.units), (2, 16), "{is_merged}");
        let first = store.usage(day, 1, None).await.unwrap();
        assert_eq!(units(&first), all[..1]);
        assert_eq!(
            (first.matching, first.units),
            (2, 16),
            "the sums include applications that are not listed"
        );
        open_day(store, NOON.day()).await;
        delete_outdated(store).await;
    }
    assert_eq!(
        store.usage(before(9), 10, None).await.unwrap(),
        UsageList {
            is_closed: true,
            ..UsageList::default()
        }
    );
}
