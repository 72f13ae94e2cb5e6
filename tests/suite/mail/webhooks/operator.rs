//! Messages to the operator's webhook, which may have a private address.

use serde_json::{Value, json};

use super::*;

const ABOUT: &str = "own_0Ab3dEf7hIj";

impl WebhookStation {
    /// A station with a message to the operator instead of the challenge.
    async fn for_operator() -> Self {
        let station = Self::verified().await;
        station.queue_to_operator().await;
        station
    }

    async fn queue_to_operator(&self) {
        let now = self.mail.clock.now().wall;
        let message = NewMail::to_operator("sign_up", ABOUT, &json!({"owner": ABOUT}), now);
        self.mail.store.queue_once(vec![message]).await.unwrap();
    }

    fn operator_worker(&self, url: &str) -> WebhookSender {
        let url = WebhookUrl::of_operator(url).unwrap();
        let secret = SecretSetting::fixed(secret("operator"));
        self.worker_with(Some(OperatorWebhook { url, secret }))
    }

    /// The next message, which must be signed with the operator's secret.
    async fn next_to_operator(&mut self) -> ReceivedMessage {
        let message = self.next_of(self.operator_worker(URL)).await;
        assert_eq!(message.header("webhook-id"), format!("sign_up.{ABOUT}"));
        assert_eq!(
            message.header("webhook-signature"),
            message.signature(b"operator")
        );
        message
    }

    /// Accepts a message, which is then no longer in the queue.
    async fn accept(&mut self, message: ReceivedMessage) {
        message.answer(OK);
        self.finished().await;
        assert_eq!(self.queued(), "0");
    }
}

#[tokio::test]
async fn a_host_of_the_operator_may_be_private_and_gets_signed_messages_over_tls() {
    let mut station = WebhookStation::for_operator().await;
    let private = "10.0.0.7:8443".parse().unwrap();
    *station.network.addresses.lock().unwrap() = vec![private];
    let message = station.next_to_operator().await;
    assert_eq!(message.server_name.as_deref(), Some(HOST));
    assert!(
        message.head.starts_with("POST /in?x=1 HTTP/1.1\r\n"),
        "{}",
        message.head
    );
    let body: Value = serde_json::from_str(&message.body).unwrap();
    let timestamp = station.mail.clock.now().wall.rfc3339();
    assert_eq!(
        body,
        json!({"type": "sign_up", "timestamp": timestamp, "data": {"owner": ABOUT}})
    );
    assert_eq!(
        station.network.connected.lock().unwrap().last(),
        Some(&private)
    );
    station.accept(message).await;
}

#[tokio::test]
async fn a_receiver_of_the_operator_without_tls_gets_messages_over_a_real_network() {
    let mut station = WebhookStation::for_operator().await;
    let (address, received) = clear_receiver().await;
    station.received = received;
    let network = Arc::new(PublicInternet);
    let tls = Arc::clone(&station.tls);
    let client = WebhookClient::new(network, tls, station.mail.clock.clone());
    let url = WebhookUrl::of_operator(&format!("http://{address}/in")).unwrap();
    let operator = OperatorWebhook {
        url,
        secret: SecretSetting::fixed(secret("operator")),
    };
    let message = station
        .next_of(station.sender(client, Some(operator)))
        .await;
    assert_eq!(message.header("host"), address.to_string());
    assert_eq!(
        message.header("webhook-signature"),
        message.signature(b"operator")
    );
    station.accept(message).await;
}

#[tokio::test]
async fn a_gateway_without_the_webhook_leaves_the_message_to_one_that_has_it() {
    let mut station = WebhookStation::for_operator().await;
    station
        .worker()
        .send_due(&CancellationToken::new())
        .await
        .unwrap();
    assert_eq!(station.queued(), "1");
    assert!(station.received.try_recv().is_err());
    station.mail.pass(Duration::from_mins(1));
    let message = station.next_to_operator().await;
    station.accept(message).await;
}
