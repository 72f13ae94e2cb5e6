//! A store with rows in every exported table that is written by store calls.

use super::*;

/// Fills a store: applications with keys, own limits, grants and requests, a status page, and owners.
pub async fn fill(store: &Store) {
    for number in 0..3 {
        let mut creation = creating(an_id());
        let ChangeKind::Create {
            name, description, ..
        } = &mut creation.what
        else {
            unreachable!()
        };
        *name = format!("Station {number} \"ö\"\n");
        *description = Description::from_fn(|name| {
            (number > 0 || name != "url").then(|| "https://example.org/?a=b&c".into())
        });
        let id = store.change(creation).await.unwrap().id;
        let own = OwnLimits::NONE.with(LimitSetting::Day, 700 + number);
        let until = Some(NOON.plus(HOUR));
        make(store, id, limits_set(own, until)).await;
        if number == 0 {
            make(store, id, ChangeKind::RevokeAll).await;
        }
        units(store, asking(id, NOON.day(), 20 + number, 500)).await;
        for node in 1..=2 {
            let requests = answered(id, u64::from(number));
            store.record_requests(node, requests).await.unwrap();
        }
    }
    let minute = |ago| StatusMinute {
        minute: minute_of(NOON) - ago,
        is_ready: ago != 3,
        is_fresh: ago < 2,
    };
    let minutes = [9, 8, 3, 2, 1, 0].map(minute).to_vec();
    store.record_minutes(minutes).await.unwrap();
    posted(store, MessageSubject::New("Late \"scores\"".into())).await;
    let owner = signed_up(store, "Ann+\"ö\"@example.org").await.id;
    for _ in 0..2 {
        application_of(store, owner, 2).await;
    }
    for what in [
        OwnerChangeKind::SetTier(Some("pro".into())),
        OwnerChangeKind::SetLimits(LimitChanges::default().with(LimitSetting::OwnerDay, 900)),
        OwnerChangeKind::SetNotices(vec![MailKind::Quota80, MailKind::KeyExpires]),
        OwnerChangeKind::Suspend,
    ] {
        changed(store, owner, what).await;
    }
    signed_up(store, "bob@example.org").await;
}

/// Requests with two outcomes.
pub fn answered(application: ApplicationId, requests: u64) -> Vec<RequestTotal> {
    let total = |endpoint: &'static str, outcome, requests| RequestTotal {
        day: NOON.day(),
        application,
        endpoint: endpoint.into(),
        outcome,
        requests,
    };
    vec![
        total("provider_reliability", RequestOutcome::Ok, requests + 10),
        total("index", RequestOutcome::RateLimited, 1),
    ]
}

pub async fn posted(store: &Store, subject: MessageSubject) -> StatusMessage {
    let new = NewStatusMessage {
        at: NOON,
        who: "a test".into(),
        subject,
        state: Some(IncidentState::Monitoring),
        message: "One.\nTwo.".into(),
    };
    store.post_status(new).await.unwrap()
}
