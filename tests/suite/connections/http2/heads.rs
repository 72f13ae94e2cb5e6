//! Request heads of attackers on HTTP/2. An ambiguous head never reaches the backend: it gets an error response, or the
//! stream is reset, or the connection is closed.

use super::{
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, StreamOutcome, Wire, block, code, fields,
    frame, get, opening,
};
use crate::world::{World, good};

type Field = (&'static str, &'static str);

const METHOD: Field = (":method", "GET");
const SCHEME: Field = (":scheme", "http");
const AUTHORITY: Field = (":authority", "localhost");
const PATH: Field = (":path", "/api/v1/models");
const HOST: Field = ("host", "localhost");
const LENGTH: Field = ("content-length", "0");
const CONNECT: Field = (":method", "CONNECT");
const TUNNEL: Field = (":authority", "backend.example:443");

/// A response of the gateway, or no response: the codec resets the stream or closes the connection.
const BAD: &str = "400 bad_request";
const NO_METHOD: &str = "405 method_not_allowed";
const REJECTED: &str = "rejected";

/// Heads, each with a key as its last field, and their outcomes.
#[rustfmt::skip]
const HEADS: &[(&[Field], &str)] = &[
    (&[METHOD, SCHEME, PATH, HOST], "200"),
    (&[METHOD, SCHEME, AUTHORITY, PATH, HOST], "200"),
    (&[METHOD, SCHEME, AUTHORITY, PATH, LENGTH], "200"),
    (&[METHOD, (":scheme", "https"), AUTHORITY, PATH], "200"),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "LOCALHOST:80")], "200"),
    (&[(":method", "OPTIONS"), SCHEME, AUTHORITY, (":path", "*")], "204"),
    // An ambiguous host, target or length.
    (&[METHOD, SCHEME, PATH], BAD),
    (&[METHOD, SCHEME, PATH, HOST, HOST], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, HOST, HOST], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "evil.example")], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "localhost:81")], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("host", "LOCALHOST:443")], BAD),
    (&[METHOD, SCHEME, PATH, ("host", "")], BAD),
    (&[METHOD, SCHEME, (":authority", "me@localhost"), PATH], BAD),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "*")], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("content-length", "00")], BAD),
    (&[METHOD, SCHEME, AUTHORITY, PATH, LENGTH, LENGTH], BAD),
    // Tunnels.
    (&[CONNECT, TUNNEL], NO_METHOD),
    (&[CONNECT, TUNNEL, ("host", "backend.example:443")], NO_METHOD),
    (&[CONNECT, SCHEME, AUTHORITY, (":path", "/chat"), (":protocol", "websocket")], REJECTED),
    // Heads that only the codec sees.
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("connection", "x-api-key")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("transfer-encoding", "chunked")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("X-Api-Key", "upper")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("a b", "blank")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, PATH, ("x", "a\r\nhost: evil.example")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, PATH, (":path", "/api/v1/me")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "localhost:80")], REJECTED),
    (&[METHOD, SCHEME, AUTHORITY, (":path", "/api/v1/models/<a>")], REJECTED),
];

pub async fn wide() -> (World, String) {
    let world = World::with("guard.per_minute = 100000", good).await;
    let key = world.customer("pro").await.key;
    (world, key)
}

fn describe(outcome: &StreamOutcome) -> String {
    match outcome {
        StreamOutcome::Response(status, code) => format!("{status} {code}").trim_end().to_owned(),
        StreamOutcome::Reset(_) | StreamOutcome::Gone(_) | StreamOutcome::Closed => {
            REJECTED.to_owned()
        }
    }
}

#[tokio::test]
async fn http2_an_ambiguous_head_is_refused_and_never_reaches_the_backend() {
    let (world, key) = wide().await;
    let mut wrong = Vec::new();
    for (head, expected) in HEADS {
        let head_with_key = [head, &[("x-api-key", key.as_str())][..]].concat();
        let outcome = describe(&world.outcome_of(&fields(&head_with_key)).await);
        if outcome != *expected {
            wrong.push(format!("{head:?}: {outcome} instead of {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(
        world.backend.received().len(),
        1,
        "only the good heads reach the backend"
    );
    assert_eq!(world.documents(), 1);
}

/// Requests with a body, or with frames that could be one, and the payload of a tunnel.
fn bodies(key: &str) -> Vec<(&'static str, Vec<u8>)> {
    let plain = get("/api/v1/models", &[("x-api-key", key)]);
    let long = get(
        "/api/v1/models",
        &[("x-api-key", key), ("content-length", "5")],
    );
    let body = |flags| frame(DATA, flags, 1, b"hello");
    let another = block(&fields(&[("x-api-key", "another")]));
    let trailers = frame(HEADERS, END_STREAM | END_HEADERS, 1, &another);
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
        ("trailers", [opening(1, &plain, 0), trailers].concat()),
    ]
}

#[tokio::test]
async fn http2_a_request_with_a_body_is_a_400_in_every_variant_and_closes_the_connection() {
    let (world, key) = wide().await;
    for (name, bytes) in bodies(&key) {
        let mut connection = Wire::open(world.address()).await;
        connection.send(&bytes).await;
        assert_eq!(describe(&connection.stream_outcome(1).await), BAD, "{name}");
        let rest = connection.rest().await;
        let goaways = rest.iter().filter(|read| read.kind == GOAWAY);
        let codes: Vec<u32> = goaways.map(|read| code(&read.payload[4..])).collect();
        assert!(
            !codes.is_empty() && codes.iter().all(|code| *code == 0),
            "{name}: {codes:?}"
        );
    }
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn http2_a_head_has_at_most_16_kib_and_64_fields() {
    let (world, key) = wide().await;
    // The codec itself refuses the last one.
    for (size, count, expected) in [
        (15_000, 0, "200"),
        (16_500, 0, "431 headers_too_large"),
        (65_000, 0, "431 headers_too_large"),
        (1, 62, "200"),
        (1, 63, "431 headers_too_large"),
        (1, 254, "431 headers_too_large"),
        (200_000, 0, REJECTED),
    ] {
        let large = "x".repeat(size);
        let names: Vec<String> = (0..count).map(|number| format!("x{number}")).collect();
        let mut more = vec![("x-api-key", key.as_str()), ("x", &large)];
        more.extend(names.iter().map(|name| (name.as_str(), "1")));
        let outcome = world.outcome_of(&get("/api/v1/models", &more)).await;
        assert_eq!(describe(&outcome), expected, "{size} and {count}");
    }
    let refused = "scoregate_refusals_total{code=\"headers_too_large\"}";
    assert_eq!(world.counted(refused).await, 4);
}
