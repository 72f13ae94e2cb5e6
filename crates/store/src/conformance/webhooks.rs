//! Conformance checks of webhooks.

use scoregate_base::secret::Secret;

use super::{owner_sessions::a_mail, *};

const BODY: &str = "{\"type\":\"key_changed\"}";

async fn change(store: &Store, owner: OwnerId, id: &str, change: WebhookChange) {
    changed(
        store,
        owner,
        OwnerChangeKind::Webhook {
            id: id.into(),
            change,
        },
    )
    .await;
}

fn added(id: &str) -> WebhookChange {
    let challenge = NewMail {
        kind: MailKind::Webhook,
        subject: "token".into(),
        ..a_mail(&format!("challenge@{id}"), id)
    };
    WebhookChange::Add {
        url: "https://hooks.example.org/".into(),
        secret: Secret::new(format!("whsec_{id}")),
        challenge: Box::new(challenge),
    }
}

/// Two owners, and three webhooks that are not verified.
async fn three_webhooks(store: &Store) -> [OwnerId; 2] {
    let ann = signed_up(store, "ann@example.org").await.id;
    let bob = signed_up(store, "bob@example.org").await.id;
    for (owner, id) in [(ann, "hook_1"), (ann, "hook_2"), (bob, "hook_3")] {
        change(store, owner, id, added(id)).await;
    }
    [ann, bob]
}

pub async fn verified_webhooks_get_a_notice_once_beside_the_mail(store: &Store) {
    let [ann, bob] = three_webhooks(store).await;
    let third = OwnerChangeKind::Webhook {
        id: "hook_4".into(),
        change: added("hook_4"),
    };
    let refused = attempted(store, ann, third).await.unwrap_err();
    assert!(matches!(refused, StoreError::Exists(_)), "{refused}");
    let challenges = sent(store, MailLane::Owners).await;
    assert_eq!(challenges.len(), 3);
    for (owner, id) in [(ann, "hook_1"), (bob, "hook_2"), (bob, "hook_3")] {
        change(store, owner, id, WebhookChange::Verify).await;
    }
    let states = |webhooks: Vec<StoredWebhook>| -> Vec<_> {
        webhooks
            .into_iter()
            .map(|webhook| (webhook.id, webhook.verified_at))
            .collect()
    };
    let of_ann = states(store.webhooks(ann.to_string()).await.unwrap());
    assert_eq!(
        of_ann,
        [("hook_1".to_owned(), Some(NOON)), ("hook_2".into(), None)],
        "bob's change is not hers"
    );
    assert_eq!(
        states(store.webhooks("hook_3".into()).await.unwrap()).len(),
        1
    );

    let before = queued(store).await;
    let notice = NewMail {
        webhook: BODY.into(),
        ..a_mail("one@a.example", "ann@example.org")
    };
    for _ in 0..2 {
        store.queue_once(vec![notice.clone()]).await.unwrap();
    }
    store
        .queue_once(vec![a_mail("two@a.example", "ann@example.org")])
        .await
        .unwrap();
    assert_eq!(
        queued(store).await,
        before + 2,
        "messages to webhooks are not counted"
    );
    let messages = sent(store, MailLane::Owners).await;
    let [message] = &messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!(
        [&message.recipient, &message.message_id, &message.text],
        ["hook_1", "one@hook_1", BODY]
    );
}

pub async fn webhooks_are_rotated_and_removed_with_their_messages(store: &Store) {
    let [ann, _] = three_webhooks(store).await;
    let rotate = WebhookChange::Rotate(Secret::new("new".into()));
    change(store, ann, "hook_1", rotate).await;
    let webhook = store.webhooks("hook_1".into()).await.unwrap().remove(0);
    let secrets = |now| {
        webhook
            .secrets(now)
            .map(|secret| secret.expose().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(secrets(NOON.plus(23 * HOUR)), ["new", "whsec_hook_1"]);
    assert_eq!(secrets(NOON.plus(24 * HOUR)), ["new"]);
    change(store, ann, "hook_3", WebhookChange::Remove).await;
    change(store, ann, "hook_2", WebhookChange::Remove).await;
    changed(store, ann, OwnerChangeKind::Delete { in_own_name: true }).await;
    assert!(store.webhooks(ann.to_string()).await.unwrap().is_empty());
    let left = sent(store, MailLane::Owners).await;
    let left: Vec<&str> = left.iter().map(|mail| mail.recipient.as_str()).collect();
    assert_eq!(left, ["hook_3"], "another owner cannot remove it");
}
