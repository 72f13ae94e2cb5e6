//! Lifetime of a document: fresh until the next refresh of the backend, stale while it is overdue, then expired.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    backend::{Act, json, respond},
    client::Response,
    world::{Customer, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const HOUR: Duration = Duration::from_hours(1);

fn data(generated_at: &str, score: u64) -> Act {
    json(&format!(
        r#"{{"generated_at":"{generated_at}","data":[{{"id":"atlas","currentScore":{score}}}]}}"#
    ))
}

fn max_age(response: &Response) -> u64 {
    response
        .header("cache-control")
        .strip_prefix("private, max-age=")
        .and_then(|age| age.strip_suffix(", stale-if-error=86400"))
        .unwrap()
        .parse()
        .unwrap()
}

fn score(response: &Response) -> u64 {
    response.json()["data"][0]["currentScore"].as_u64().unwrap()
}

/// A gateway whose backend increments a number in every response, with the given data timestamp.
async fn counting(settings: &str) -> (World, Customer) {
    let number = AtomicU64::new(0);
    let world = World::with(settings, move |_| {
        data(
            "2026-11-21T12:00:00Z",
            number.fetch_add(1, Ordering::Relaxed) + 1,
        )
    });
    let world = world.await;
    let customer = world.free().await;
    (world, customer)
}

#[tokio::test]
async fn max_age_is_the_time_to_the_next_refresh_plus_a_jitter_fixed_per_key() {
    let world = World::new().await;
    let mut jitters = BTreeSet::new();
    for _ in 0..12 {
        let customer = world.free().await;
        let jitter = max_age(&world.get_as(&customer, MODELS).await) - 3_600;
        assert!(jitter <= 120, "{jitter}");
        assert_eq!(
            max_age(&world.get_as(&customer, "/api/v1/index").await),
            3_600 + jitter
        );
        let etag = world
            .get_as(&customer, MODELS)
            .await
            .header("etag")
            .to_owned();
        let current = world
            .get(MODELS)
            .key(&customer.key)
            .header("If-None-Match", &etag)
            .send()
            .await;
        assert_eq!((current.status, max_age(&current)), (304, 3_600 + jitter));
        jitters.insert(jitter);
    }
    assert!(jitters.len() > 3, "clients are spread: {jitters:?}");
    let customer = world.free().await;
    let jitter = max_age(&world.get_as(&customer, MODELS).await) - 3_600;
    world.pass(Duration::from_millis(600_500));
    assert_eq!(
        max_age(&world.get_as(&customer, MODELS).await),
        3_000 + jitter,
        "rounded up"
    );
    world.pass(Duration::from_millis(2_999_499));
    assert_eq!(max_age(&world.get_as(&customer, MODELS).await), 1 + jitter);
}

#[tokio::test]
async fn an_overdue_document_is_served_at_once_as_stale_with_a_short_max_age() {
    let (world, customer) = counting("").await;
    world.get_as(&customer, MODELS).await;
    world.pass(HOUR);
    world.backend.hold();
    for _ in 0..3 {
        let stale = world.get_as(&customer, MODELS).await;
        assert_eq!((stale.status, score(&stale)), (200, 1));
        assert_eq!(
            stale.header("cache-status"),
            "scoregate; hit; ttl=0; detail=stale"
        );
        assert!((30..=60).contains(&max_age(&stale)));
    }
    world.backend.open();
    world.fetched(2).await;
    assert_eq!(
        world.backend.received().len(),
        2,
        "one refresh for all requests"
    );
    let fresh = world.get_as(&customer, MODELS).await;
    // The data is older than the overdue refresh, so the document stays overdue. The next fetch is delayed.
    assert_eq!(
        (score(&fresh), fresh.header("cache-status")),
        (2, "scoregate; hit; ttl=0; detail=stale")
    );
    world.pass(Duration::from_secs(59));
    world.get_as(&customer, MODELS).await;
    world.settled().await;
    assert_eq!(world.backend.received().len(), 2);
    assert_eq!(world.served("stale").await, 5);
}

#[tokio::test]
async fn a_refresh_with_the_same_data_keeps_bytes_etag_and_date() {
    let world = World::with("", |_| data("2026-11-21T12:00:00Z", 1)).await;
    let customer = world.free().await;
    let before = world.get_as(&customer, MODELS).await;
    world
        .backend
        .set_script(|_| data("2026-11-21T13:00:00Z", 1));
    world.pass(HOUR);
    assert!(
        world
            .get_as(&customer, MODELS)
            .await
            .header("cache-status")
            .contains("stale")
    );
    world.fetched(2).await;
    let after = world.get_as(&customer, MODELS).await;
    assert_eq!(
        after.header("cache-status"),
        "scoregate; hit; ttl=3600",
        "the document was refreshed"
    );
    for name in ["etag", "last-modified", "content-length"] {
        assert_eq!(after.header(name), before.header(name));
    }
    assert_eq!(after.body, before.body);
    assert_eq!(after.json()["generated_at"], "2026-11-21T12:00:00Z");

    world
        .backend
        .set_script(|_| data("2026-11-21T14:00:00Z", 2));
    world.pass(HOUR);
    world.get_as(&customer, MODELS).await;
    world.fetched(3).await;
    let changed = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (score(&changed), &changed.json()["generated_at"]),
        (2, &"2026-11-21T14:00:00Z".into())
    );
    assert_eq!(
        changed.header("last-modified"),
        "Sat, 21 Nov 2026 14:00:00 GMT"
    );
    assert_ne!(changed.header("etag"), before.header("etag"));
}

