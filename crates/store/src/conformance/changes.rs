//! Conformance checks of applications, keys and the audit trail.

use futures_util::TryStreamExt;

use super::*;

pub async fn created_records_are_read_back(store: &Store) {
    let id = an_id();
    let own = OwnLimits::NONE
        .with(LimitSetting::Minute, 7)
        .with(LimitSetting::Day, u32::MAX);
    let description =
        Description::from_fn(|name| Some(format!("{name}: line one\nline two '; --")));
    let key = StoredKey {
        expires_at: Some(NOON.plus(HOUR)),
        ..a_key("first")
    };
    let wanted = StoredApplication {
        id,
        name: "Wetter, Ünïcode 🌦".into(),
        tier: "a tier nobody configured".into(),
        own,
        limits_until: None,
        description: description.clone(),
        created_at: NOON,
        keys: vec![key.clone()],
        granted: 0,
    };
    let name = wanted.name.clone();
    let tier = wanted.tier.clone();
    let what = ChangeKind::Create {
        name,
        tier,
        own,
        description,
        key,
        owner: None,
    };
    assert_eq!(make(store, id, what).await, wanted);
    assert_eq!(
        store.application(id, NOON.day()).await.unwrap(),
        Some(wanted.clone())
    );
    assert_eq!(applications(store).await, [wanted]);
}

pub async fn existing_records_are_not_created_again_and_failed_changes_are_rolled_back(
    store: &Store,
) {
    let first = created(store).await;
    let second = an_id();
    assert!(matches!(
        store.change(creating(first)).await,
        Err(StoreError::Exists(_))
    ));
    let mut same_key = creating(second);
    let ChangeKind::Create { key, .. } = &mut same_key.what else {
        unreachable!()
    };
    key.digest = Digest::of(&first.to_string());
    assert!(matches!(
        store.change(same_key).await,
        Err(StoreError::Exists(_))
    ));
    assert_eq!(
        store.application(second, NOON.day()).await.unwrap(),
        None,
        "half a creation stayed"
    );

    let again = rotation(first_key(first), NOON);
    assert!(matches!(
        store.change(changing(first, again)).await,
        Err(StoreError::Exists(_))
    ));
    let application = found(store, first).await;
    assert_eq!(
        application.keys,
        [first_key(first)],
        "half a rotation stayed"
    );
}

pub async fn missing_records_are_named(store: &Store) {
    let there = created(store).await;
    let gone = an_id();
    let other = created(store).await;
    assert_eq!(store.application(gone, NOON.day()).await.unwrap(), None);
    for what in [
        ChangeKind::RevokeAll,
        to_tier("pro"),
        addition(a_key("new")),
    ] {
        let refused = store.change(changing(gone, what)).await;
        assert!(
            matches!(refused, Err(StoreError::UnknownApplication(id)) if id == gone),
            "{refused:?}"
        );
    }
    let lease = store.lease(asking(gone, NOON.day(), 1, 1)).await;
    assert!(
        matches!(lease, Err(StoreError::UnknownApplication(id)) if id == gone),
        "{lease:?}"
    );
    for digest in [Digest::of("never"), Digest::of(&other.to_string())] {
        let refused = store
            .change(changing(there, ChangeKind::RevokeKey { digest }))
            .await;
        assert!(
            matches!(refused, Err(StoreError::UnknownKey(id)) if id == there),
            "{refused:?}"
        );
    }
}

