//! Conformance checks of changes that owners make to their applications.

use std::time::Duration;

use futures_util::future::join_all;

use super::*;

/// A change in the name of an owner.
fn in_name_of(owner: OwnerId, id: ApplicationId, what: ChangeKind) -> StoreChange {
    StoreChange {
        owner: Some(owner),
        ..changing(id, what)
    }
}

/// Every change that an owner makes to an existing application.
fn changes_by_owners(id: ApplicationId, number: u32) -> Vec<ChangeKind> {
    let url = Some("https://example.org".to_owned());
    let description = Description {
        url,
        ..Description::default()
    };
    vec![
        ChangeKind::Rotate {
            key: a_key(&format!("{id} rotated {number}")),
            retire_others_at: NOON.plus(HOUR),
            allowance: None,
        },
        ChangeKind::Rotate {
            key: a_key(&format!("{id} replaced {number}")),
            retire_others_at: NOON,
            allowance: None,
        },
        ChangeKind::AddKey {
            key: a_key(&format!("{id} added {number}")),
            allowance: None,
        },
        ChangeKind::RevokeKey {
            digest: Digest::of(&id.to_string()),
        },
        ChangeKind::Describe {
            name: "Site".into(),
            description,
        },
        ChangeKind::RevokeAll,
        ChangeKind::Close,
    ]
}

pub(crate) async fn a_suspended_owner_changes_no_application(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = store.change(owned(owner, 1)).await.unwrap().id;
    changed(store, owner, OwnerChangeKind::Suspend).await;
    make(store, id, ChangeKind::RevokeAll).await;
    let before = store.application(id, NOON.day()).await.unwrap();
    for what in changes_by_owners(id, 1) {
        let refused = store.change(in_name_of(owner, id, what)).await;
        let expected = OwnerRefusal::Suspended(owner);
        assert!(
            matches!(&refused, Err(StoreError::Owner(refusal)) if *refusal == expected),
            "{refused:?}"
        );
    }
    assert_eq!(store.application(id, NOON.day()).await.unwrap(), before);
    let trail = store
        .audit(AuditQuery {
            application: Some(id),
            limit: 9,
            ..AuditQuery::default()
        })
        .await
        .unwrap();
    assert_eq!(trail.len(), 2, "a refused change was recorded: {trail:?}");
    let what = OwnerChangeKind::Delete { in_own_name: true };
    let refused = store
        .change_owner(OwnerChange {
            at: NOON,
            who: "a test".into(),
            owner,
            what,
        })
        .await;
    assert!(
        matches!(refused, Err(StoreError::Owner(OwnerRefusal::Suspended(_)))),
        "{refused:?}"
    );
    changed(store, owner, OwnerChangeKind::Resume).await;
    for what in changes_by_owners(id, 2) {
        store.change(in_name_of(owner, id, what)).await.unwrap();
    }
    changed(store, owner, OwnerChangeKind::Delete { in_own_name: true }).await;
}

pub(crate) async fn an_application_of_another_owner_is_unknown(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let other = signed_up(store, "bob@example.org").await.id;
    let id = store.change(owned(owner, 1)).await.unwrap().id;
    let closed = store.change(owned(other, 1)).await.unwrap().id;
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
    assert!(
        matches!(&refused, Err(StoreError::Owner(OwnerRefusal::Unknown(id))) if *id == nobody),
        "{refused:?}"
    );
}

pub(crate) async fn of_concurrent_new_keys_one_meets_the_conditions(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = store.change(owned(owner, 1)).await.unwrap().id;
    let number = AtomicU64::new(0);
    let key = || {
        a_key(&format!(
            "{id} new {}",
            number.fetch_add(1, Ordering::Relaxed)
        ))
    };
    let add = async |existing, active, per_day, at| {
        let allowance = Some(KeyAllowance {
            existing,
            active,
            per_day,
        });
        let what = ChangeKind::AddKey {
            key: key(),
            allowance,
        };
        match store
            .change(StoreChange {
                at,
                ..in_name_of(owner, id, what)
            })
            .await
        {
            Ok(_) => None,
            Err(StoreError::Owner(refusal)) => Some(refusal),
            Err(other) => panic!("{other}"),
        }
    };
    let refused: Vec<_> = join_all((0..8).map(|_| add(1, 9, 9, NOON)))
        .await
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(refused, [OwnerRefusal::KeysChanged(id); 7]);
    assert_eq!(
        add(2, 2, 9, NOON).await,
        Some(OwnerRefusal::TooManyActiveKeys(id))
    );
    assert_eq!(
        add(2, 3, 2, NOON).await,
        Some(OwnerRefusal::TooManyNewKeys(id))
    );
    let rotations = join_all((0..8).map(|_| {
        let allowance = Some(KeyAllowance {
            existing: 2,
            active: 3,
            per_day: 3,
        });
        let what = ChangeKind::Rotate {
            key: key(),
            retire_others_at: NOON.plus(HOUR),
            allowance,
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
        add(3, 2, 3, NOON.plus(day)).await,
        None,
        "two have expired, and all are a day old"
    );
}
