//! `X-Request-Id`: on every response, the caller's if it is well formed, otherwise a generated one; and its value
//! appears nowhere else.

use std::collections::BTreeSet;

use crate::{
    backend::respond,
    client::{RequestBuilder, Response},
    raw::{exchange, is_codec_response},
    world::{World, good},
};

const OWN: &str = "job-42_of.Tuesday";

/// The response to a request with this header field, sent as bytes.
async fn response_with_id(world: &World, field: &[u8]) -> Response {
    let bytes = [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
        field,
        b"\r\n\r\n",
    ]
    .concat();
    exchange(world, &bytes).await.0
}

fn is_ours(id: &str) -> bool {
    id.len() == 16
        && id
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

/// One request for each kind of response, and its status.
pub async fn kinds(world: &World) -> Vec<(u16, RequestBuilder)> {
    let [paid, spent] = [world.paid().await, world.customer("free").await];
    let keyed = |target: &str| world.get(target).key(&paid.key);
    let etag = world
        .get_as(&paid, "/api/v1/models")
        .await
        .header("etag")
        .to_owned();
    assert_eq!(world.get_as(&spent, "/api/v1/models").await.status, 200);
    world.backend.set_script(|request| {
        if request.target() == "/api/v1/index" {
            respond("500 Internal Server Error", &[], "")
        } else {
            good(request)
        }
    });
    vec![
        (200, keyed("/api/v1/models")),
        (200, keyed("/api/v1/models").method("HEAD")),
        (200, keyed("/api/v1/me")),
        (304, keyed("/api/v1/models").header("If-None-Match", &etag)),
        (200, world.get("/")),
        (200, world.get("/docs")),
        (200, world.get("/openapi.json")),
        (200, world.get("/healthz")),
        (204, world.request("OPTIONS", "/api/v1/models")),
        (400, keyed("/api/v1/models?period=7D")),
        (400, world.get("/").header("Content-Length", "5")),
        (401, world.get("/api/v1/models")),
        (401, world.get("/api/v1/models").key("wrong")),
        (
            403,
            world.get("/api/v1/models?period=latest").key(&spent.key),
        ),
        (404, keyed("/nothing")),
        (404, keyed("/api/v1/models/nobody")),
        (405, world.request("PUT", "/api/v1/models")),
        (414, world.get(&format!("/{}", "x".repeat(2_048)))),
        (429, world.get("/api/v1/models").key(&spent.key)),
        (431, world.get("/").header("Cookie", &"x".repeat(16_384))),
        (503, keyed("/api/v1/index")),
    ]
}

#[tokio::test]
async fn every_kind_of_response_has_the_request_id_of_the_caller_or_a_generated_one() {
    let world = World::new().await;
    let mut ours = BTreeSet::new();
    for (status, request) in kinds(&world).await {
        let response = request.clone().send().await;
        assert_eq!(response.status, status);
        assert!(
            is_ours(response.header("x-request-id")),
            "{status}: {}",
            response.header("x-request-id")
        );
        assert!(
            ours.insert(response.header("x-request-id").to_owned()),
            "{status}: not for the first time"
        );
        let response = request.header("X-Request-Id", OWN).send().await;
        assert_eq!(
            (response.status, response.header("x-request-id")),
            (status, OWN)
        );
        if status >= 400 && !response.body.is_empty() {
            assert_eq!(response.json()["request_id"], OWN, "{status}");
        }
    }
}

#[tokio::test]
async fn a_request_id_of_8_to_64_plain_characters_is_accepted() {
    let world = World::new().await;
    let longest = "x".repeat(64);
    for id in [
        "12345678",
        "Az09._-Z",
        "3f1b6f0e-8f0b-4d3c-9f43-5a1f8d7c2b90",
        &longest,
    ] {
        assert_eq!(
            response_with_id(&world, format!("X-Request-Id: {id}").as_bytes())
                .await
                .header("x-request-id"),
            id
        );
    }
    assert_eq!(
        response_with_id(&world, b"x-request-ID:   12345678  ")
            .await
            .header("x-request-id"),
        "12345678"
    );
}

#[tokio::test]
async fn a_malformed_or_repeated_request_id_is_replaced() {
    let world = World::new().await;
    let too_long = "x".repeat(65);
    let twice = format!("{OWN}\r\nX-Request-Id: {OWN}");
    let different = format!("{OWN}\r\nX-Request-Id: another-one");
    for id in [
        &twice,
        &different,
        "",
        "1234567",
        &too_long,
        "1234 5678",
        "12345678,abcdefgh",
        "12345678;x",
        "\"12345678\"",
        "<script>1",
        "1234/5678",
        "1234:5678",
        "12345678\t9",
        "1234567\u{e9}",
        "12345678\u{202e}",
        "12345678%0d%0aX-Injected:%20yes",
        "12345678\\r\\nX-Injected: yes",
        "${jndi:ldap://x}",
    ] {
        let response = response_with_id(&world, format!("X-Request-Id: {id}").as_bytes()).await;
        assert_eq!(response.status, 200, "{id}");
        assert!(
            is_ours(response.header("x-request-id")),
            "{id}: {}",
            response.header("x-request-id")
        );
        assert_eq!(response.header("x-injected"), "", "{id}");
    }
}

#[tokio::test]
async fn a_line_break_in_a_request_id_injects_nothing_into_the_response() {
    let world = World::new().await;
    // A line break ends the field: the rest is parsed as another request field, and does not reach the response.
    let split = response_with_id(&world, b"X-Request-Id: 12345678\r\nX-Injected: yes").await;
    assert_eq!(
        (split.header("x-request-id"), split.header("x-injected")),
        ("12345678", "")
    );
    for inside in [
        &b"X-Request-Id: 12345678\rX-Injected: yes"[..],
        b"X-Request-Id: 12345678\r\n X-Injected: yes",
        b"X-Request-Id: 12345678\0",
        b"X-Request-Id: 1234\x0b5678",
        b"X-Request-Id: 1234\x7f5678",
    ] {
        let response = response_with_id(&world, inside).await;
        assert_eq!(response.header("x-injected"), "");
        assert!(
            (response.status == 400 && is_codec_response(&response))
                || is_ours(response.header("x-request-id")),
            "{}: {} {}",
            inside.escape_ascii(),
            response.status,
            response.header("x-request-id")
        );
    }
}
