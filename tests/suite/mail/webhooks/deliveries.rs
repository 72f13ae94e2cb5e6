//! Notices to webhooks: signed, repeated with their ids, removed.

use super::*;

#[tokio::test]
async fn a_receiver_that_answered_its_challenge_gets_signed_notices() {
    let mut station = WebhookStation::start().await;
    station.queue_notice().await;
    assert_eq!(
        station.queued(),
        "1",
        "only the challenge: it is not active"
    );
    let message = station.next().await;
    assert!(message.header("webhook-signature") == message.signature(b"first"));
    let challenge = message.challenge();
    message.answer_with(&format!(" {challenge}\n"));
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_some());
    assert_eq!(station.queued(), "0");

    let notice = NewMail {
        webhook: BODY.into(),
        ..station.mail.mail("another")
    };
    station.mail.store.queue_once(vec![notice]).await.unwrap();
    let message = station.next().await;
    assert!(
        message.head.starts_with("POST /in?x=1 HTTP/1.1\r\n"),
        "{}",
        message.head
    );
    assert_eq!(message.header("host"), "hooks.example.org:8443");
    assert_eq!(message.header("content-type"), "application/json");
    assert_eq!(message.header("webhook-id"), "another");
    let seconds = station.mail.clock.now().wall.seconds().to_string();
    assert_eq!(message.header("webhook-timestamp"), seconds);
    assert_eq!(
        message.header("webhook-signature"),
        message.signature(b"first")
    );
    assert_eq!(
        (message.body.as_str(), message.server_name.as_deref()),
        (BODY, Some(HOST))
    );
    message.answer(OK);
    station.finished().await;
    assert_eq!(station.queued(), "0");
    let connected = station.network.connected.lock().unwrap().clone();
    assert_eq!(
        connected,
        [PUBLIC.parse().unwrap(); 2],
        "the addresses that were checked"
    );
    let sent = "scoregate_mails_total{kind=\"webhook\",result=\"sent\"}";
    assert_eq!(station.mail.gauge(sent), 2);
}

#[tokio::test]
async fn a_message_is_repeated_with_its_id_until_it_is_answered_in_time() {
    let mut station = WebhookStation::verified().await;
    station.queue_notice().await;
    let mut late = Vec::new();
    for expected in [
        "no response within 10 s",
        "response with status 302",
        "closed before a response",
        "",
    ] {
        let message = station.next().await;
        assert_eq!(
            (message.header("webhook-id"), message.body.as_str()),
            (NOTICE, BODY)
        );
        assert_eq!(
            message.header("webhook-signature"),
            message.signature(b"first")
        );
        match expected {
            "no response within 10 s" => {
                station.mail.pass(Duration::from_secs(10));
                late.push(message);
            }
            "response with status 302" => {
                message
                    .answer("HTTP/1.1 302 Found\r\nLocation: https://hooks.example.org/\r\n\r\n");
            }
            "closed before a response" => drop(message),
            _ => message.answer(OK),
        }
        station.finished().await;
        let error = station.last_failure().await;
        assert!(error.contains(expected), "{error}");
        station.mail.pass(Duration::from_mins(1));
    }
    assert_eq!(station.queued(), "0");
    assert!(
        station.received.try_recv().is_err(),
        "no redirect was followed"
    );
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let mut station = WebhookStation::verified().await;
    station
        .change(WebhookChange::Rotate(secret("second")))
        .await;
    for (pause, signs) in [(23, true), (1, false)] {
        station.mail.pass(Duration::from_hours(pause));
        let id = format!("after.{pause}");
        let expires_at = station.mail.clock.now().wall.plus(Duration::from_hours(1));
        let notice = NewMail {
            webhook: BODY.into(),
            expires_at,
            ..station.mail.mail(&id)
        };
        station.mail.store.queue_once(vec![notice]).await.unwrap();
        let message = station.next().await;
        let [new, old] = [b"second".as_slice(), b"first"].map(|key| message.signature(key));
        let expected = if signs { format!("{new} {old}") } else { new };
        assert_eq!(message.header("webhook-signature"), expected);
        message.answer(OK);
        station.finished().await;
    }
}

#[tokio::test]
async fn messages_expire_and_those_of_removed_webhooks_and_accounts_are_deleted() {
    let station = WebhookStation::verified().await;
    station.queue_notice().await;
    station.mail.pass(Duration::from_hours(72));
    station.failure().await;
    assert_eq!(station.queued(), "0", "expired");
    let expired = "scoregate_mails_total{kind=\"webhook\",result=\"expired\"}";
    assert_eq!(station.mail.gauge(expired), 1);
    for change in [
        OwnerChangeKind::Webhook {
            id: WEBHOOK.into(),
            change: WebhookChange::Remove,
        },
        OwnerChangeKind::Delete { in_own_name: true },
    ] {
        let station = WebhookStation::verified().await;
        station.queue_notice().await;
        assert_eq!(station.queued(), "1");
        station.change_owner(change).await;
        assert_eq!(station.queued(), "0");
        assert_eq!(station.rows("SELECT count(*) FROM owner_webhooks"), "0");
    }
}
