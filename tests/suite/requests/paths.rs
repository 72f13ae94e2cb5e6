//! Malformed paths: none is normalized, none succeeds, and the backend gets only canonical targets.

use std::collections::BTreeSet;

use crate::{
    raw::{get, is_codec_response, show},
    world::{World, good},
};

const WIDE: &str = "guard.per_minute = 100000";
/// Paths that do not exist.
const NOT_FOUND: &str = "
    /api/v1 /api/v1/ /api/v1/models/ /api/v1/models// /api/v1//models /api//v1/models //api/v1/models
    ///api/v1/models //evil.example/api/v1/models /./api/v1/models /api/v1/./models /api/v1/models/.
    /api/v1/models/.. /api/v1/models/../me /api/v1/me/../models /api/v1/../v1/models /../api/v1/models
    /api/v1/models/./history /api/v1/models/../history /api/v1/models//history /api/v1/models/atlas/
    /api/v1/models/atlas/. /api/v1/models/atlas/.. /api/v1/models/atlas//history /api/v1/models/atlas/history/
    /api/v1/models/atlas/./history /api/v1/models/atlas/history/.. /api/v1/drift/ /api/v1/drift /api/v1/drift/..
    /docs/../api/v1/models /docs// //docs /./ /api/v1/%2e/models /api/v1/%2e%2e/v1/models /%2e%2e/api/v1/models
    /api/v1%2fmodels /api%2fv1%2fmodels /%2fapi/v1/models /api/v1/models%2f /api/v1/models%2fatlas
    /api/v1/models%2f..%2fme /api/v1/me%2f /api/v1/me%2f..%2fmodels /api/v1/me/%2e%2e/models /api/v1%252fmodels
    /api/v1/mod% /api/v1/mode%6 /api/v1/me%00.css /api/v1/models%00 /api/v1/models%20 /api/v1/me%0a
    /api/v1\\models /api/v1/models\\..\\me /api/v1/models/..;/me /api/v1/..;/v1/models /api/v1/models;x=1
    /api/v1/models/atlas/history;x=1 /api/v1/me;.js /api/v1/me;/x.css /api/v1/me/x.css /api/v1/me.css /api/v1/me/
    /api/v1/me/avatar.png /api/v1/me%3bx.css /api/v1/me%3f.css /api/v1/me%23.css /api/v1/models.json
    /api/v1/models. /api/v1/models%2ejson /api/v1/index.html /API/v1/models /api/V1/models /api/v1/Models
    /api/v1/MODELS /api/v1/Me /api/v01/models /api/v1.0/models /api/v2/models /api/models /v1/models
    /api/v1/models/atlas/History /api/v1/analytics /api/v1/analytics/ /api/v1/model /api/v1/modelss /api/v1models
    /api/v1/models/atlas/x /metrics /admin /healthz/ /favicon.png /.env /.git/config /*
";

/// Paths with a malformed model identifier.
const INVALID_IDS: &str = "
    /api/v1/models/... /api/v1/models/.atlas /api/v1/models/%2e /api/v1/models/%2e%2e /api/v1/models/.%2e
    /api/v1/models/%2e. /api/v1/models/%2E%2E /api/v1/models/%2e%2e/history /api/v1/models/%2e%2e%2fme
    /api/v1/models/..%2fme /api/v1/models/atlas%2f /api/v1/models/atlas%2fhistory /api/v1/models/atlas%2F..%2Fme
    /api/v1/models/%2f /api/v1/models/%2fetc%2fpasswd /api/v1/models/atlas%2f..%2f..%2fme/history
    /api/v1/drift/%2e%2e /api/v1/drift/a%2fb /api/v1/models/%252e%252e /api/v1/models/a%252fb
    /api/v1/models/%25252e /api/v1/models/%c0%ae%c0%ae /api/v1/models/a%c0%afb /api/v1/models/a%e0%80%afb
    /api/v1/models/%ff /api/v1/models/a%80 /api/v1/models/% /api/v1/models/a% /api/v1/models/a%2
    /api/v1/models/a%zz /api/v1/models/a%u002e /api/v1/models/a%0 /api/v1/models/%ef%bc%8e%ef%bc%8e
    /api/v1/models/a%ef%bc%8fb /api/v1/models/%e2%80%aeatlas /api/v1/models/%00 /api/v1/models/atlas%00
    /api/v1/models/atlas%00.css /api/v1/models/a%0d%0aHost:%20evil /api/v1/models/a%0a /api/v1/models/a%20
    /api/v1/models/%20a /api/v1/models/a%09 /api/v1/models/a%7f /api/v1/models/..\\me /api/v1/models/a%5cb
    /api/v1/models/..%5cme /api/v1/models/..; /api/v1/models/atlas;x=1 /api/v1/models/a%3fb /api/v1/models/a%23b
    /api/v1/models/- /api/v1/models/_atlas /api/v1/models/:id /api/v1/models/{id} /api/v1/models/*
    /api/v1/models/a+b /api/v1/models/a,b /api/v1/models/a@b /api/v1/models/a~ /api/v1/models/a=b
";

/// Other malformed targets, with the code; without one the codec responds.
#[rustfmt::skip]
const MALFORMED: &[(&[u8], &str)] = &[
    (b"%2fapi/v1/models", ""),
    (b"\\api\\v1\\models", ""),
    ("/api/v1/models/ätlas".as_bytes(), "bad_request"),
    ("/api/v1/mödels".as_bytes(), "bad_request"),
    ("/api/v1/models?x=ä".as_bytes(), "bad_request"),
    (b"/api/v1/models/\xff", ""),
    (b"/api/v1/models/\xc0\xaf", ""),
    (b"/api/v1/models/a\x00", ""),
    (b"/api/v1/models/a\x0b", ""),
    (b"/api/v1/models/a\tb", ""),
    (b"/api/v1/models/a b", ""),
    (b"api/v1/models", ""),
    (b"", ""),
    (b"/api/v1/models/<a>", ""),
    (b"?period=24h", ""),
    (b"*", "bad_request"),
    (b"http://a/api/v1/models", "bad_request"),
    (b"HTTP://a/api/v1/models", "bad_request"),
    (b"ftp://localhost/api/v1/models", "bad_request"),
    (b"http://evil.example/api/v1/models", "bad_request"),
    (b"http:/api/v1/models", ""),
    (b"file:///etc/passwd", ""),
    (b"localhost", "bad_request"),
    (b"localhost:80", "bad_request"),
];

/// Every target and its code.
fn targets() -> impl Iterator<Item = (&'static [u8], &'static str)> {
    let paths = |paths: &'static str, code| {
        paths
            .split_whitespace()
            .map(move |path| (path.as_bytes(), code))
    };
    paths(NOT_FOUND, "not_found")
        .chain(paths(INVALID_IDS, "invalid_model_id"))
        .chain(MALFORMED.iter().copied())
}

#[tokio::test]
async fn paths_no_malformed_path_succeeds_or_reaches_the_backend() {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    let mut wrong = Vec::new();
    for (target, code) in targets() {
        let mut connection = world.connect().await;
        connection.write(&get(target, &key)).await;
        let response = connection
            .read(false)
            .await
            .unwrap_or_else(|| panic!("no response: {}", show(target)));
        let is_bare = is_codec_response(&response);
        let response_code = if is_bare {
            String::new()
        } else {
            response.code()
        };
        let status = if code == "not_found" { 404 } else { 400 };
        if (response.status, response_code.as_str()) != (status, code) {
            wrong.push(format!(
                "{}: {} {response_code}, not {code}",
                show(target),
                response.status
            ));
        }
        if !is_bare {
            world.check("GET", &String::from_utf8_lossy(target), &response);
        }
        if response.closes() {
            assert!(connection.is_closed().await, "{}", show(target));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let received = world.backend.received();
    assert!(received.is_empty(), "{received:?}");
    assert_eq!(world.documents(), 0);
    let lost = targets().filter(|(_, code)| *code == "not_found").count();
    assert_eq!(world.refused("not_found").await as usize, lost);
}

#[tokio::test]
async fn paths_an_unauthenticated_client_gets_the_same_401_for_all_of_them() {
    let world = World::with(WIDE, good).await;
    let is_path = |code: &str| ["not_found", "invalid_model_id"].contains(&code);
    for (target, _) in targets().filter(|(_, code)| is_path(code)) {
        for (key, expected) in [("", "api_key_required"), ("wrong", "invalid_api_key")] {
            let mut connection = world.connect().await;
            connection.write(&get(target, key)).await;
            let response = connection.read(false).await.unwrap();
            assert_eq!(response.code(), expected, "{}", show(target));
        }
    }
}

#[tokio::test]
async fn paths_an_escaped_letter_is_that_letter_and_is_sent_unescaped_to_the_backend() {
    let world = World::with(WIDE, good).await;
    let key = world.customer("pro").await.key;
    let mut connection = world.connect().await;
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
    let mut connection = world.connect().await;
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
    assert_eq!(world.documents(), 0);
}
