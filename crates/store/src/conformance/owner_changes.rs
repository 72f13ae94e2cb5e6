//! Conformance checks of changes that owners make to their applications.

use std::time::Duration;

use futures_util::future::join_all;

use super::*;

/// A change on behalf of an owner.
fn in_name_of(owner: OwnerId, id: ApplicationId, what: ChangeKind) -> StoreChange {
    StoreChange {
        owner: Some(owner),
        ..changing(id, what)
    }
}

/// Every kind of change that an owner can make to an existing application.
fn changes_by_owners(id: ApplicationId, number: u32) -> Vec<ChangeKind> {
    let key = |how: &str| a_key(&format!("{id} {how} {number}"));
    let url = Some("https://example.org".to_owned());
    let description = Description {
        url,
        ..Description::default()
    };
    vec![
        rotation(key("rotated"), NOON.plus(HOUR)),
        rotation(key("replaced"), NOON),
        addition(key("added")),
        ChangeKind::RevokeKey {
            digest: first_key(id).digest,
        },
        ChangeKind::Describe {
            name: "Site".into(),
            description,
        },
        ChangeKind::RevokeAll,
        ChangeKind::Close,
    ]
}

pub async fn a_suspended_owner_changes_no_application(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    changed(store, owner, OwnerChangeKind::Suspend).await;
    make(store, id, ChangeKind::RevokeAll).await;
    let before = found(store, id).await;
    let refusal = OwnerRefusal::Suspended(owner);
    for what in changes_by_owners(id, 1) {
        let refused = store.change(in_name_of(owner, id, what)).await;
        assert_eq!(owner_refusal(refused), refusal);
    }
    assert_eq!(found(store, id).await, before);
    let trail = trail_of(store, id).await;
    assert_eq!(trail.len(), 2, "a refused change was recorded: {trail:?}");
    let deletion = || OwnerChangeKind::Delete { in_own_name: true };
    let refused = attempted(store, owner, deletion()).await;
    assert_eq!(owner_refusal(refused), refusal);
    changed(store, owner, OwnerChangeKind::Resume).await;
    for what in changes_by_owners(id, 2) {
        store.change(in_name_of(owner, id, what)).await.unwrap();
    }
    changed(store, owner, deletion()).await;
}

pub async fn an_application_of_another_owner_is_unknown(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let other = signed_up(store, "bob@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    let closed = application_of(store, other, 1).await;
    store
        .change(in_name_of(other, closed, ChangeKind::Close))
        .await
        .unwrap();
    let by_operator = created(store).await;
    for (number, hidden) in (1..).zip([id, closed, by_operator, an_id()]) {
        let before = store.application(hidden, NOON.day()).await.unwrap();
        for what in changes_by_owners(hidden, number) {
            let refused = store.change(in_name_of(other, hidden, what)).await;
            let is_unknown =
                matches!(refused, Err(StoreError::UnknownApplication(id)) if id == hidden);
            assert!(is_unknown, "{refused:?}");
        }
        assert_eq!(store.application(hidden, NOON.day()).await.unwrap(), before);
    }
    let nobody = OwnerId::mint().unwrap();
    let refused = store
        .change(in_name_of(nobody, id, ChangeKind::RevokeAll))
        .await;
    assert_eq!(owner_refusal(refused), OwnerRefusal::Unknown(nobody));
}

pub async fn of_concurrent_new_keys_one_meets_the_conditions(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    let allowed = |existing, active, per_day| {
        Some(KeyAllowance {
            existing,
            active,
            per_day,
        })
    };
    let add = async |allowance, at| {
        let key = a_key(&an_id().to_string());
        let change = StoreChange {
            at,
            ..in_name_of(owner, id, ChangeKind::AddKey { key, allowance })
        };
        let added = store.change(change).await;
        added.is_err().then(|| owner_refusal(added))
    };
    let refused: Vec<_> = join_all((0..8).map(|_| add(allowed(1, 9, 9), NOON)))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(refused, [OwnerRefusal::KeysChanged(id); 7]);
    assert_eq!(
        add(allowed(2, 2, 9), NOON).await,
        Some(OwnerRefusal::TooManyActiveKeys(id))
    );
    assert_eq!(
        add(allowed(2, 3, 2), NOON).await,
        Some(OwnerRefusal::TooManyNewKeys(id))
    );
    let rotations = join_all((0..8).map(|_| {
        let what = ChangeKind::Rotate {
            key: a_key(&an_id().to_string()),
            retire_others_at: NOON.plus(HOUR),
            allowance: allowed(2, 3, 3),
        };
        store.change(in_name_of(owner, id, what))
    }));
    assert_eq!(rotations.await.into_iter().flatten().count(), 1);
    let keys = found(store, id).await.keys;
    assert_eq!(
        keys.iter().filter(|key| key.expires_at.is_some()).count(),
        2,
        "a refused rotation retires no key"
    );
    let day = Duration::from_hours(24);
    assert_eq!(
        add(allowed(3, 2, 3), NOON.plus(day)).await,
        None,
        "two keys have expired, and all are a day old"
    );
}