pub async fn pages_contain_every_application_once_in_order(store: &Store) {
    assert_eq!(applications(store).await, []);
    let mut wanted = Vec::new();
    for _ in 0..7 {
        wanted.push(created(store).await);
    }
    wanted.sort();
    for most in [1, 3, 7, 100] {
        let mut met = Vec::new();
        let mut after = None;
        loop {
            let page = store.page(after, most, NOON.day()).await.unwrap();
            assert!(page.applications.len() <= most);
            met.extend(page.applications.iter().map(|application| application.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(met, wanted, "{most} a page");
    }
}

pub async fn all_applications_are_read_once_with_their_keys_and_units(store: &Store) {
    let all = async || -> Vec<StoredApplication> {
        let pages: Vec<ApplicationPage> = TryStreamExt::try_collect(store.all(NOON.day()))
            .await
            .unwrap();
        pages
            .into_iter()
            .flat_map(|page| page.applications)
            .collect()
    };
    assert!(all().await.is_empty());
    let mut wanted = Vec::new();
    for number in 0..3 {
        let id = created(store).await;
        let key = a_key(&format!("key {number}"));
        make(store, id, rotation(key, NOON.plus(HOUR))).await;
        assert_eq!(
            units(store, asking(id, NOON.day(), number, 50)).await,
            number
        );
        wanted.push((id, 2, u64::from(number)));
    }
    wanted.sort_unstable();
    let found = all().await;
    let shape = |of: &StoredApplication| (of.id, of.keys.len(), of.granted);
    assert_eq!(found.iter().map(shape).collect::<Vec<_>>(), wanted);
    assert_eq!(found, applications(store).await);
}

pub async fn rotation_never_extends_older_keys(store: &Store) {
    let id = created(store).await;
    let soon = StoredKey {
        expires_at: Some(NOON.plus(HOUR)),
        ..a_later_key("soon", 1)
    };
    make(store, id, rotation(soon, NOON.plus(3 * HOUR))).await;
    let last = rotation(a_later_key("last", 2), NOON.plus(2 * HOUR));
    let now = make(store, id, last).await;
    let ends: Vec<_> = now.keys.iter().map(|key| key.expires_at).collect();
    assert_eq!(
        ends,
        [Some(NOON.plus(2 * HOUR)), Some(NOON.plus(HOUR)), None],
        "oldest first"
    );
    assert_eq!(store.application(id, NOON.day()).await.unwrap(), Some(now));
}

pub async fn rotation_without_overlap_revokes_older_keys(store: &Store) {
    let id = created(store).await;
    let now = make(store, id, rotation(a_later_key("newer", 1), NOON)).await;
    let states: Vec<_> = now
        .keys
        .iter()
        .map(|key| (key.revoked_at, key.expires_at))
        .collect();
    assert_eq!(states, [(Some(NOON), None), (None, None)], "oldest first");
    let record = &trail(store).await[0];
    assert!(record.detail.ends_with("; 1 older revoked"), "{record:?}");
}

pub async fn revocation_is_final_and_keeps_its_first_time(store: &Store) {
    let id = created(store).await;
    let other = created(store).await;
    let later = rotation(a_later_key("later", 1), NOON.plus(HOUR));
    make(store, id, later).await;
    let first = ChangeKind::RevokeKey {
        digest: first_key(id).digest,
    };
    let now = make(store, id, first).await;
    let revoked = |now: &StoredApplication| {
        now.keys
            .iter()
            .map(|key| key.revoked_at)
            .collect::<Vec<_>>()
    };
    assert_eq!(revoked(&now), [Some(NOON), None]);
    let all = StoreChange {
        at: NOON.plus(HOUR),
        ..changing(id, ChangeKind::RevokeAll)
    };
    let now = store.change(all).await.unwrap();
    assert_eq!(revoked(&now), [Some(NOON), Some(NOON.plus(HOUR))]);
    let untouched = found(store, other).await;
    assert_eq!(revoked(&untouched), [None]);
}

pub async fn tier_change_keeps_everything_else(store: &Store) {
    let id = created(store).await;
    let before = found(store, id).await;
    units(store, asking(id, NOON.day(), 4, 10)).await;
    let after = make(store, id, to_tier("pro")).await;
    assert_eq!(
        after,
        StoredApplication {
            tier: "pro".into(),
            granted: 4,
            ..before
        }
    );
}

pub async fn added_key_keeps_the_other_keys(store: &Store) {
    let id = created(store).await;
    let added = StoredKey {
        expires_at: Some(NOON.plus(2 * HOUR)),
        ..a_later_key("added", 1)
    };
    let now = make(store, id, addition(added.clone())).await;
    assert_eq!(now.keys, [first_key(id), added.clone()]);
    let again = store.change(changing(id, addition(added))).await;
    assert!(matches!(again, Err(StoreError::Exists(_))));
}

pub async fn limits_descriptions_and_expiries_change_alone(store: &Store) {
    let id = created(store).await;
    let mut wanted = found(store, id).await;
    for own in [
        OwnLimits::NONE
            .with(LimitSetting::Minute, 3)
            .with(LimitSetting::Day, 5),
        OwnLimits::NONE.with(LimitSetting::Day, 1),
    ] {
        wanted.own = own;
        assert_eq!(make(store, id, limits_set(own, None)).await, wanted);
    }
    wanted.name = "Other".into();
    for replaced in Description::NAMES {
        let text = |name: &str| (name == replaced).then(|| format!("{name} of the other"));
        wanted.description = Description::from_fn(text);
        let name = wanted.name.clone();
        let description = wanted.description.clone();
        let what = ChangeKind::Describe { name, description };
        assert_eq!(make(store, id, what).await, wanted);
    }
    let digest = wanted.keys[0].digest;
    let expiry = |digests: &[Digest], at| ChangeKind::SetExpiry {
        digests: digests.to_vec(),
        at,
    };
    for at in [Some(NOON.plus(HOUR)), None, Some(NOON)] {
        wanted.keys[0].expires_at = at;
        assert_eq!(make(store, id, expiry(&[digest], at)).await, wanted);
    }
    let unknown = expiry(&[digest, Digest::of("unknown")], None);
    let refused = store.change(changing(id, unknown)).await;
    assert!(matches!(refused, Err(StoreError::UnknownKey(_))));
    assert_eq!(found(store, id).await, wanted, "half of it was done");
    make(store, id, ChangeKind::RevokeAll).await;
    let refused = store.change(changing(id, expiry(&[digest], None))).await;
    assert!(matches!(refused, Err(StoreError::UnknownKey(_))));
}

pub async fn every_change_is_in_the_audit_trail_newest_first_without_secrets(store: &Store) {
    let id = created(store).await;
    let other = created(store).await;
    let note = Some("paid by card".to_owned());
    let description = Description {
        note,
        ..Description::default()
    };
    let describe = ChangeKind::Describe {
        name: "Site".into(),
        description,
    };
    let expiry = |at| ChangeKind::SetExpiry {
        digests: vec![first_key(id).digest],
        at,
    };
    for what in [
        to_tier("pro"),
        describe,
        expiry(Some(NOON)),
        expiry(None),
        ChangeKind::RevokeAll,
    ] {
        make(store, id, what).await;
    }
    assert!(store.change(creating(id)).await.is_err());
    let all = trail(store).await;
    let shown: Vec<String> = all
        .iter()
        .map(|record| format!("{}: {}", record.what, record.detail))
        .collect();
    let given = Description::NAMES
        .map(|name| format!("{name} {}", if name == "note" { "given" } else { "none" }));
    let key = first_key(id).shown;
    let expected = [
        "revoke_all: 1 key".to_owned(),
        format!("set_expiry: keys {key} never expire"),
        format!("set_expiry: keys {key} expire at {}", NOON.rfc3339()),
        format!("describe: {}", given.join(", ")),
        "set_tier: from free to pro".to_owned(),
        format!("create: tier free, key {}", first_key(other).shown),
        format!("create: tier free, key {key}"),
    ];
    assert_eq!(shown, expected);
    assert!(
        all.iter()
            .all(|record| record.who == "a test" && record.at == NOON)
    );
    assert_eq!(all[5].application, other.to_string());
    let its_own = AuditQuery {
        application: Some(id),
        limit: 2,
        ..AuditQuery::default()
    };
    assert_eq!(store.audit(its_own).await.unwrap(), all[..2]);
    let older = AuditQuery {
        before: Some(all[1].number),
        limit: 9,
        ..AuditQuery::default()
    };
    assert_eq!(store.audit(older).await.unwrap(), all[2..]);
}

pub async fn last_use_is_stored_and_never_decreases(store: &Store) {
    let id = created(store).await;
    for (at, remembered) in [(HOUR, HOUR), (2 * HOUR, 2 * HOUR), (HOUR, 2 * HOUR)] {
        let uses = [Digest::of("unknown"), first_key(id).digest].map(|digest| KeyUse {
            application: id,
            digest,
            at: NOON.plus(at),
        });
        store.record_uses(uses.to_vec()).await.unwrap();
        let known = found(store, id).await;
        assert_eq!(known.keys[0].last_used_at, Some(NOON.plus(remembered)));
    }
}
