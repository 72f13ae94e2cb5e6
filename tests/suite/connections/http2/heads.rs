//! Request heads of attackers on HTTP/2: ambiguous ones are refused for the stream, for the connection or by a
//! response, and never reach the backend.

use super::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, StreamOutcome, Wire, block, code, fields,
    frame, get, opening,
};
use crate::world::{World, good};

const WIDE: &str = "guard.per_minute = 100000";

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) async fn wide() -> (World, String) {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    (world, key)
}

/// A GET of these pseudo-fields and a key.
fn pseudo(parts: &[(&str, &str)], key: &str) -> Fields {
    fields(&[parts, &[("x-api-key", key)]].concat())
}

fn models(key: &str, name: &[u8], value: &[u8]) -> Fields {
    let mut fields = get("/api/v1/models", &[("x-api-key", key)]);
    fields.push((name.to_vec(), value.to_vec()));
    fields
}

/// Forbidden field lines on HTTP/2. They reset the stream or close the connection before any request is seen.
const FORBIDDEN: &[(&[u8], &[u8])] = &[
    (b"connection", b"close"),
    (b"connection", b"x-api-key"),
    (b"keep-alive", b"timeout=5"),
    (b"proxy-connection", b"close"),
    (b"transfer-encoding", b"chunked"),
    (b"transfer-encoding", b"identity"),
    (b"upgrade", b"websocket"),
    (b"te", b"gzip"),
    (b"te", b"trailers, gzip"),
    (b"X-Api-Key", b"upper"),
    (b"hosT", b"localhost"),
    (b"", b"empty"),
    (b"a b", b"blank"),
    (b"a:b", b"colon"),
    (b"a\0b", b"nul"),
    (b"a\r\nb", b"line"),
    (b"\xc3\xa4", b"letter"),
    (b"x", b"a\rb"),
    (b"x", b"a\nb"),
    (b"x", b"a\r\nhost: evil.example"),
    (b"x", b"a\0b"),
    (b"x", b"a\x7fb"),
    (b":path", b"/api/v1/me"),
    (b":method", b"GET"),
    (b":authority", b"localhost"),
    (b":status", b"200"),
    (b":evil", b"1"),
    (b":", b"1"),
];

