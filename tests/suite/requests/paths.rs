//! Malformed paths: none is normalized, none succeeds, and the backend gets only canonical targets.

use std::collections::BTreeSet;

use crate::client::Connection;
use crate::raw::{get, is_codec_response, show};
use crate::world::{World, good};

const WIDE: &str = "guard.per_minute = 100000";
/// Another valid path.
const NOT_FOUND: (u16, &str) = (404, "not_found");
/// A path with a malformed model identifier.
const ID: (u16, &str) = (400, "invalid_model_id");
/// An unknown path.
const BAD: (u16, &str) = (400, "bad_request");
/// Invalid HTTP: the codec's own response.
const BARE: (u16, &str) = (400, "");

/// Targets, and the expected response to a caller with a key.
#[rustfmt::skip]
const MALFORMED: &[(&[u8], (u16, &str))] = &[
    // Slashes and dots.
    (b"/api/v1", NOT_FOUND), (b"/api/v1/", NOT_FOUND), (b"/api/v1/models/", NOT_FOUND), (b"/api/v1/models//", NOT_FOUND),
    (b"/api/v1//models", NOT_FOUND), (b"/api//v1/models", NOT_FOUND), (b"//api/v1/models", NOT_FOUND), (b"///api/v1/models", NOT_FOUND),
    (b"//evil.example/api/v1/models", NOT_FOUND), (b"/./api/v1/models", NOT_FOUND), (b"/api/v1/./models", NOT_FOUND),
    (b"/api/v1/models/.", NOT_FOUND), (b"/api/v1/models/..", NOT_FOUND), (b"/api/v1/models/../me", NOT_FOUND),
    (b"/api/v1/me/../models", NOT_FOUND), (b"/api/v1/../v1/models", NOT_FOUND), (b"/../api/v1/models", NOT_FOUND),
    (b"/api/v1/models/./history", NOT_FOUND), (b"/api/v1/models/../history", NOT_FOUND), (b"/api/v1/models//history", NOT_FOUND),
    (b"/api/v1/models/atlas/", NOT_FOUND), (b"/api/v1/models/atlas/.", NOT_FOUND), (b"/api/v1/models/atlas/..", NOT_FOUND),
    (b"/api/v1/models/atlas//history", NOT_FOUND), (b"/api/v1/models/atlas/history/", NOT_FOUND),
    (b"/api/v1/models/atlas/./history", NOT_FOUND), (b"/api/v1/models/atlas/history/..", NOT_FOUND),
    (b"/api/v1/models/...", ID), (b"/api/v1/models/.atlas", ID), (b"/api/v1/drift/", NOT_FOUND), (b"/api/v1/drift", NOT_FOUND),
    (b"/api/v1/drift/..", NOT_FOUND), (b"/docs/../api/v1/models", NOT_FOUND), (b"/docs//", NOT_FOUND), (b"//docs", NOT_FOUND), (b"/./", NOT_FOUND),
    // The same, percent-encoded.
    (b"/api/v1/%2e/models", NOT_FOUND), (b"/api/v1/%2e%2e/v1/models", NOT_FOUND), (b"/%2e%2e/api/v1/models", NOT_FOUND),
    (b"/api/v1%2fmodels", NOT_FOUND), (b"/api%2fv1%2fmodels", NOT_FOUND), (b"/%2fapi/v1/models", NOT_FOUND), (b"%2fapi/v1/models", BARE),
    (b"/api/v1/models%2f", NOT_FOUND), (b"/api/v1/models%2fatlas", NOT_FOUND), (b"/api/v1/models%2f..%2fme", NOT_FOUND),
    (b"/api/v1/models/%2e", ID), (b"/api/v1/models/%2e%2e", ID), (b"/api/v1/models/.%2e", ID), (b"/api/v1/models/%2e.", ID),
    (b"/api/v1/models/%2E%2E", ID), (b"/api/v1/models/%2e%2e/history", ID), (b"/api/v1/models/%2e%2e%2fme", ID),
    (b"/api/v1/models/..%2fme", ID), (b"/api/v1/models/atlas%2f", ID), (b"/api/v1/models/atlas%2fhistory", ID),
    (b"/api/v1/models/atlas%2F..%2Fme", ID), (b"/api/v1/models/%2f", ID), (b"/api/v1/models/%2fetc%2fpasswd", ID),
    (b"/api/v1/models/atlas%2f..%2f..%2fme/history", ID), (b"/api/v1/drift/%2e%2e", ID), (b"/api/v1/drift/a%2fb", ID),
    (b"/api/v1/me%2f", NOT_FOUND), (b"/api/v1/me%2f..%2fmodels", NOT_FOUND), (b"/api/v1/me/%2e%2e/models", NOT_FOUND),
    // Encoded twice, over-long, not UTF-8, cut short.
    (b"/api/v1/models/%252e%252e", ID), (b"/api/v1/models/a%252fb", ID), (b"/api/v1/models/%25252e", ID),
    (b"/api/v1%252fmodels", NOT_FOUND), (b"/api/v1/models/%c0%ae%c0%ae", ID), (b"/api/v1/models/a%c0%afb", ID),
    (b"/api/v1/models/a%e0%80%afb", ID), (b"/api/v1/models/%ff", ID), (b"/api/v1/models/a%80", ID),
    (b"/api/v1/models/%", ID), (b"/api/v1/models/a%", ID), (b"/api/v1/models/a%2", ID), (b"/api/v1/models/a%zz", ID),
    (b"/api/v1/models/a%u002e", ID), (b"/api/v1/models/a%0", ID), (b"/api/v1/mod%", NOT_FOUND), (b"/api/v1/mode%6", NOT_FOUND),
    (b"/api/v1/models/%ef%bc%8e%ef%bc%8e", ID), (b"/api/v1/models/a%ef%bc%8fb", ID), (b"/api/v1/models/%e2%80%aeatlas", ID),
    // NUL, line ends, blanks.
    (b"/api/v1/models/%00", ID), (b"/api/v1/models/atlas%00", ID), (b"/api/v1/models/atlas%00.css", ID),
    (b"/api/v1/me%00.css", NOT_FOUND), (b"/api/v1/models%00", NOT_FOUND), (b"/api/v1/models/a%0d%0aHost:%20evil", ID),
    (b"/api/v1/models/a%0a", ID), (b"/api/v1/models/a%20", ID), (b"/api/v1/models/%20a", ID), (b"/api/v1/models/a%09", ID),
    (b"/api/v1/models/a%7f", ID), (b"/api/v1/models%20", NOT_FOUND), (b"/api/v1/me%0a", NOT_FOUND),
    // Backslashes, semicolons, suffixes: cache deception.
    (b"/api/v1\\models", NOT_FOUND), (b"\\api\\v1\\models", BARE), (b"/api/v1/models\\..\\me", NOT_FOUND), (b"/api/v1/models/..\\me", ID),
    (b"/api/v1/models/a%5cb", ID), (b"/api/v1/models/..%5cme", ID), (b"/api/v1/models/..;/me", NOT_FOUND),
    (b"/api/v1/models/..;", ID), (b"/api/v1/..;/v1/models", NOT_FOUND), (b"/api/v1/models;x=1", NOT_FOUND), (b"/api/v1/models/atlas;x=1", ID),
    (b"/api/v1/models/atlas/history;x=1", NOT_FOUND), (b"/api/v1/me;.js", NOT_FOUND), (b"/api/v1/me;/x.css", NOT_FOUND), (b"/api/v1/me/x.css", NOT_FOUND),
    (b"/api/v1/me.css", NOT_FOUND), (b"/api/v1/me/", NOT_FOUND), (b"/api/v1/me/avatar.png", NOT_FOUND), (b"/api/v1/me%3bx.css", NOT_FOUND),
    (b"/api/v1/me%3f.css", NOT_FOUND), (b"/api/v1/me%23.css", NOT_FOUND), (b"/api/v1/models.json", NOT_FOUND), (b"/api/v1/models.", NOT_FOUND),
    (b"/api/v1/models%2ejson", NOT_FOUND), (b"/api/v1/index.html", NOT_FOUND), (b"/api/v1/models/a%3fb", ID), (b"/api/v1/models/a%23b", ID),
    // Similar letters, other versions, other names.
    (b"/API/v1/models", NOT_FOUND), (b"/api/V1/models", NOT_FOUND), (b"/api/v1/Models", NOT_FOUND), (b"/api/v1/MODELS", NOT_FOUND), (b"/api/v1/Me", NOT_FOUND),
    (b"/api/v01/models", NOT_FOUND), (b"/api/v1.0/models", NOT_FOUND), (b"/api/v2/models", NOT_FOUND), (b"/api/models", NOT_FOUND), (b"/v1/models", NOT_FOUND),
    (b"/api/v1/models/atlas/History", NOT_FOUND), (b"/api/v1/analytics", NOT_FOUND), (b"/api/v1/analytics/", NOT_FOUND), (b"/api/v1/model", NOT_FOUND),
    (b"/api/v1/modelss", NOT_FOUND), (b"/api/v1models", NOT_FOUND), (b"/api/v1/models/atlas/x", NOT_FOUND), (b"/api/v1/models/-", ID),
    (b"/api/v1/models/_atlas", ID), (b"/api/v1/models/:id", ID), (b"/api/v1/models/{id}", ID), (b"/api/v1/models/*", ID),
    (b"/api/v1/models/a+b", ID), (b"/api/v1/models/a,b", ID), (b"/api/v1/models/a@b", ID), (b"/api/v1/models/a~", ID), (b"/api/v1/models/a=b", ID),
    (b"/metrics", NOT_FOUND), (b"/admin", NOT_FOUND), (b"/healthz/", NOT_FOUND), (b"/favicon.png", NOT_FOUND), (b"/.env", NOT_FOUND), (b"/.git/config", NOT_FOUND),
    // Bytes that are not ASCII, and invalid targets.
    ("/api/v1/models/ätlas".as_bytes(), BAD), ("/api/v1/mödels".as_bytes(), BAD), ("/api/v1/models?x=ä".as_bytes(), BAD),
    (b"/api/v1/models/\xff", BARE), (b"/api/v1/models/\xc0\xaf", BARE), (b"/api/v1/models/a\x00", BARE), (b"/api/v1/models/a\x0b", BARE),
    (b"/api/v1/models/a\tb", BARE), (b"/api/v1/models/a b", BARE), (b"api/v1/models", BARE), (b"", BARE), (b"/api/v1/models/<a>", BARE),
    (b"?period=24h", BARE), (b"*", BAD), (b"/*", NOT_FOUND),
    (b"http://a/api/v1/models", BAD), (b"HTTP://a/api/v1/models", BAD), (b"ftp://localhost/api/v1/models", BAD),
    (b"http://evil.example/api/v1/models", BAD), (b"http:/api/v1/models", BARE), (b"file:///etc/passwd", BARE), (b"localhost", BAD), (b"localhost:80", BAD),
];

