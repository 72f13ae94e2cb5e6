//! Conformance checks of temporary limits.

use futures_util::future::join_all;

use super::*;

fn own(minute: u32, day: Option<u32>) -> OwnLimits {
    OwnLimits::NONE
        .with(LimitSetting::Minute, minute)
        .with(LimitSetting::Day, day)
}

async fn set(store: &Store, id: ApplicationId, own: OwnLimits, until: Option<Wall>) {
    let set = make(store, id, limits_set(own, until)).await;
    assert_eq!((set.own, set.limits_until), (own, until));
}

/// The application after an attempt to restore its limits; `None` if that is not due.
async fn restored(store: &Store, id: ApplicationId, at: Wall) -> Option<StoredApplication> {
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

pub async fn limits_with_an_end_are_followed_by_those_of_before_the_first_of_them(store: &Store) {
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
        OwnLimits::NONE
    );
    assert_eq!(store.due_limits(end.plus(HOUR)).await.unwrap(), []);
    let trail = trail_of(store, id).await;
    let trail: Vec<_> = trail[..2]
        .iter()
        .map(|record| (record.what.as_str(), record.detail.as_str()))
        .collect();
    let until = format!("own limits, minute 5, until {}", end.rfc3339());
    assert_eq!(
        trail,
        [
            ("restore_limits", "own limits, minute 60, day 500"),
            ("set_limits", &until)
        ]
    );
}

pub async fn limits_without_an_end_and_the_last_revocation_leave_nothing_to_restore(store: &Store) {
    let id = created(store).await;
    let end = NOON.plus(HOUR);
    let without = limits_set(own(20, None), None);
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

pub async fn of_concurrent_restorations_of_limits_one_is_made(store: &Store) {
    let id = created(store).await;
    set(store, id, own(10, None), Some(NOON)).await;
    let made = join_all((0..4).map(|_| restored(store, id, NOON))).await;
    assert_eq!(made.iter().flatten().count(), 1);
    let trail = trail_of(store, id).await;
    assert_eq!(words(&trail), ["restore_limits", "set_limits", "create"]);
}

/// Changes the limits of an account, and sets the limits of its applications.
async fn set_account(store: &Store, owner: OwnerId, changes: LimitChanges) -> OwnLimits {
    let account = changed(store, owner, OwnerChangeKind::SetLimits(changes)).await;
    for id in account.applications {
        make(store, id, ChangeKind::SetOwnerLimits(account.own)).await;
    }
    account.own
}

pub async fn limits_of_an_account_are_those_of_its_present_and_new_applications(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let first = store.change(owned(owner, 9)).await.unwrap().id;
    set(store, first, own(60, None), None).await;
    set(store, first, own(10, None), Some(NOON)).await;
    let pool = LimitChanges::default()
        .with(LimitSetting::OwnerDay, 100)
        .with(LimitSetting::OwnerMonth, 900);
    let account = set_account(store, owner, pool).await;
    assert_eq!(
        account.to_text().unwrap(),
        r#"{"owner_day":100,"owner_month":900}"#
    );
    assert_eq!(
        found(store, first).await.own,
        own(10, None).with_owner(account)
    );
    let second = store.change(owned(owner, 9)).await.unwrap();
    assert_eq!(second.own, account);

    let taken_back = LimitChanges::default().with(LimitSetting::OwnerDay, None);
    let left = set_account(store, owner, taken_back).await;
    assert_eq!(left, OwnLimits::NONE.with(LimitSetting::OwnerMonth, 900));
    assert_eq!(found(store, second.id).await.own, left);
    let restored = restored(store, first, NOON).await.unwrap();
    assert_eq!(restored.own, own(60, None).with_owner(left));
    assert_eq!(store.owner(owner).await.unwrap().unwrap().own, left);
    let query = AuditQuery {
        owner: Some(owner),
        limit: 1,
        ..AuditQuery::default()
    };
    let trail = store.audit(query).await.unwrap();
    assert_eq!(trail[0].what, "set_account_limits");
    assert_eq!(trail[0].detail, format!("{owner}, owner_day none"));
}
