//! Message framing: bodies, HTTP/1.0, refusals. Any ambiguity has one response and closes the connection; smuggled requests
//! after it are never answered. `raw_bytes` has the malformed requests.

use crate::{
    raw::{After, exchange},
    world::{Customer, World, good},
};

const WIDE: &str = "guard.per_minute = 100000";
/// A complete request that must not be answered.
const INNER: &str =
    "GET /api/v1/models/smuggled HTTP/1.1\r\nHost: localhost\r\nX-API-Key: KEY\r\n\r\n";

async fn wide() -> (World, String) {
    let world = World::with(WIDE, good).await;
    let Customer { key, .. } = world.customer("pro").await;
    (world, key)
}

#[tokio::test]
async fn framing_a_body_is_refused_on_every_route() {
    let (world, key) = wide().await;
    // A hit, a miss, a 401, a 403, a 404 and a 429: the body is detected before any of them.
    assert_eq!(world.get_by(&key, "/api/v1/models").await.status, 200);
    let free = world.customer("free").await;
    assert_eq!(world.get_as(&free, "/api/v1/models").await.status, 200);
    let received = world.backend.received().len();
    for (target, key) in [
        ("/api/v1/models", key.as_str()),
        ("/api/v1/index", &key),
        ("/api/v1/models", "wrong"),
        ("/api/v1/models?period=latest", &free.key),
        ("/api/v1/nothing", &key),
        ("/api/v1/models", &free.key),
    ] {
        let inner = INNER.replace("KEY", key);
        let bytes = format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\nContent-Length: {}\r\n\r\n{inner}",
            inner.len()
        );
        let (response, after) = exchange(&world, bytes.as_bytes()).await;
        assert_eq!(
            (response.code().as_str(), after),
            ("bad_request", After::Closed),
            "{target}"
        );
    }
    assert_eq!(world.backend.received().len(), received);
}

#[tokio::test]
async fn framing_http_1_0_needs_no_host_and_closes_after_its_response() {
    let (world, key) = wide().await;
    for (head, status) in [
        (
            format!("GET /api/v1/models HTTP/1.0\r\nX-API-Key: {key}\r\n\r\n"),
            200,
        ),
        (
            format!("GET /api/v1/models HTTP/1.0\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n"),
            200,
        ),
        ("GET /docs HTTP/1.0\r\n\r\n".into(), 200),
        ("GET /nothing HTTP/1.0\r\n\r\n".into(), 401),
        ("OPTIONS / HTTP/1.0\r\n\r\n".into(), 204),
        ("PUT / HTTP/1.0\r\n\r\n".into(), 405),
        (
            "GET /docs HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello".into(),
            400,
        ),
        (
            "GET /docs HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n".into(),
            400,
        ),
    ] {
        let mut connection = world.connect().await;
        connection
            .write(format!("{head}GET / HTTP/1.0\r\n\r\n").as_bytes())
            .await;
        let response = connection.read(false).await.unwrap();
        assert_eq!(response.status, status, "{head}");
        assert!(connection.is_closed().await, "{head}");
    }
}

#[tokio::test]
async fn framing_an_unambiguous_refusal_keeps_the_connection_open() {
    let (world, key) = wide().await;
    let free = world.customer("free").await;
    assert_eq!(world.get_as(&free, "/api/v1/models").await.status, 200);
    for (target, key, code) in [
        ("/api/v1/models", "", "api_key_required"),
        ("/api/v1/models", "wrong", "invalid_api_key"),
        ("/api/v1/nothing", &key, "not_found"),
        ("/api/v1/models?period=7D", &key, "invalid_period"),
        ("/api/v1/models/%00", &key, "invalid_model_id"),
        (
            "/api/v1/models?period=latest",
            &free.key,
            "latest_requires_plan",
        ),
        ("/api/v1/models", &free.key, "rate_limit_exceeded"),
        ("/api/v1/models/nobody", &key, "model_not_found"),
    ] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
        let (response, after) = exchange(&world, bytes.as_bytes()).await;
        assert_eq!(
            (response.code().as_str(), after),
            (code, After::Open),
            "{target}"
        );
    }
}

#[tokio::test]
async fn framing_too_many_refusals_close_the_connection() {
    let world = World::with("guard.per_minute = 1", good).await;
    let (response, after) = exchange(&world, b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(
        (response.code().as_str(), after),
        ("api_key_required", After::Open)
    );
    let (response, after) = exchange(
        &world,
        b"GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    )
    .await;
    assert_eq!(
        (response.code().as_str(), after),
        ("too_many_refusals", After::Closed)
    );
    assert_eq!(
        world
            .counted("scoregate_limited_total{rule=\"guard\",tier=\"none\"}")
            .await,
        1
    );
}
