//! The challenge of a webhook.

use super::*;

#[tokio::test]
async fn a_wrong_or_long_answer_to_the_challenge_does_not_activate_a_webhook() {
    let mut station = WebhookStation::start().await;
    for wrong in ["", "no", "{\"challenge\": \"no\"}"] {
        station.next().await.answer_with(wrong);
        station.finished().await;
        station.mail.pass(Duration::from_mins(1));
    }
    let message = station.next().await;
    let long = format!("{}{}", message.challenge(), " ".repeat(1_024));
    message.answer_with(&long);
    station.finished().await;
    station.mail.pass(Duration::from_mins(1));
    let message = station.next().await;
    let challenge = message.challenge();
    message.answer(format!("HTTP/1.1 201 Created\r\n\r\n{challenge}"));
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_none());
    station.mail.pass(Duration::from_mins(2));
    let message = station.next().await;
    let json = format!("{{\"challenge\": \"{}\"}}", message.challenge());
    message.answer_with(&json);
    station.finished().await;
    assert!(station.webhook().await.verified_at.is_some());
    let audited = "SELECT who || ' ' || what FROM audit WHERE what LIKE '%_webhook' ORDER BY id";
    assert_eq!(
        station.rows(audited),
        "test add_webhook\nwebhook challenge verify_webhook"
    );
}
