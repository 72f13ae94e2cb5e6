//! Storing and representation of documents: `Cache-Status`, entity tags, encodings, conditional requests.

use std::time::Duration;

use crate::{
    backend::{Act, Received, json},
    client::Response,
    world::{Customer, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const ATLAS: &str = "/api/v1/models/atlas";
/// Headers that differ between any two responses.
const MOVING: [&str; 2] = ["date", "x-request-id"];

/// A backend whose responses are long enough to be compressed.
pub fn long(received: &Received) -> Act {
    let path = received.target();
    let note = "good ".repeat(200);
    let item = format!(
        r#"{{"id":"atlas","path":"{path}","latestScore":81.5,"currentScore":80.25,"note":"{note}"}}"#
    );
    let data = vec![item; if path.ends_with("/atlas") { 1 } else { 20 }].join(",");
    json(&format!(
        r#"{{"generated_at":"2026-11-21T12:00:00Z","data":[{data}]}}"#
    ))
}

async fn encoded(world: &World, customer: &Customer, target: &str, accept: &str) -> Response {
    world
        .get(target)
        .key(&customer.key)
        .header("Accept-Encoding", accept)
        .send()
        .await
}

#[tokio::test]
async fn cache_status_and_metric_name_the_outcome_of_a_request_alike() {
    let world = World::new().await;
    let customer = world.paid().await;
    let assert_cache_status = async |outcome: &str, expected: &str| {
        let before = world.served(outcome).await;
        let response = world.get_as(&customer, MODELS).await;
        assert_eq!(response.header("cache-status"), expected);
        assert_eq!(world.served(outcome).await, before + 1, "{outcome}");
    };
    assert_cache_status("miss", "scoregate; fwd=miss; stored; detail=miss").await;
    assert_cache_status("hit", "scoregate; hit; ttl=3600").await;
    world.pass(Duration::from_secs(100));
    assert_cache_status("hit", "scoregate; hit; ttl=3500").await;
    world.pass(Duration::from_secs(3_517));
    world.backend.hold();
    assert_cache_status("stale", "scoregate; hit; ttl=-17; detail=stale").await;
    assert_cache_status("stale", "scoregate; hit; ttl=-17; detail=stale").await;
    world.backend.open();
    world.fetched(2).await;
    world.pass(Duration::from_hours(48));
    assert_cache_status(
        "refreshed",
        "scoregate; fwd=stale; stored; detail=refreshed",
    )
    .await;
    world.pass(Duration::from_hours(48));
    world.backend.next(json("nonsense"));
    // The data is from noon, so its refresh was overdue when the document was last revalidated.
    let overdue = 48 * 3_600;
    assert_cache_status(
        "stale_on_error",
        &format!("scoregate; hit; ttl=-{overdue}; detail=stale"),
    )
    .await;
}

#[tokio::test]
async fn every_encoding_and_form_has_the_same_data_and_its_own_etag() {
    let world = World::with("", long).await;
    let [free, paid] = [world.free().await, world.paid().await];
    let mut tags = Vec::new();
    for customer in [&free, &paid] {
        let plain = encoded(&world, customer, ATLAS, "identity").await;
        for (accept, encoding) in [("identity", ""), ("gzip", "gzip"), ("br", "br")] {
            let response = encoded(&world, customer, ATLAS, accept).await;
            assert_eq!(
                (response.status, response.header("content-encoding")),
                (200, encoding)
            );
            assert_eq!(response.decoded(), plain.body);
            assert_eq!(
                response.number("content-length"),
                response.body.len() as u64
            );
            assert!(encoding.is_empty() || response.body.len() < plain.body.len());
            assert_eq!(
                encoded(&world, customer, ATLAS, accept)
                    .await
                    .header("etag"),
                response.header("etag")
            );
            tags.push(response.header("etag").to_owned());
        }
    }
    let unique: std::collections::BTreeSet<_> = tags.iter().collect();
    assert_eq!(unique.len(), 6, "{tags:?}");
    assert_eq!(world.backend.received().len(), 1);
    assert_eq!(world.served("hit").await, 13);
}

#[tokio::test]
async fn a_conditional_request_is_compared_with_the_representation_it_would_get() {
    let world = World::with("", long).await;
    let [free, paid] = [world.free().await, world.paid().await];
    let tag = async |customer: &Customer, accept: &str| {
        encoded(&world, customer, ATLAS, accept)
            .await
            .header("etag")
            .to_owned()
    };
    let plain = tag(&free, "").await;
    let gzip = tag(&free, "gzip").await;
    let brotli = tag(&free, "br").await;
    let full = tag(&paid, "").await;
    for (accept, given, status) in [
        ("", plain.clone(), 304),
        ("gzip", gzip.clone(), 304),
        ("br", brotli.clone(), 304),
        ("gzip", plain.clone(), 200),
        ("", gzip.clone(), 200),
        ("br", gzip.clone(), 200),
        ("", full, 200),
        ("", format!("W/{plain}"), 304),
        ("", format!("\"x\", {gzip} , {plain}"), 304),
        ("", "*".into(), 304),
        ("", plain.trim_matches('"').into(), 200),
        ("", String::new(), 200),
        ("", "\"\"".into(), 200),
    ] {
        let request = world
            .get(ATLAS)
            .key(&free.key)
            .header("Accept-Encoding", accept);
        let response = request.header("If-None-Match", &given).send().await;
        assert_eq!(response.status, status, "{accept} {given}");
        let current = match accept {
            "gzip" => &gzip,
            "br" => &brotli,
            _ => &plain,
        };
        assert_eq!(response.header("etag"), current);
        assert_eq!(response.body.is_empty(), status == 304);
    }
    let request = world
        .get(ATLAS)
        .key(&free.key)
        .header("If-None-Match", "\"x\"");
    assert_eq!(
        request.header("If-None-Match", &plain).send().await.status,
        304,
        "two header lines form one list"
    );
    assert_eq!(world.counted("scoregate_not_modified_total").await, 7);
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let world = World::with("", long).await;
    let customer = world.paid().await;
    world.get_as(&customer, MODELS).await;
    let steady = |response: &Response| {
        let names = ["x-ratelimit-remaining", "ratelimit"];
        let differs = |name: &str| MOVING.contains(&name) || names.contains(&name);
        let fields = response.headers.iter().filter(|(name, _)| !differs(name));
        (response.status, fields.cloned().collect::<Vec<_>>())
    };
    for (target, accept) in [
        (MODELS, "br"),
        (MODELS, ""),
        ("/api/v1/me", ""),
        ("/api/v1/nothing", ""),
        ("/api/v1/models?period=x", ""),
        ("/docs", ""),
    ] {
        let request = |method: &str| {
            world
                .request(method, target)
                .key(&customer.key)
                .header("Accept-Encoding", accept)
                .send()
        };
        let get = request("GET").await;
        let head = request("HEAD").await;
        assert_eq!(steady(&get), steady(&head), "{target}");
        assert!(head.body.is_empty() && !get.body.is_empty());
    }
    let etag = world
        .get_as(&customer, MODELS)
        .await
        .header("etag")
        .to_owned();
    let head = world
        .request("HEAD", MODELS)
        .key(&customer.key)
        .header("If-None-Match", &etag)
        .send()
        .await;
    assert_eq!(head.status, 304);
    // A body after a HEAD would desynchronize the connection.
    let mut connection = world.connect().await;
    for method in ["HEAD", "GET", "HEAD", "HEAD", "GET"] {
        assert_eq!(
            connection
                .send(world.request(method, MODELS).key(&customer.key))
                .await
                .status,
            200
        );
    }
}

#[tokio::test]
async fn range_and_date_conditions_are_ignored_and_the_full_response_is_sent() {
    let world = World::new().await;
    let customer = world.free().await;
    let plain = world.get_as(&customer, MODELS).await;
    for (name, value) in [
        ("Range", "bytes=0-9"),
        ("If-Range", plain.header("etag")),
        ("If-Modified-Since", "Sat, 21 Nov 2026 13:00:00 GMT"),
        ("If-Match", "\"another\""),
        ("If-Unmodified-Since", "Sat, 21 Nov 1998 13:00:00 GMT"),
    ] {
        let response = world
            .get(MODELS)
            .key(&customer.key)
            .header(name, value)
            .send()
            .await;
        assert_eq!(
            (response.status, &response.body),
            (200, &plain.body),
            "{name}"
        );
    }
    let both = world
        .get(MODELS)
        .key(&customer.key)
        .header("If-None-Match", "\"x\"");
    let response = both
        .header("If-Modified-Since", "Sat, 21 Nov 2026 13:00:00 GMT")
        .send()
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(world.counted("scoregate_not_modified_total").await, 0);
}