#[tokio::test]
async fn a_304_from_the_backend_keeps_the_document() {
    let world = World::with("", |_| {
        respond(
            "200 OK",
            &[
                ("etag", "\"v1\""),
                ("last-modified", "Sat, 21 Nov 2026 11:00:00 GMT"),
            ],
            r#"[{"id":"a"}]"#,
        )
    })
    .await;
    let customer = world.free().await;
    let before = world.get_as(&customer, MODELS).await;
    assert_eq!(before.json()["generated_at"], "2026-11-21T11:00:00Z");
    world.backend.set_script(|received| {
        assert!(
            received
                .headers
                .contains(&("if-none-match".into(), "\"v1\"".into()))
        );
        Act::Raw(b"HTTP/1.1 304 Not Modified\r\ncache-control: max-age=1800\r\n\r\n".into())
    });
    world.pass(HOUR);
    world.get_as(&customer, MODELS).await;
    world.fetched(2).await;
    let after = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (&after.body, after.header("cache-status")),
        (&before.body, "scoregate; hit; ttl=1800")
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"success\"}")
            .await,
        2
    );
}

#[tokio::test]
async fn the_data_timestamp_is_the_backend_s_then_its_date_then_the_newest_item_then_the_fetch() {
    let dated = ("last-modified", "Sat, 21 Nov 2026 10:00:00 GMT");
    let items = r#"[{"lastUpdated":"2026-11-21T08:00:00Z"},{"lastUpdated":"2026-11-21T09:00:00Z"},{"lastUpdated":"soon"}]"#;
    let stated = format!(r#"{{"generated_at":"2026-11-21T11:00:00Z","data":{items}}}"#);
    for (headers, body, expected) in [
        (&[dated][..], &*stated, "2026-11-21T11:00:00Z"),
        (&[dated], items, "2026-11-21T10:00:00Z"),
        (&[], items, "2026-11-21T09:00:00Z"),
        (&[], r#"[{"id":"a"}]"#, "2026-11-21T12:00:00Z"),
        (
            &[],
            r#"{"generated_at":"soon","data":[]}"#,
            "2026-11-21T12:00:00Z",
        ),
    ] {
        let world = World::new().await;
        let customer = world.free().await;
        world.backend.next(respond("200 OK", headers, body));
        let response = world.get_as(&customer, MODELS).await;
        assert_eq!(response.json()["generated_at"], expected, "{body}");
        let date = scoregate_base::clock::Wall::parse_rfc3339(expected)
            .unwrap()
            .http_date();
        assert_eq!(response.header("last-modified"), date);
    }
}

#[tokio::test]
async fn max_age_of_the_backend_is_the_time_to_the_next_refresh() {
    for (cache_control, ttl) in [
        ("max-age=900", 900),
        ("public, max-age=5, must-revalidate", 5),
        ("max-age=0", 3_600),
        ("no-cache", 3_600),
        ("max-age=soon", 3_600),
    ] {
        let world = World::new().await;
        let customer = world.free().await;
        let body = r#"{"generated_at":"2026-11-21T12:00:00Z","data":[]}"#;
        world
            .backend
            .next(respond("200 OK", &[("cache-control", cache_control)], body));
        world.get_as(&customer, MODELS).await;
        let hit = world.get_as(&customer, MODELS).await;
        assert_eq!(
            hit.header("cache-status"),
            format!("scoregate; hit; ttl={ttl}"),
            "{cache_control}"
        );
    }
}

#[tokio::test]
async fn after_failed_refreshes_a_document_is_served_until_the_stale_window_ends() {
    let settings = "freshness.stale_while_revalidate = \"2h\"\nfreshness.stale_if_error = \"10h\"";
    let (world, customer) = counting(settings).await;
    world.get_as(&customer, MODELS).await;
    world
        .backend
        .set_script(|_| respond("500 Internal Server Error", &[], ""));
    let mut calls = 1;
    for (hours, outcome) in [
        (1, "stale"),
        (1, "stale"),
        (2, "stale_on_error"),
        (6, "stale_on_error"),
    ] {
        world.pass(HOUR * hours);
        let before = world.served(outcome).await;
        let stale = world.get_as(&customer, MODELS).await;
        assert_eq!((stale.status, score(&stale)), (200, 1));
        assert!(stale.header("cache-status").ends_with("; detail=stale"));
        assert!((30..=60).contains(&max_age(&stale)));
        assert_eq!(
            world.served(outcome).await,
            before + 1,
            "{outcome} after {hours} h more"
        );
        calls += 1;
        world.fetched(calls).await;
    }
    world.pass(HOUR + Duration::from_secs(1));
    let not_found = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (not_found.status, not_found.code()),
        (503, "upstream_unavailable".into())
    );
    world
        .backend
        .set_script(|_| data("2026-11-21T23:00:00Z", 9));
    // The previous fetch was the fifth consecutive failure.
    world.pass(Duration::from_secs(1));
    assert_eq!(score(&world.get_as(&customer, MODELS).await), 9);
}

#[tokio::test]
async fn an_unknown_model_is_a_404_and_a_deleted_one_is_removed_from_the_cache() {
    let world = World::new().await;
    let customer = world.free().await;
    let unknown = world.get_as(&customer, "/api/v1/models/nobody").await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (404, "model_not_found".into())
    );
    assert_eq!(unknown.header("cache-control"), "no-store");
    let atlas = "/api/v1/models/atlas";
    assert_eq!(world.get_as(&customer, atlas).await.status, 200);
    let not_found = Arc::new(respond("404 Not Found", &[], "{}"));
    world.backend.set_script(move |_| Act::clone(&not_found));
    assert_eq!(
        world.get_as(&customer, atlas).await.status,
        200,
        "it is fresh"
    );
    world.pass(HOUR);
    assert_eq!(
        world.get_as(&customer, atlas).await.status,
        200,
        "it is stale, and fetched"
    );
    world.fetched(3).await;
    assert_eq!(
        world.get_as(&customer, atlas).await.code(),
        "model_not_found"
    );
    world.backend.set_script(crate::world::good);
    world.pass(Duration::from_mins(1));
    assert_eq!(
        world.get_as(&customer, atlas).await.status,
        200,
        "it exists again"
    );
    assert_eq!(world.refused("model_not_found").await, 2);
    let counted = world
        .counted("scoregate_upstream_requests_total{result=\"not_found\"}")
        .await;
    assert_eq!(counted, 2);
}

#[tokio::test]
async fn a_removed_document_uses_no_memory_after_ten_minutes_and_is_not_polled() {
    let settings = "[freshness.models]\nttl = \"1m\"\nstale_while_revalidate = \"1m\"\nstale_if_error = \"1m\"";
    let (world, customer) = counting(settings).await;
    let stored_after = async |time| {
        world.pass(time);
        world.running.gateway().engine.sweep();
        world.counted("scoregate_cache_documents").await
    };
    assert_eq!(stored_after(HOUR).await, 0);
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    assert_eq!(
        stored_after(Duration::from_mins(5)).await,
        1,
        "removed, which only a complete sweep detects"
    );
    assert_eq!(stored_after(Duration::from_mins(5)).await, 0);
}