#[tokio::test]
async fn paths_no_malformed_path_succeeds_or_reaches_the_backend() {
    assert!(MALFORMED.len() >= 80);
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    let mut wrong = Vec::new();
    for (target, (status, code)) in MALFORMED {
        let mut connection = Connection::open(world.address()).await;
        connection.write(&get(target, &key)).await;
        let response = connection
            .read(false)
            .await
            .unwrap_or_else(|| panic!("no response: {}", show(target)));
        let response_code = if is_codec_response(&response) || response.status < 400 {
            String::new()
        } else {
            response.code()
        };
        if (response.status, response_code.as_str()) != (*status, *code) {
            wrong.push(format!(
                "{}: {} {response_code}, not {status} {code}",
                show(target),
                response.status
            ));
        }
        if !is_codec_response(&response) {
            world.check("GET", &String::from_utf8_lossy(target), &response);
        }
        if response.closes() {
            assert!(connection.is_closed().await, "{}", show(target));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(
        world.backend.received().is_empty(),
        "{:?}",
        world.backend.received()
    );
    assert_eq!(world.running.gateway().engine.documents.count(), 0);
    let lost = MALFORMED
        .iter()
        .filter(|(_, response)| *response == NOT_FOUND)
        .count();
    let counted = world
        .counted("scoregate_refusals_total{code=\"not_found\"}")
        .await;
    assert_eq!(usize::try_from(counted).unwrap(), lost);
}

#[tokio::test]
async fn paths_an_unauthenticated_client_gets_the_same_401_for_all_of_them() {
    let world = World::with(WIDE, good).await;
    for (target, (_, code)) in MALFORMED
        .iter()
        .filter(|(_, response)| *response == NOT_FOUND || *response == ID)
    {
        for key in ["", "wrong"] {
            let mut connection = Connection::open(world.address()).await;
            connection.write(&get(target, key)).await;
            let response = connection.read(false).await.unwrap();
            let expected = if key.is_empty() {
                "api_key_required"
            } else {
                "invalid_api_key"
            };
            assert_eq!(
                (response.status, response.code().as_str()),
                (401, expected),
                "{} {code}",
                show(target)
            );
        }
    }
}

#[tokio::test]
async fn paths_an_escaped_letter_is_that_letter_and_is_sent_unescaped_to_the_backend() {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    let mut connection = Connection::open(world.address()).await;
    for target in [
        "/api/v1/models/atlas/history",
        "/api/v1/models/%61tlas/history",
        "/api/v1/models/a%74las/histor%79",
        "/api/v1/mode%6Cs/atlas/%68istory?",
        "/api/v1/models/atlas/history?x=../../me",
    ] {
        assert_eq!(
            connection.send(world.get(target).key(&key)).await.status,
            200,
            "{target}"
        );
    }
    let received: Vec<String> = world
        .backend
        .received()
        .into_iter()
        .map(|received| received.line)
        .collect();
    assert_eq!(
        received,
        ["GET /api/v1/models/atlas/history?period=latest HTTP/1.1"]
    );
}

#[tokio::test]
async fn paths_me_is_never_stored_with_any_suffix() {
    let world = World::with(WIDE, good).await;
    let one = world.customer("pro").await;
    let two = world.customer("free").await;
    let mut connection = Connection::open(world.address()).await;
    for target in [
        "/api/v1/me",
        "/api/v1/me?x.css",
        "/api/v1/me?/x.css",
        "/api/v1/me?.js&period=7D",
        "/api/v1/%6de",
    ] {
        let mut seen = BTreeSet::new();
        for customer in [&one, &two, &one] {
            let response = connection.send(world.get(target).key(&customer.key)).await;
            assert_eq!(
                (response.status, response.header("cache-control")),
                (200, "private, no-store"),
                "{target}"
            );
            assert_eq!(response.header("etag"), "", "{target}");
            seen.insert(
                response.json()["data"][0]["application"]["id"]
                    .as_str()
                    .unwrap()
                    .to_owned(),
            );
        }
        assert_eq!(
            seen,
            BTreeSet::from([one.id.to_string(), two.id.to_string()]),
            "{target}"
        );
    }
    assert!(world.backend.received().is_empty());
    assert_eq!(world.running.gateway().engine.documents.count(), 0);
}

#[tokio::test]
async fn paths_headers_that_name_another_path_or_host_change_nothing() {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    let plain = world.get("/api/v1/models").key(&key).send().await;
    for (name, value) in [
        ("X-Original-URL", "/api/v1/me"),
        ("X-Rewrite-URL", "/api/v1/me"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Prefix", "/evil"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("Forwarded", "host=evil.example"),
        ("Accept-Language", "de"),
        ("Origin", "https://evil.example"),
        ("Cookie", "a=1"),
    ] {
        let response = world
            .get("/api/v1/models")
            .key(&key)
            .header(name, value)
            .send()
            .await;
        assert_eq!(
            (response.status, &response.body),
            (200, &plain.body),
            "{name}"
        );
        assert_eq!(response.header("etag"), plain.header("etag"), "{name}");
    }
    assert_eq!(world.backend.received().len(), 1);
}
