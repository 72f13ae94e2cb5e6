//! Conformance checks of the change feed.

use futures_util::future::join_all;

use super::*;

pub async fn the_feed_names_each_changed_application_once_in_order(store: &Store) {
    let start = store.position().await.unwrap();
    let none = store.changed_after(start.clone(), 10).await.unwrap();
    assert!(
        none.applications.is_empty() && !none.is_partial() && !none.requires_reload(&start),
        "{none:?}"
    );
    let first = created(store).await;
    let second = created(store).await;
    let third = created(store).await;
    make(store, first, ChangeKind::RevokeAll).await;
    assert!(store.change(creating(second)).await.is_err());
    let all = store.changed_after(start.clone(), 10).await.unwrap();
    assert_eq!(
        all.applications,
        [second, third, first],
        "by their last changes"
    );
    assert!(
        !all.is_partial() && all.reached == store.position().await.unwrap(),
        "{all:?}"
    );
    let mut met = Vec::new();
    let mut position = start;
    loop {
        let some = store.changed_after(position.clone(), 2).await.unwrap();
        assert!(some.applications.len() <= 2 && !some.requires_reload(&position));
        met.extend(some.applications.clone());
        position = some.reached.clone();
        if !some.is_partial() {
            break;
        }
    }
    assert_eq!(met, all.applications);
}

pub async fn a_reader_of_the_feed_misses_no_concurrent_change(store: &Store) {
    let start = store.position().await.unwrap();
    let reading = async {
        let mut met = std::collections::BTreeSet::new();
        let mut position = start;
        while met.len() < 60 {
            let some = store.changed_after(position, 7).await.unwrap();
            met.extend(some.applications);
            position = some.reached;
        }
        met
    };
    let (made, met) = tokio::join!(join_all((0..60).map(|_| created(store))), reading);
    assert_eq!(met, made.into_iter().collect());
}

pub async fn a_position_ahead_of_the_feed_or_of_another_one_requires_a_reload(store: &Store) {
    created(store).await;
    let position = store.position().await.unwrap();
    let ahead = FeedPosition {
        number: position.number + 1,
        ..position.clone()
    };
    let elsewhere = FeedPosition {
        source: "another".into(),
        ..position.clone()
    };
    for (before, requires) in [(position, false), (ahead, true), (elsewhere, true)] {
        let changed = store.changed_after(before.clone(), 5).await.unwrap();
        assert_eq!(changed.requires_reload(&before), requires, "{before:?}");
    }
}
