//! Conformance checks of leaked-key reports.

use futures_util::future::join_all;

use super::{owner_sessions::a_mail, *};

const MONTH: std::time::Duration = std::time::Duration::from_hours(30 * 24);

/// A report about the first key of an application, with these places and this time.
fn leak(id: ApplicationId, places: &[&str], at: Wall, expires_at: Option<Wall>) -> StoreChange {
    let key = first_key(id);
    let report = LeakReport {
        digest: key.digest,
        shown: key.shown,
        places: places.iter().map(|place| (*place).to_owned()).collect(),
        since: at.minus(3 * MONTH),
        expires_at,
        mail: a_mail(&format!("{id} {}", at.millis()), ""),
    };
    StoreChange {
        at,
        who: "secret scanning".into(),
        ..changing(id, ChangeKind::ReportLeak(report))
    }
}

async fn is_known(store: &Store, change: StoreChange) -> bool {
    match store.change(change).await {
        Ok(_) => false,
        Err(StoreError::Exists(_)) => true,
        Err(other) => panic!("{other}"),
    }
}

async fn expiry(store: &Store, id: ApplicationId) -> Option<Wall> {
    found(store, id).await.keys[0].expires_at
}

pub async fn a_leaked_key_is_revoked_with_a_mail_to_its_owner_and_a_record_of_each_place(
    store: &Store,
) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    sent(store, MailLane::Mail).await;
    let [a, b, c] = [
        "https://a.example/",
        "https://b.example/",
        "https://c.example/",
    ];
    let revoked = store.change(leak(id, &[a, b], NOON, None)).await;
    assert_eq!(revoked.unwrap().keys[0].revoked_at, Some(NOON));
    let later = NOON.plus(HOUR);
    assert!(is_known(store, leak(id, &[b], later, None)).await);
    assert!(!is_known(store, leak(id, &[b, c], later, None)).await);
    let mails = sent(store, MailLane::Mail).await;
    let [mail] = &mails[..] else {
        panic!("an email for each change to the key: {mails:?}")
    };
    assert!(mail.message_id.starts_with(&id.to_string()), "{mail:?}");
    assert_eq!(mail.recipient, "ann@example.org");
    let trail = &trail_of(store, id).await[..3];
    let key = first_key(id);
    let found_at = |place| {
        format!(
            "key {}, SHA-256 {}, found at {place}",
            key.shown, key.digest
        )
    };
    let details: Vec<_> = trail.iter().map(|record| record.detail.clone()).collect();
    assert_eq!(details, [c, b, a].map(found_at));
    let is_named = |record: &AuditRecord| {
        record.who == "secret scanning" && record.what == "revoke_leaked_key"
    };
    assert!(trail.iter().all(is_named), "{trail:?}");
    assert!(
        !is_known(store, leak(created(store).await, &["x"], NOON, None)).await,
        "it has no owner"
    );
}

pub async fn a_place_is_known_for_its_time_and_a_report_never_extends_a_key(store: &Store) {
    let id = created(store).await;
    let hour_after = |at: Wall| Some(at.plus(HOUR));
    assert!(!is_known(store, leak(id, &["a"], NOON, hour_after(NOON))).await);
    assert_eq!(expiry(store, id).await, hour_after(NOON));
    let soon = NOON.plus(HOUR / 2);
    assert!(!is_known(store, leak(id, &["b"], soon, hour_after(soon))).await);
    assert_eq!(
        expiry(store, id).await,
        hour_after(NOON),
        "it expires sooner already"
    );

    let digests = vec![first_key(id).digest];
    make(store, id, ChangeKind::SetExpiry { digests, at: None }).await;
    for months in [1, 2] {
        let at = NOON.plus(months * MONTH);
        assert!(is_known(store, leak(id, &["a", "b"], at, hour_after(at))).await);
        assert!(
            is_known(store, leak(id, &["b"], at, None)).await,
            "by whichever action"
        );
    }
    assert_eq!(expiry(store, id).await, None, "it was reinstated");
    let at = NOON.plus(3 * MONTH);
    assert!(!is_known(store, leak(id, &["a"], at, hour_after(at))).await);
    assert_eq!(expiry(store, id).await, hour_after(at));
}

pub async fn of_concurrent_reports_of_a_place_one_changes_the_key(store: &Store) {
    let id = created(store).await;
    let known = join_all((0..8).map(|_| is_known(store, leak(id, &["a"], NOON, None)))).await;
    assert_eq!(known.iter().filter(|is_known| !**is_known).count(), 1);
}

pub async fn keys_are_found_with_their_applications(store: &Store) {
    let ids = [created(store).await, created(store).await];
    make(store, ids[0], ChangeKind::RevokeAll).await;
    let [one, other] = ids.map(|id| first_key(id).digest);
    let mut found = store
        .find_keys(vec![one, Digest::of("nobody's"), other])
        .await
        .unwrap();
    found.sort_unstable();
    let mut expected = vec![(one, ids[0]), (other, ids[1])];
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(store.find_keys(Vec::new()).await.unwrap(), []);
}