#[tokio::test]
async fn http2_forbidden_fields_reset_the_stream_or_close_the_connection() {
    let (world, key) = wide().await;
    let mut wrong = Vec::new();
    for (name, value) in FORBIDDEN {
        let outcome = world.outcome_of(&models(&key, name, value)).await;
        if !outcome.is_error() {
            wrong.push(format!(
                "{}: {}: {outcome:?}",
                name.escape_ascii(),
                value.escape_ascii()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(world.backend.received().is_empty());
    assert_eq!(world.running.gateway().engine.documents.count(), 0);
}

#[tokio::test]
async fn http2_an_ambiguous_host_or_target_is_a_400() {
    let (world, key) = wide().await;
    let method = (":method", "GET");
    let scheme = (":scheme", "http");
    let path = (":path", "/api/v1/models");
    let authority = (":authority", "localhost");
    let host = ("host", "localhost");
    let ambiguous = [
        ("no host at all", pseudo(&[method, scheme, path], &key)),
        (
            "two hosts",
            pseudo(&[method, scheme, path, host, host], &key),
        ),
        (
            "two hosts and an authority",
            pseudo(&[method, scheme, authority, path, host, host], &key),
        ),
        (
            "another host",
            pseudo(
                &[method, scheme, authority, path, ("host", "evil.example")],
                &key,
            ),
        ),
        (
            "another port",
            pseudo(
                &[method, scheme, authority, path, ("host", "localhost:81")],
                &key,
            ),
        ),
        (
            "an empty host",
            pseudo(&[method, scheme, path, ("host", "")], &key),
        ),
        (
            "a host with a user",
            pseudo(
                &[method, scheme, (":authority", "me@localhost"), path],
                &key,
            ),
        ),
        (
            "an asterisk",
            pseudo(&[method, scheme, authority, (":path", "*")], &key),
        ),
        (
            "another case and port",
            pseudo(
                &[method, scheme, authority, path, ("host", "LOCALHOST:443")],
                &key,
            ),
        ),
        (
            "a length",
            pseudo(
                &[method, scheme, authority, path, ("content-length", "00")],
                &key,
            ),
        ),
        (
            "two lengths",
            pseudo(
                &[
                    method,
                    scheme,
                    authority,
                    path,
                    ("content-length", "0"),
                    ("content-length", "0"),
                ],
                &key,
            ),
        ),
    ];
    for (name, fields) in ambiguous {
        let outcome = world.outcome_of(&fields).await;
        assert_eq!(
            outcome,
            StreamOutcome::Response(400, "bad_request".into()),
            "{name}"
        );
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn http2_a_host_that_agrees_with_the_authority_is_served() {
    let (world, key) = wide().await;
    let method = (":method", "GET");
    let scheme = (":scheme", "http");
    let path = (":path", "/api/v1/models");
    let authority = (":authority", "localhost");
    let host = ("host", "localhost");
    for fine in [
        pseudo(&[method, scheme, path, host], &key),
        pseudo(&[method, scheme, authority, path, host], &key),
        pseudo(
            &[method, scheme, authority, path, ("content-length", "0")],
            &key,
        ),
        pseudo(&[method, (":scheme", "https"), authority, path], &key),
        pseudo(
            &[method, scheme, authority, path, ("host", "LOCALHOST:80")],
            &key,
        ),
    ] {
        assert_eq!(
            world.outcome_of(&fine).await,
            StreamOutcome::Response(200, String::new())
        );
    }
    let options = pseudo(
        &[(":method", "OPTIONS"), scheme, authority, (":path", "*")],
        &key,
    );
    assert_eq!(
        world.outcome_of(&options).await,
        StreamOutcome::Response(204, String::new())
    );
}

#[tokio::test]
async fn http2_targets_that_are_not_known_paths_never_succeed() {
    let (world, key) = wide().await;
    let bad = |status: u16, code: &str| StreamOutcome::Response(status, code.into());
    let lost = bad(404, "not_found");
    let id = bad(400, "invalid_model_id");
    for (path, expected) in [
        ("//api/v1/models", Some(&lost)),
        ("//evil.example/api/v1/models", Some(&lost)),
        ("/api/v1/../v1/models", Some(&lost)),
        ("/api/v1/models/", Some(&lost)),
        ("/api/v1%2fmodels", Some(&lost)),
        ("/api/v1/me;.js", Some(&lost)),
        ("/api/v1/me%00.css", Some(&lost)),
        ("/API/v1/models", Some(&lost)),
        ("/metrics", Some(&lost)),
        ("/api/v1/models/%2e%2e%2fme", Some(&id)),
        ("/api/v1/models/%252e%252e", Some(&id)),
        ("/api/v1/models/%00", Some(&id)),
        ("/api/v1/models/a%", Some(&id)),
        // Invalid paths are refused by the codec or by the gateway.
        ("http://localhost/api/v1/models", None),
        ("http://evil.example/api/v1/models", None),
        ("localhost", None),
        ("localhost:80", None),
        ("api/v1/models", None),
        ("?period=24h", None),
        ("/api/v1/models/\u{e4}tlas", None),
        ("/api/v1/models/<a>", None),
        ("\\api\\v1\\models", None),
    ] {
        let outcome = world.outcome_of(&get(path, &[("x-api-key", &key)])).await;
        let is_refused = outcome.is_error() || matches!(outcome, StreamOutcome::Response(400, _));
        match expected {
            Some(expected) => assert_eq!(outcome, *expected, "{path}"),
            None => assert!(is_refused, "{path}: {outcome:?}"),
        }
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn http2_a_connect_is_a_405_or_rejected_and_opens_no_tunnel() {
    let (world, key) = wide().await;
    for authority in ["backend.example:443", "127.0.0.1:80", "localhost:1"] {
        let connect = [
            (":method", "CONNECT"),
            (":authority", authority),
            ("host", authority),
        ];
        let connect = pseudo(&connect, &key);
        let mut connection = Wire::open(world.address()).await;
        // The payload of a tunnel follows.
        connection
            .send(
                &[
                    opening(1, &connect, 0),
                    frame(DATA, 0, 1, b"GET / HTTP/1.1\r\n\r\n"),
                ]
                .concat(),
            )
            .await;
        assert_eq!(
            connection.stream_outcome(1).await,
            StreamOutcome::Response(405, "method_not_allowed".into()),
            "{authority}"
        );
    }
    let all = [
        (":method", "CONNECT"),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", "/chat"),
    ];
    for extended in [
        &[(":protocol", "websocket")][..],
        &[(":protocol", "connect-udp")],
        &[],
    ] {
        let outcome = world
            .outcome_of(&pseudo(&[&all[..], extended].concat(), &key))
            .await;
        assert!(
            outcome.is_error()
                || outcome == StreamOutcome::Response(405, "method_not_allowed".into()),
            "{outcome:?}"
        );
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn http2_a_connect_needs_no_host_to_be_a_405() {
    let (world, key) = wide().await;
    let connect = pseudo(
        &[
            (":method", "CONNECT"),
            (":authority", "backend.example:443"),
        ],
        &key,
    );
    assert_eq!(
        world.outcome_of(&connect).await,
        StreamOutcome::Response(405, "method_not_allowed".into())
    );
}

/// Requests with a body, or with frames that could be one.
fn bodies(key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let plain = get("/api/v1/models", &[("x-api-key", key)]);
    let long = get(
        "/api/v1/models",
        &[("x-api-key", key), ("content-length", "5")],
    );
    let body = |flags| frame(DATA, flags, 1, b"hello");
    let trailers = |fields: &Fields| frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(fields));
    vec![
        ("a body", [opening(1, &plain, 0), body(END_STREAM)].concat()),
        ("a body that never arrives", opening(1, &plain, 0)),
        (
            "a body without end",
            [opening(1, &plain, 0), body(0)].concat(),
        ),
        (
            "a body of its length",
            [opening(1, &long, 0), body(END_STREAM)].concat(),
        ),
        (
            "trailers",
            [
                opening(1, &plain, 0),
                trailers(&fields(&[("x-api-key", "another")])),
            ]
            .concat(),
        ),
    ]
}

#[tokio::test]
async fn http2_a_request_with_a_body_is_a_400_in_every_variant() {
    let (world, key) = wide().await;
    for (name, bytes) in bodies(&key) {
        let mut connection = Wire::open(world.address()).await;
        connection.send(&bytes).await;
        assert_eq!(
            connection.stream_outcome(1).await,
            StreamOutcome::Response(400, "bad_request".into()),
            "{name}"
        );
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn http2_a_request_with_a_body_closes_the_connection() {
    let (world, key) = wide().await;
    for (name, bytes) in bodies(&key) {
        let mut connection = Wire::open(world.address()).await;
        connection.send(&bytes).await;
        assert_eq!(
            connection.stream_outcome(1).await,
            StreamOutcome::Response(400, "bad_request".into()),
            "{name}"
        );
        let codes: Vec<u32> = connection
            .rest()
            .await
            .iter()
            .filter_map(goaway_code)
            .collect();
        assert!(
            !codes.is_empty() && codes.iter().all(|code| *code == 0),
            "{name}: {codes:?}"
        );
    }
}

/// The code of a GOAWAY.
fn goaway_code(read: &super::Frame) -> Option<u32> {
    (read.kind == GOAWAY).then(|| code(&read.payload[4..]))
}

#[tokio::test]
async fn http2_repeated_key_headers_are_a_401() {
    let (world, key) = wide().await;
    let bearer = format!("Bearer {key}");
    for more in [
        &[("x-api-key", key.as_str()), ("x-api-key", key.as_str())][..],
        &[("authorization", &bearer), ("authorization", &bearer)],
        &[("authorization", &bearer), ("x-api-key", "another")],
    ] {
        let outcome = world.outcome_of(&get("/api/v1/models", more)).await;
        assert_eq!(
            outcome,
            StreamOutcome::Response(401, "invalid_api_key".into())
        );
    }
    let outcome = world
        .outcome_of(&get(
            "/api/v1/models",
            &[("authorization", &bearer), ("x-api-key", &key)],
        ))
        .await;
    assert_eq!(outcome, StreamOutcome::Response(200, String::new()));
}
