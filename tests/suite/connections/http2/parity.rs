//! Responses on HTTP/2 equal those on HTTP/1.1: the same statuses, headers, bodies, costs and limits.

use std::collections::BTreeMap;

use super::http2_client::Http2Client;
use crate::{
    client::Response,
    world::{World, good},
};

const WIDE: &str = "guard.per_minute = 100000";

/// Headers that differ between requests on any protocol.
const MOVING: &[&str] = &[
    "date",
    "x-request-id",
    "ratelimit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// Requests: method, target, whether a key is sent, and one more header field.
#[rustfmt::skip]
const ASKED: &[(&str, &str, bool, (&str, &str))] = &[
    ("GET", "/api/v1/models", true, ("accept", "*/*")),
    ("HEAD", "/api/v1/models", true, ("accept", "*/*")),
    ("GET", "/api/v1/models/atlas?period=7d", true, ("accept-encoding", "br")),
    ("GET", "/api/v1/incidents?limit=7", true, ("accept-encoding", "gzip")),
    ("GET", "/api/v1/models", true, ("if-none-match", "*")),
    ("HEAD", "/api/v1/models", true, ("if-none-match", "*")),
    ("GET", "/api/v1/me", true, ("accept", "*/*")),
    ("OPTIONS", "/api/v1/models", false, ("accept", "*/*")),
    ("GET", "/", false, ("accept", "text/html")),
    ("GET", "/docs", false, ("accept-encoding", "gzip, br")),
    ("GET", "/openapi.json", false, ("accept", "*/*")),
    ("GET", "/healthz", false, ("accept", "*/*")),
    ("GET", "/api/v1/models", false, ("accept", "*/*")),
    ("GET", "/api/v1/models", false, ("x-api-key", "wrong")),
    ("GET", "/api/v1/models", true, ("x-api-key", "another")),
    ("GET", "/api/v1/models", false, ("accept", "application/problem+json")),
    ("GET", "/api/v1/models?period=7D", true, ("accept", "*/*")),
    ("GET", "/api/v1/incidents?limit=0", true, ("accept", "application/problem+json")),
    ("GET", "/api/v1/models/%00", true, ("accept", "*/*")),
    ("GET", "/api/v1/nothing", true, ("accept", "*/*")),
    ("GET", "/api/v1/models/nobody", true, ("accept", "*/*")),
    ("HEAD", "/api/v1/nothing", true, ("accept", "*/*")),
    ("DELETE", "/api/v1/models", true, ("accept", "*/*")),
    ("POST", "/api/v1/models", false, ("accept", "*/*")),
    ("POST", "/api/v1/models", true, ("content-length", "0")),
    ("GET", "/api/v1/models", true, ("content-length", "0")),
    ("GET", "/api/v1/models", true, ("range", "bytes=0-9")),
    ("GET", "/api/v1/models", true, ("te", "trailers")),
    ("GET", "/api/v1/models", true, ("expect", "100-continue")),
];

/// The headers of a response without variable and connection-specific ones.
fn comparable_headers(response: &Response) -> BTreeMap<&str, Vec<&str>> {
    let mut comparable_headers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in response
        .headers
        .iter()
        .filter(|(name, _)| name != "connection")
    {
        let value = if MOVING.contains(&&**name) { "" } else { value };
        comparable_headers.entry(name).or_default().push(value);
    }
    comparable_headers
}

/// The body of a response without its request id and the variable fields of `/me`.
fn comparable_body(response: &Response) -> String {
    let Ok(mut body) = serde_json::from_slice::<serde_json::Value>(&response.body) else {
        return response.body.escape_ascii().to_string();
    };
    if let Some(body) = body.as_object_mut() {
        body.retain(|name, _| name != "request_id" && name != "instance");
    }
    body.to_string()
}

#[tokio::test]
async fn http2_responses_equal_those_of_http_1_1() {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    // Both connections are served from the cache. Each missing document was fetched once.
    for (method, target, _, (name, value)) in ASKED {
        world
            .request(method, target)
            .key(&key)
            .header(name, value)
            .send()
            .await;
    }
    let already_received = world.backend.received().len();
    let client = world.http2_client().await;
    for (method, target, with_key, (name, value)) in ASKED {
        let mut plain = world.request(method, target).header(name, value);
        let mut headers = vec![(*name, *value)];
        let bearer = format!("Bearer {key}");
        if *with_key {
            plain = plain.key(&key);
            headers.push(("authorization", &bearer));
        }
        let plain = plain.send().await;
        let response = world.over(&client, method, target, &headers).await;
        let row = format!("{method} {target} {name}: {value}");
        assert_eq!(response.status, plain.status, "{row}");
        assert_eq!(
            comparable_headers(&response),
            comparable_headers(&plain),
            "{row}"
        );
        assert_eq!(comparable_body(&response), comparable_body(&plain), "{row}");
        assert_eq!(response.header("connection"), "", "{row}");
    }
    assert_eq!(world.backend.received().len(), already_received);
}

#[tokio::test]
async fn http2_too_many_refusals_close_the_connection() {
    let world = World::with("guard.per_minute = 1", good).await;
    let client = world.http2_client().await;
    assert_eq!(
        world.over(&client, "GET", "/x", &[]).await.code(),
        "api_key_required"
    );
    assert_eq!(
        world.over(&client, "GET", "/x", &[]).await.code(),
        "too_many_refusals"
    );
    is_over(&client).await;
    assert_eq!(
        world
            .counted("scoregate_limited_total{rule=\"guard\",tier=\"none\"}")
            .await,
        1
    );
}

/// Waits until a connection accepts no more requests.
async fn is_over(client: &Http2Client) {
    while !client.is_over() {
        tokio::task::yield_now().await;
    }
}
