//! Slow receivers and endless responses delay neither other owners nor the operator.

#![expect(clippy::print_stdout, reason = "a test prints its table")]

use serde_json::json;

use super::*;

/// Longest wait for the end of a delivery: a test fails instead of hanging.
const MAX_WAIT: Duration = Duration::from_secs(30);

impl WebhookStation {
    /// Adds a webhook, with a challenge that is due at this time.
    async fn add(&self, owner: OwnerId, id: &str, url: &str, at: Wall) {
        let what = OwnerChangeKind::Webhook {
            id: id.into(),
            change: WebhookChange::Add {
                url: url.into(),
                secret: secret("first"),
                challenge: Box::new(challenge(id, at).unwrap()),
            },
        };
        let change = OwnerChange {
            at,
            who: "test".into(),
            owner,
            what,
        };
        self.mail.store.change_owner(change).await.unwrap();
    }

    /// Queues a message to a webhook.
    async fn queue_to(&self, webhook: &str, id: &str) {
        let message = NewMail {
            kind: MailKind::Webhook,
            recipient: webhook.into(),
            subject: String::new(),
            message_id: format!("{id}@{webhook}"),
            ..self.mail.mail(id)
        };
        self.mail.store.queue_mail(vec![message]).await.unwrap();
    }

    /// The next message. The clock advances by a second whenever both lanes wait for it.
    async fn after_a_second(&mut self) -> ReceivedMessage {
        loop {
            if let Ok(message) = self.received.try_recv() {
                return message;
            }
            if self.mail.manual_clock.waiters() == 2 {
                self.mail.pass(Duration::from_secs(1));
            }
            tokio::task::yield_now().await;
        }
    }

    /// A worker on the real clock. The receiver also gets the operator's messages.
    fn real_worker(&self) -> WebhookSender {
        let network = Arc::clone(&self.network) as Arc<dyn WebhookNetwork>;
        let clock = Clock::system();
        let client = WebhookClient::new(network, Arc::clone(&self.tls), clock.clone());
        let operator = OperatorWebhook {
            url: WebhookUrl::of_operator(URL).unwrap(),
            secret: SecretSetting::fixed(secret("operator")),
        };
        let store = self.mail.store.clone();
        let instruments = Arc::clone(&self.mail.instruments);
        WebhookSender::new(store, client, Some(operator), clock, instruments)
    }
}

/// The time until a message to another owner and one to the operator have arrived, while each slow owner has two slow
/// receivers.
async fn delay_beside(slow_owners: usize) -> Duration {
    let mut station = WebhookStation::start().await;
    station.change(WebhookChange::Remove).await;
    let clock = Clock::system();
    for number in 0..slow_owners {
        let owner = sign_up_as(&station.mail, &format!("slow{number}@example.org")).await;
        for host in ["a", "b"] {
            let url = format!("https://slow-{host}.example{number}.net/");
            station
                .add(
                    owner,
                    &format!("slow_{host}_{number}"),
                    &url,
                    clock.now().wall,
                )
                .await;
        }
    }
    let stop = CancellationToken::new();
    let worker = tokio::spawn(station.real_worker().run(stop.clone()));
    let mut waiting = station.network.waiting.subscribe();
    let all = waiting.wait_for(|waiting| *waiting >= 2 * slow_owners);
    all.await.unwrap();
    let begun = clock.now();
    station.add(station.owner, "honest", URL, begun.wall).await;
    let to_operator = NewMail::to_operator("sign_up", "own_1", &json!({}), begun.wall);
    station
        .mail
        .store
        .queue_once(vec![to_operator])
        .await
        .unwrap();
    for _ in 0..2 {
        let arrives = clock.within(MAX_WAIT, station.received.recv());
        arrives.await.expect("in time").unwrap().answer(OK);
    }
    let delay = clock.mono().since(begun.mono);
    worker.abort();
    delay
}

#[tokio::test]
async fn an_honest_message_leaves_within_5_s_beside_1_and_10_and_100_slow_owners() {
    let mut table = String::from(
        "| Slow owners | Time until a message to another owner and one to the operator have arrived |\n|---:|---:|\n",
    );
    for slow_owners in [1, 10, 100] {
        let delay = delay_beside(slow_owners).await;
        table.push_str(&format!("| {slow_owners} | {} ms |\n", delay.as_millis()));
        assert!(delay < Duration::from_secs(5), "{table}");
    }
    println!("{table}");
}

#[tokio::test]
async fn an_answer_without_end_to_a_challenge_is_left_before_the_deadline() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n";
    let bodies = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (first, again) in [
        (interim, interim),
        ("HTTP/1.1 200 OK\r\n", "X-Field: value\r\n"),
        ("HTTP/1.1 200 OK\r\nX-Field: ", "value"),
        (bodies, "5\r\nvalue\r\n"),
    ] {
        let mut station = WebhookStation::start().await;
        let message = station.next().await;
        // The worker's clock stands still, so no deadline ends the exchange.
        let ended =
            async { tokio::join!(message.answer_without_end(first, again), station.finished()) };
        let ended = Clock::system().within(MAX_WAIT, ended).await;
        assert!(ended.is_ok(), "{again:?} is read without end");
        assert_ne!(station.last_failure().await, "", "{again:?}");
        assert!(station.webhook().await.verified_at.is_none());
    }
}

#[tokio::test]
async fn an_answer_that_arrives_byte_by_byte_ends_at_the_deadline() {
    let mut station = WebhookStation::start().await;
    let message = station.next().await;
    message
        .reply
        .send("HTTP/1.1 200 OK\r\nX-Field: ".into())
        .await
        .unwrap();
    for _ in 0..10 {
        assert!(!station.sending.as_ref().unwrap().is_finished());
        message.reply.send("x".into()).await.unwrap();
        station.mail.pass(Duration::from_secs(1));
    }
    station.finished().await;
    assert_eq!(station.last_failure().await, "no response within 10 s");
}

#[tokio::test]
async fn a_receiver_that_fails_rests_while_another_gets_its_messages() {
    let mut station = WebhookStation::start().await;
    let worker = tokio::spawn(station.worker().run(CancellationToken::new()));
    drop(station.received.recv().await.unwrap());
    while station.last_failure().await.is_empty() {
        tokio::task::yield_now().await;
    }
    station.queue_to(WEBHOOK, "waits").await;
    let in_an_hour = station.mail.clock.now().wall.plus(Duration::from_hours(1));
    station.add(station.owner, "hook_2", URL, in_an_hour).await;
    let others = station.queued();
    for number in 0..2 {
        let id = format!("other.{number}");
        station.queue_to("hook_2", &id).await;
        let message = station.after_a_second().await;
        assert_eq!(message.header("webhook-id"), id, "the first one rests");
        message.answer(OK);
        while station.queued() != others {
            tokio::task::yield_now().await;
        }
    }
    station.after_a_second().await;
    worker.abort();
}
