//! Conformance checks of limits that end.

use futures_util::future::join_all;

use super::*;

const fn own(minute: u32, day: Option<u32>) -> OwnLimits {
    OwnLimits {
        minute: Some(minute),
        day,
    }
}

async fn set(store: &dyn Store, id: ApplicationId, own: OwnLimits, until: Option<Wall>) {
    let set = make(store, id, ChangeKind::SetLimits { own, until }).await;
    assert_eq!((set.own, set.limits_until), (own, until));
}

/// The application after an attempt to restore its limits, unless that was not due.
async fn restored(store: &dyn Store, id: ApplicationId, at: Wall) -> Option<StoredApplication> {
    match store
        .change(StoreChange {
            at,
            ..changing(id, ChangeKind::RestoreLimits)
        })
        .await
    {
        Ok(application) => Some(application),
        Err(StoreError::Exists(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

pub(crate) async fn limits_with_an_end_are_followed_by_those_of_before_the_first_of_them(
    store: &dyn Store,
) {
    let id = created(store).await;
    let of_tier = created(store).await;
    set(store, id, own(60, Some(500)), None).await;
    set(store, id, own(10, Some(500)), Some(NOON.plus(HOUR))).await;
    set(store, id, own(5, None), Some(NOON.plus(2 * HOUR))).await;
    set(store, of_tier, own(1, Some(1)), Some(NOON.plus(3 * HOUR))).await;
    let lowered = found(store, id).await;
    assert!(applications(store).await.contains(&lowered));

    let end = NOON.plus(2 * HOUR);
    let early = end.minus(std::time::Duration::from_millis(1));
    assert_eq!(store.due_limits(early).await.unwrap(), []);
    assert_eq!(restored(store, id, early).await, None);
    assert_eq!(found(store, id).await, lowered);
    assert_eq!(store.due_limits(end).await.unwrap(), [id]);
    assert_eq!(
        store.due_limits(end.plus(HOUR)).await.unwrap(),
        [id, of_tier]
    );
    let after = restored(store, id, end).await.unwrap();
    assert_eq!(
        after,
        StoredApplication {
            own: own(60, Some(500)),
            limits_until: None,
            ..lowered
        }
    );
    assert_eq!(
        restored(store, of_tier, end.plus(HOUR)).await.unwrap().own,
        OwnLimits::default()
    );
    assert_eq!(store.due_limits(end.plus(HOUR)).await.unwrap(), []);
    let trail = trail_of(store, id).await;
    let trail: Vec<_> = trail[..2]
        .iter()
        .map(|record| (record.what.as_str(), record.detail.as_str()))
        .collect();
    let until = format!("own limits, 5 a minute, until {}", end.rfc3339());
    assert_eq!(
        trail,
        [
            ("restore_limits", "own limits, 60 a minute, 500 a day"),
            ("set_limits", &until)
        ]
    );
}

pub(crate) async fn limits_without_an_end_and_the_last_revocation_leave_nothing_to_restore(
    store: &dyn Store,
) {
    let id = created(store).await;
    let end = NOON.plus(HOUR);
    let without = ChangeKind::SetLimits {
        own: own(20, None),
        until: None,
    };
    for (what, left) in [
        (rotation(a_key("another"), NOON), vec![id]),
        (without, vec![]),
        (ChangeKind::RevokeAll, vec![]),
        (ChangeKind::Close, vec![]),
    ] {
        set(store, id, own(10, None), Some(end)).await;
        let changed = make(store, id, what).await;
        assert_eq!(changed.limits_until.is_some(), !left.is_empty());
        assert_eq!(store.due_limits(end).await.unwrap(), left);
    }
    assert_eq!(restored(store, id, end).await, None);
}

pub(crate) async fn of_concurrent_restorations_of_limits_one_is_made(store: &dyn Store) {
    let id = created(store).await;
    set(store, id, own(10, None), Some(NOON)).await;
    let made = join_all((0..4).map(|_| restored(store, id, NOON))).await;
    assert_eq!(made.iter().flatten().count(), 1);
    let trail = trail_of(store, id).await;
    assert_eq!(words(&trail), ["restore_limits", "set_limits", "create"]);
}
