//! Status of the upstream on the side port.
//!
//! The protection itself is in `protection`, the refresh schedule in `refreshing`.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{
    backend::respond,
    world::{NOON, World, good},
};

const TOKEN: &str = "a-token-of-the-side-port";
const WITH_TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"\n";
/// Time until a failed fetch is retried.
const MOMENT: Duration = Duration::from_millis(500);

async fn upstream_status_json(world: &World) -> Value {
    let response = world
        .side(
            "GET",
            "/v1/upstream/show",
            "",
            &[("Authorization", &format!("Bearer {TOKEN}"))],
        )
        .await;
    assert_eq!(response.status, 200, "{}", response.fingerprint);
    response.json()
}

/// Checks the status against these members.
fn assert_status(response: &Value, members: &Value) {
    for (name, value) in members.as_object().unwrap() {
        assert_eq!(&response[name], value, "{name} in {response}");
    }
}

#[tokio::test]
async fn upstream_status_has_the_address_the_last_success_and_the_due_refresh() {
    let settings =
        format!("{WITH_TOKEN}[upstream]\nurl = \"{{backend}}\"\ncredential = \"service-secret\"");
    let world = World::with(&settings, good).await;
    let customer = world.paid().await;
    let start = upstream_status_json(&world).await;
    assert_status(
        &start,
        &json!({
            "address": world.backend.url(), "breaker": "closed", "retry_in_seconds": 0, "consecutive_failures": 0,
            "max_concurrent_requests": 2, "in_flight": 0, "queued": 0, "retries": 0, "last_failure": null, "last_success_at": null,
            "next_refresh_at": null, "refresh_overdue_seconds": 0,
        }),
    );
    assert!(!start.to_string().contains("service-secret"));
    world.get_as(&customer, "/api/v1/index").await;
    let next = json!({"last_success_at": NOON, "next_refresh_at": "2026-11-21T13:00:00Z"});
    assert_status(&upstream_status_json(&world).await, &next);
    world.pass(Duration::from_mins(90));
    assert_status(&upstream_status_json(&world).await, &next);
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"refresh_overdue_seconds": 1_800}),
    );
    // A 404 for an unknown model is a good response.
    assert_eq!(
        world
            .get_as(&customer, "/api/v1/models/nobody")
            .await
            .code(),
        "model_not_found"
    );
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"last_success_at": "2026-11-21T13:30:00Z", "last_failure": null}),
    );
}

#[tokio::test]
async fn upstream_status_has_the_open_breaker_its_retry_time_and_the_last_failure() {
    let world = World::with(WITH_TOKEN, |_| {
        respond("503 Service Unavailable", &[], "canary")
    })
    .await;
    let customer = world.paid().await;
    for failed in 1..=5 {
        assert_eq!(
            world
                .get_as(&customer, "/api/v1/models?period=7d&sortBy=price")
                .await
                .status,
            503
        );
        assert_status(
            &upstream_status_json(&world).await,
            &json!({"consecutive_failures": failed}),
        );
        if failed < 5 {
            world.pass(MOMENT);
        }
    }
    let failed = json!({
        "at": "2026-11-21T12:00:02Z",
        "document": "models period=7d sortBy=price",
        "reason": "backend returned status 503",
    });
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"breaker": "open", "retry_in_seconds": 1, "last_failure": failed}),
    );
    // Fetches skipped while the breaker is open do not count as failures.
    world.get_as(&customer, "/api/v1/index").await;
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"consecutive_failures": 5, "last_failure": failed}),
    );
    world.pass(Duration::from_secs(1));
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"breaker": "half_open", "retry_in_seconds": 0, "last_success_at": null}),
    );
    world.backend.set_script(good);
    assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
    assert_status(
        &upstream_status_json(&world).await,
        &json!({
            "breaker": "closed", "consecutive_failures": 0, "last_failure": failed, "last_success_at": "2026-11-21T12:00:03Z",
        }),
    );
}

#[tokio::test]
async fn upstream_status_has_the_fetches_in_flight_and_queued() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.paid().await;
    world.backend.hold();
    let targets = (1..=5).map(|limit| format!("/api/v1/incidents?limit={limit}"));
    let targets: Vec<String> = targets.collect();
    let (responses, ()) = tokio::join!(
        join_all(targets.iter().map(|target| world.get_as(&customer, target))),
        async {
            world.backend.has_received(2).await;
            while upstream_status_json(&world).await["queued"] != 3 {
                tokio::task::yield_now().await;
            }
            assert_status(
                &upstream_status_json(&world).await,
                &json!({"in_flight": 2, "queued": 3}),
            );
            world.backend.open();
        }
    );
    assert!(responses.iter().all(|response| response.status == 200));
    world.settled().await;
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"in_flight": 0, "queued": 0}),
    );
}

#[tokio::test]
async fn without_probes_a_refresh_is_overdue_only_until_a_response_announces_the_next() {
    let world = World::with(WITH_TOKEN, good).await;
    let customer = world.paid().await;
    world.get_as(&customer, "/api/v1/index").await;
    world.pass(Duration::from_mins(61));
    world.running.gateway().engine.sweep();
    assert_eq!(world.counted("scoregate_refresh_overdue_seconds").await, 60);
    world.get_as(&customer, "/api/v1/index").await;
    world.settled().await;
    world.running.gateway().engine.sweep();
    assert_eq!(world.counted("scoregate_refresh_overdue_seconds").await, 0);
}

#[tokio::test]
async fn upstream_status_names_the_builtin_backend() {
    let world = World::with(&format!("upstream = \"built-in\"\n{WITH_TOKEN}"), good).await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
    assert_status(
        &upstream_status_json(&world).await,
        &json!({"address": "built-in", "breaker": "closed", "last_success_at": NOON}),
    );
}
