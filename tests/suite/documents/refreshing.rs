//! Freshness by refresh: the backend is polled at the refresh interval, and documents in use are fresh soon after a
//! refresh, without any request waiting for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    backend::{Act, Received, json, respond},
    client::Response,
    world::{Customer, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const INDEX: &str = "/api/v1/index";
const ALERTS: &str = "/api/v1/alerts";
const PROVIDERS: &str = "/api/v1/providers";
const HOUR: Duration = Duration::from_hours(1);
const PROBING: &str = "freshness.probe = true\n";

/// A backend with numbered data and a matching entity tag. The alerts never change.
#[derive(Clone, Default)]
struct Numbered(Arc<AtomicU64>);

impl Numbered {
    fn respond(&self, received: &Received) -> Act {
        let is_alerts = received.target().contains("alerts");
        let number = if is_alerts {
            0
        } else {
            self.0.load(Ordering::Relaxed)
        };
        let tag = format!("\"v{number}\"");
        if received
            .headers
            .contains(&("if-none-match".into(), tag.clone()))
        {
            return Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into());
        }
        let hour = 12 + number;
        let body = format!(
            r#"{{"generated_at":"2026-11-21T{hour:02}:00:00Z","data":[{{"id":"atlas","currentScore":{number}}}]}}"#
        );
        respond(
            "200 OK",
            &[("etag", &tag), ("content-type", "application/json")],
            &body,
        )
    }

    fn refresh(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Data with this timestamp, which its item has too.
fn dated(instant: &str, received: &Received) -> String {
    format!(
        r#"{{"generated_at":"{instant}","data":[{{"id":"{}","at":"{instant}"}}]}}"#,
        received.target().len()
    )
}

async fn numbered(settings: &str) -> (World, Customer, Numbered) {
    let backend = Numbered::default();
    let script = backend.clone();
    let world = World::with(&format!("{PROBING}{settings}"), move |received| {
        script.respond(received)
    })
    .await;
    let customer = world.paid().await;
    (world, customer, backend)
}

fn score(response: &Response) -> u64 {
    response.json()["data"][0]["currentScore"].as_u64().unwrap()
}

/// Advances the clock and waits for the resulting probe.
async fn advance(world: &World, time: Duration) {
    let before = world.backend.received().len();
    world.pass(time);
    world.backend.has_received(before + 1).await;
    world.settled().await;
}

#[tokio::test]
async fn an_overdue_refresh_is_polled_at_growing_intervals_and_detected_when_it_occurs() {
    let (world, customer, backend) = numbered("").await;
    assert_eq!(score(&world.get_as(&customer, MODELS).await), 0);
    advance(&world, HOUR).await;
    for seconds in [5, 10, 20, 40, 60, 60] {
        world.pass(Duration::from_secs(seconds - 1));
        world.settled().await;
        let before = world.backend.received().len();
        advance(&world, Duration::from_secs(1)).await;
        assert_eq!(
            world.backend.received().len(),
            before + 1,
            "after {seconds} s"
        );
    }
    let stale = world.get_as(&customer, MODELS).await;
    assert!(
        stale.header("cache-status").ends_with("detail=stale"),
        "{}",
        stale.header("cache-status")
    );
    world.running.gateway().engine.sweep();
    assert_eq!(
        world.counted("scoregate_refresh_overdue_seconds").await,
        195
    );
    assert_eq!(world.counted("scoregate_refreshes_total").await, 0);
    backend.refresh();
    advance(&world, Duration::from_mins(1)).await;
    world.running.gateway().engine.sweep();
    assert_eq!(world.counted("scoregate_refresh_overdue_seconds").await, 0);
    assert_eq!(world.counted("scoregate_refreshes_total").await, 1);
    let already_received = world.backend.received().len();
    let fresh = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (score(&fresh), world.backend.received().len()),
        (1, already_received),
        "no request waited for it"
    );
    assert!(
        !fresh.header("cache-status").contains("stale"),
        "{}",
        fresh.header("cache-status")
    );
}

#[tokio::test]
async fn an_early_refresh_is_detected_within_five_minutes() {
    let (world, customer, backend) = numbered("").await;
    for target in [MODELS, INDEX] {
        assert_eq!(score(&world.get_as(&customer, target).await), 0);
    }
    backend.refresh();
    let already_received = world.backend.received().len();
    world.pass(Duration::from_mins(5));
    world.backend.has_received(already_received + 2).await;
    world.settled().await;
    for target in [MODELS, INDEX] {
        let response = world.get_as(&customer, target).await;
        assert_eq!(score(&response), 1, "{target}");
        assert!(
            response
                .header("cache-status")
                .starts_with("scoregate; hit; ttl="),
            "{target}"
        );
    }
}

#[tokio::test]
async fn after_a_refresh_documents_in_use_are_refreshed_most_used_first() {
    let settings = "[upstream]\nurl = \"{backend}\"\nmax_concurrent_requests = 1";
    let (world, customer, backend) = numbered(settings).await;
    for (target, uses) in [(PROVIDERS, 2), (MODELS, 5), (ALERTS, 1), (INDEX, 3)] {
        for _ in 0..uses {
            world.get_as(&customer, target).await;
        }
    }
    let before = world.backend.received().len();
    backend.refresh();
    world.pass(HOUR);
    world.backend.has_received(before + 4).await;
    world.settled().await;
    let order: Vec<String> = world.backend.received()[before..]
        .iter()
        .map(|received| received.target().to_owned())
        .collect();
    for (already_received, wanted) in order.iter().zip(["models", "index", "providers", "alerts"]) {
        assert!(already_received.contains(wanted), "{order:?}");
    }
    for target in [MODELS, INDEX, PROVIDERS, ALERTS] {
        let response = world.get_as(&customer, target).await;
        let wanted = u64::from(target != ALERTS);
        assert_eq!(
            (score(&response), response.header("cache-status")),
            (wanted, "scoregate; hit; ttl=3600"),
            "{target}"
        );
    }
}

#[tokio::test]
async fn an_overdue_refresh_detected_by_a_request_s_fetch_applies_to_all_documents() {
    let (world, customer, backend) = numbered("").await;
    // Probes request the most used document.
    for target in [INDEX, MODELS, MODELS, MODELS, MODELS] {
        world.get_as(&customer, target).await;
    }
    advance(&world, HOUR).await;
    for seconds in [5, 10, 20, 40] {
        advance(&world, Duration::from_secs(seconds)).await;
    }
    // From here on, a caller requests this document a second before each probe.
    world.pass(Duration::from_secs(59));
    world.get_as(&customer, INDEX).await;
    world.settled().await;
    advance(&world, Duration::from_secs(1)).await;
    let before = world.backend.received().len();
    backend.refresh();
    world.pass(Duration::from_secs(59));
    world.settled().await;
    assert_eq!(world.backend.received().len(), before, "it is not time yet");
    world.get_as(&customer, INDEX).await;
    world.backend.has_received(before + 2).await;
    world.settled().await;
    for target in [MODELS, INDEX] {
        assert_eq!(score(&world.get_as(&customer, target).await), 1, "{target}");
    }
    assert_eq!(world.counted("scoregate_refreshes_total").await, 1);
    assert_eq!(
        world.backend.received().len(),
        before + 2,
        "each document was fetched once"
    );
}

#[tokio::test]
async fn after_a_detected_refresh_data_of_any_age_is_fresh_until_the_next() {
    let world = World::with(PROBING, |received| {
        json(&dated("2026-11-21T09:00:00Z", received))
    })
    .await;
    let customer = world.paid().await;
    for target in [INDEX, MODELS, MODELS] {
        assert_eq!(
            world.get_as(&customer, target).await.status,
            200,
            "{target}"
        );
    }
    // The new data is already overdue, so the backend is probed immediately.
    world.backend.has_received(3).await;
    world.settled().await;
    world
        .backend
        .set_script(|received| json(&dated("2026-11-21T10:00:00Z", received)));
    let already_received = world.backend.received().len();
    world.pass(Duration::from_mins(1));
    world.backend.has_received(already_received + 2).await;
    world.settled().await;
    for target in [INDEX, MODELS] {
        let response = world.get_as(&customer, target).await;
        assert_eq!(
            response.header("cache-status"),
            "scoregate; hit; ttl=3600",
            "{target}"
        );
        assert_eq!(response.json()["generated_at"], "2026-11-21T10:00:00Z");
    }
}

#[tokio::test]
async fn after_a_refresh_detected_late_each_document_is_fetched_once() {
    let (world, customer, backend) = numbered("").await;
    for target in [INDEX, MODELS, MODELS] {
        assert_eq!(world.get_as(&customer, target).await.status, 200);
    }
    backend.refresh();
    let already_received = world.backend.received().len();
    world.backend.hold();
    world.pass(HOUR);
    world.backend.has_received(already_received + 1).await;
    world.pass(Duration::from_secs(9));
    world.backend.open();
    world.backend.has_received(already_received + 2).await;
    world.settled().await;
    for target in [INDEX, MODELS] {
        let response = world.get_as(&customer, target).await;
        assert_eq!(
            (score(&response), response.header("cache-status")),
            (1, "scoregate; hit; ttl=3591"),
            "{target}"
        );
    }
    assert_eq!(world.backend.received().len(), already_received + 2);
}

#[tokio::test]
async fn unused_documents_are_not_refreshed() {
    let (world, customer, backend) = numbered("").await;
    world.get_as(&customer, INDEX).await;
    for _ in 0..4 {
        world.get_as(&customer, MODELS).await;
    }
    for _ in 0..4 {
        world.get_as(&customer, MODELS).await;
        backend.refresh();
        advance(&world, HOUR).await;
    }
    assert_eq!(
        world.backend.count(INDEX),
        2,
        "at first, and after one refresh"
    );
    assert_eq!(world.backend.count("/api/v1/models"), 5);
}

#[tokio::test]
async fn an_endpoint_with_its_own_time_to_live_expires_by_it_and_not_by_refreshes() {
    let settings = "[freshness.index]\nttl = \"5m\"\nstale_while_revalidate = \"10m\"\nstale_if_error = \"1h\"";
    let (world, customer, backend) = numbered(settings).await;
    for target in [MODELS, INDEX] {
        world.get_as(&customer, target).await;
    }
    let status = async |expected: &str| {
        assert_eq!(
            world.get_as(&customer, INDEX).await.header("cache-status"),
            expected
        );
    };
    status("scoregate; hit; ttl=300").await;
    world.pass(Duration::from_secs(299));
    backend.refresh();
    world.pass(Duration::from_secs(1));
    status("scoregate; hit; ttl=0; detail=stale").await;
    world.settled().await;
    status("scoregate; hit; ttl=300").await;
    assert_eq!(score(&world.get_as(&customer, INDEX).await), 1);
    world
        .backend
        .set_script(|_| respond("503 Service Unavailable", &[], ""));
    world.pass(Duration::from_mins(16));
    status("scoregate; hit; ttl=-660; detail=stale").await;
    assert_eq!(
        world
            .counted("scoregate_documents_served_total{outcome=\"stale_on_error\"}")
            .await,
        1
    );
    world.pass(Duration::from_mins(50));
    assert_eq!(
        world.get_as(&customer, INDEX).await.status,
        503,
        "its stale window has ended"
    );
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
}
