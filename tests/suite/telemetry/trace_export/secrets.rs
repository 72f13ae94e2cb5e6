//! No data from a caller reaches a span unchanged.

use scoregate_base::keys::Digest;

use crate::world::{World, good};

use super::{MODELS, PARENT, TRACE, receiver::Collector, sampled, with_flags};

#[tokio::test]
async fn no_key_header_or_text_of_a_request_is_in_its_spans() {
    let collector = Collector::start().await;
    let world = World::with(&collector.settings(1), good).await;
    let customer = world.paid().await;
    let key = &customer.key;
    for target in [
        format!("{MODELS}&key={key}&token=canary"),
        format!("/api/v1/models/{key}"),
        format!("/api/v1/models/{key}/history"),
        format!("/api/v1/{key}"),
        "/api/v1/canary?canary=1".to_owned(),
        "/api/v1/models/ca%6Eary%20?canary=canary".to_owned(),
    ] {
        let request = world.get(&target).key(key);
        let request = request
            .header("cookie", "session=canary")
            .header("user-agent", "canary");
        let request = request
            .header("x-request-id", key)
            .header("x-forwarded-for", "203.0.113.9");
        request
            .header("baggage", "user=canary")
            .header("tracestate", "canary=1")
            .send()
            .await;
    }
    assert!(world.running.stop().await.all_finished);
    let spans = collector.spans();
    assert!(spans.len() >= 6, "{spans:#?}");
    let text = collector.text();
    for secret in [key.as_str(), "canary", "203.0.113.9", "token"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[tokio::test]
async fn a_key_in_the_form_of_a_span_id_is_not_exported() {
    let collector = Collector::start().await;
    let token = "a-token-of-the-side-port";
    let settings = format!(
        "keys.accept_imported = true\nadmin.token = \"{token}\"\n{}",
        collector.settings(0)
    );
    let world = World::with(&settings, good).await;
    let customer = world.paid().await;
    for (key, target) in [(PARENT, MODELS), (TRACE, "/api/v1/index")] {
        let body = format!(
            r#"{{"keys":[{{"sha256":"{}","name":"imported","tier":"pro"}}]}}"#,
            Digest::of(key)
        );
        let headers = [("Authorization", &*format!("Bearer {token}"))];
        assert_eq!(
            world
                .side("POST", "/v1/keys/import", &body, &headers)
                .await
                .json()["imported"],
            1
        );
        assert_eq!(
            with_flags(world.get(target).key(key), "01")
                .send()
                .await
                .status,
            200
        );
        let received = world.backend.received().pop().unwrap();
        assert!(received.target().starts_with(target), "{received:?}");
        assert!(!format!("{received:?}").contains(key), "{received:?}");
    }
    assert_eq!(sampled(&world, &customer, MODELS).send().await.status, 200);
    let spans = collector.has_spans(&world, 1).await;
    assert_eq!(spans.len(), 1);
}
