//! Bad responses of the backend: each has its error code, and none is ever stored or replaces good data.

use std::time::Duration;

use crate::{
    backend::{Act, json, respond},
    world::World,
};

const ATLAS: &str = "/api/v1/models/atlas";
const MODELS: &str = "/api/v1/models?period=24h";
/// A small cap, so that a response above it is small too.
const CAPPED: &str = "[upstream]\nurl = \"{backend}\"\nmax_body = \"1KiB\"";

/// Longer than any Retry-After of these responses.
const REST: Duration = Duration::from_secs(70);

const GOOD: &str =
    r#"{"generated_at":"2026-11-21T12:00:00Z","data":[{"id":"atlas","currentScore":1}]}"#;

fn closed(head: &str, body: &str) -> Act {
    Act::RawThenClose(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").into_bytes())
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n";

/// A good response after this many interim ones.
fn after_interim(number: usize) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
    let good = format!("{head}: {}\r\n\r\n{GOOD}", GOOD.len());
    [INTERIM.repeat(number), good.into()].concat()
}

/// Truncated responses.
fn truncated() -> Vec<(String, Act)> {
    let mut acts = Vec::new();
    for cut in [0, 1, GOOD.len() / 2, GOOD.len() * 99 / 100, GOOD.len() - 1] {
        let length = format!("content-length: {}", GOOD.len());
        acts.push((
            format!("cut at {cut} by length"),
            closed(&length, &GOOD[..cut]),
        ));
        let chunks = if cut == 0 {
            String::new()
        } else {
            chunk(&GOOD[..cut])
        };
        acts.push((
            format!("cut at {cut} in chunks"),
            closed("transfer-encoding: chunked", &chunks),
        ));
        let to_the_end = closed("content-type: application/json", &GOOD[..cut]);
        acts.push((format!("cut at {cut} by the connection's end"), to_the_end));
    }
    let all_but_the_end = closed("transfer-encoding: chunked", &chunk(GOOD));
    acts.push(("all chunks but the last, empty one".into(), all_but_the_end));
    acts.push((
        "half a chunk".into(),
        closed("transfer-encoding: chunked", &chunk(GOOD)[..30]),
    ));
    acts
}

/// Complete responses without data.
fn unusable() -> Vec<(String, Act)> {
    let with = |name: &str, act: Act| (name.to_owned(), act);
    let body = |body: &str| (body.to_owned(), json(body));
    let large = format!(r#"[{{"id":"{}"}}]"#, "x".repeat(1_100));
    let mut gzipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    std::io::Write::write_all(&mut gzipped, GOOD.as_bytes()).unwrap();
    let gzipped = gzipped.finish().unwrap();
    let mut encoded = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
        gzipped.len()
    )
    .into_bytes();
    encoded.extend(gzipped);
    vec![
        with(
            "it ends with the connection",
            closed("content-type: application/json", GOOD),
        ),
        with("it is encoded", Act::Raw(encoded)),
        with(
            "it claims to be encoded",
            respond("200 OK", &[("content-encoding", "br")], GOOD),
        ),
        with("its length is too large", json(&large)),
        with(
            "its body is too large",
            closed("transfer-encoding: chunked", &(chunk(&large) + "0\r\n\r\n")),
        ),
        with(
            "it is a page",
            respond(
                "200 OK",
                &[("content-type", "text/html")],
                "<html>it works</html>",
            ),
        ),
        with(
            "it is partial",
            respond(
                "206 Partial Content",
                &[("content-range", "bytes 0-9/99")],
                GOOD,
            ),
        ),
        with(
            "it is a redirect",
            respond("301 Moved Permanently", &[("location", "/api/v1/else")], ""),
        ),
        with("it is refused", respond("403 Forbidden", &[], GOOD)),
        with(
            "it is unchanged without a known tag",
            Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into()),
        ),
        with(
            "it follows 17 interim responses",
            Act::Raw(after_interim(17)),
        ),
        with(
            "interim responses have no end",
            Act::Flood(Vec::new(), INTERIM.into(), usize::MAX),
        ),
        with(
            "it is not UTF-8",
            Act::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n[\"\xff]".into()),
        ),
        body(r#"{"success":false,"data":[{"id":"atlas"}]}"#),
        body(""),
        body("null"),
        body("7"),
        body(r#"{"error":"x"}"#),
        body(r#"{"data":null}"#),
        body(r#"{"data":[1]}"#),
        body(r#"{"data":[{"id":"a"}]"#),
        body(r#"[{"id":"a"}] x"#),
        body(r#"[{"id":"a",}]"#),
        body(r#"{"data":[],"data":[{"id":"a"}]}"#),
        body(r#"{"success":true,"success":false,"data":[]}"#),
        body(r#"[{"name":"atlas","latestScore":1,"latestScore":2}]"#),
        body(r#"[{"id":"atlas","id":"boreas","latestScore":1}]"#),
    ]
}

/// Interval of fetches of unknown models.
const BETWEEN_PROBES: Duration = Duration::from_secs(1);

/// Responses that report a temporary failure.
fn unavailable() -> Vec<(String, Act)> {
    let with = |name: &str, act: Act| (name.to_owned(), act);
    vec![
        with("500", respond("500 Internal Server Error", &[], GOOD)),
        with(
            "503",
            respond("503 Service Unavailable", &[("retry-after", "70")], ""),
        ),
        with(
            "429",
            respond("429 Too Many Requests", &[("retry-after", "70")], GOOD),
        ),
        with(
            "it closes without a response",
            Act::RawThenClose(Vec::new()),
        ),
        with(
            "it closes within the head",
            Act::RawThenClose(b"HTTP/1.1 200 OK\r\ncontent-".into()),
        ),
    ]
}

/// Whether a request that fails like this on a reused connection is retried.
fn is_retried(name: &str) -> bool {
    name.starts_with("it closes")
}

fn all() -> Vec<(String, Act, u16)> {
    let with_status = |status: u16| move |(name, act)| (name, act, status);
    let invalid = truncated()
        .into_iter()
        .chain(unusable())
        .map(with_status(502));
    invalid
        .chain(unavailable().into_iter().map(with_status(503)))
        .collect()
}

#[tokio::test]
async fn a_response_after_16_interim_ones_is_used() {
    let world = World::with(CAPPED, |_| Act::Raw(after_interim(16))).await;
    let customer = world.free().await;
    assert_eq!(world.get_as(&customer, ATLAS).await.status, 200);
}

#[tokio::test]
async fn a_bad_response_has_its_code_and_the_next_good_one_is_used_at_once() {
    let about = |id: &str| json(&GOOD.replace("atlas", id));
    let world = World::with(CAPPED, move |got| {
        about(got.target().rsplit('/').next().unwrap())
    })
    .await;
    let customer = world.free().await;
    let mut invalid = 0;
    let mut away = 0;
    for (number, (name, act, status)) in all().into_iter().enumerate() {
        let unseen = format!("/api/v1/models/m{number}");
        world.pass(BETWEEN_PROBES);
        if is_retried(&name) {
            world.backend.next(act.clone());
        }
        world.backend.next(act);
        let refused = world.get_as(&customer, &unseen).await;
        assert_eq!(refused.status, status, "{name}");
        if status == 502 {
            invalid += 1;
            assert_eq!(refused.code(), "upstream_invalid", "{name}");
        } else {
            away += 1;
            assert_eq!(refused.code(), "upstream_unavailable", "{name}");
            let wait = if name == "503" || name == "429" {
                "70"
            } else {
                "5"
            };
            assert_eq!(refused.header("retry-after"), wait, "{name}");
        }
        assert_eq!(refused.header("cache-control"), "no-store");
        let text = String::from_utf8(refused.body).unwrap();
        assert!(
            !text.contains("atlas") && !text.contains("127.0.0.1"),
            "{name}: {text}"
        );
        world.pass(REST);
        let good = world.get_as(&customer, &unseen).await;
        assert_eq!(
            good.header("cache-status"),
            "scoregate; fwd=miss; stored; detail=miss",
            "{name}"
        );
    }
    assert_eq!(world.refused("upstream_invalid").await, invalid);
    assert_eq!(world.refused("upstream_unavailable").await, away);
    let calls = world
        .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
        .await;
    assert_eq!(calls, invalid);
}

#[tokio::test]
async fn a_bad_response_never_replaces_good_data() {
    let world = World::with(CAPPED, |_| json(GOOD)).await;
    let customer = world.free().await;
    let good = world.get_as(&customer, ATLAS).await;
    let mut calls = 1;
    let mut twice = 0;
    for (name, act, _) in all()
        .into_iter()
        .filter(|(name, ..)| !name.starts_with("it is unchanged"))
    {
        world.pass(Duration::from_hours(2));
        for (hours, outcome) in [(0, "stale"), (25, "stale_on_error")] {
            world.pass(Duration::from_hours(hours));
            // The second time the connection is new.
            if hours == 0 && is_retried(&name) {
                world.backend.next(act.clone());
                twice += 1;
            }
            world.backend.next(act.clone());
            let served = world.served(outcome).await;
            let stale = world.get_as(&customer, ATLAS).await;
            assert_eq!((stale.status, &stale.body), (200, &good.body), "{name}");
            assert!(
                stale.header("cache-status").ends_with("detail=stale"),
                "{name}"
            );
            assert_eq!(stale.header("etag"), good.header("etag"));
            assert_eq!(world.served(outcome).await, served + 1, "{name} {outcome}");
            calls += 1;
            world.fetched(calls).await;
        }
        // Each case begins with a document that was just revalidated.
        world.pass(REST);
        let confirmed = world.get_as(&customer, ATLAS).await;
        assert!(
            confirmed
                .header("cache-status")
                .ends_with("detail=refreshed"),
            "{name}"
        );
        calls += 1;
        assert_eq!(
            world.backend.received().len(),
            calls as usize + twice,
            "{name}"
        );
    }
}

#[tokio::test]
async fn after_a_bad_response_the_next_good_one_is_used_within_a_second() {
    let with = |name: &str, act: Act| (name.to_owned(), act, 0);
    let mut bad = all();
    // One case of each kind: the previous test has all cases.
    bad.retain(|(name, ..)| {
        [
            "cut at 1 by length",
            "it is a page",
            "it closes within the head",
        ]
        .contains(&&**name)
    });
    bad.extend([
        with("400", respond("400 Bad Request", &[], GOOD)),
        with("404", respond("404 Not Found", &[], GOOD)),
        with(
            "404 of a page",
            respond("404 Not Found", &[("content-type", "text/html")], "<html>"),
        ),
        with(
            "429 without Retry-After",
            respond("429 Too Many Requests", &[], ""),
        ),
        with(
            "503 without Retry-After",
            respond("503 Service Unavailable", &[], ""),
        ),
    ]);
    for (name, act, _) in bad {
        let world = World::with(CAPPED, |_| json(GOOD)).await;
        let customer = world.free().await;
        for score in [7, 8, 9] {
            let bad = act.clone();
            world.backend.set_script(move |_| bad.clone());
            let response = world.get_as(&customer, MODELS).await;
            world.settled().await;
            assert_eq!(response.status == 200, score > 7, "{name} {score}");
            world
                .backend
                .set_script(move |_| json(&GOOD.replace(":1}", &format!(":{score}}}"))));
            world.pass(Duration::from_secs(1));
            world.get_as(&customer, MODELS).await;
            world.settled().await;
            let good = world.get_as(&customer, MODELS).await;
            assert_eq!(good.json()["data"][0]["currentScore"], score, "{name}");
            // The first was a miss, the second is stale immediately, the third when an error would be returned.
            world.pass(Duration::from_hours(if score == 7 { 2 } else { 26 }));
        }
    }
}

#[tokio::test]
async fn an_empty_list_replaces_a_full_one_only_when_it_is_received_twice() {
    let world = World::with("", |_| json(GOOD)).await;
    let customer = world.paid().await;
    let full = world.get_as(&customer, MODELS).await;
    world
        .backend
        .set_script(|_| json(r#"{"success":true,"data":[]}"#));
    let mut seen = Vec::new();
    for calls in 2..=4 {
        world.pass(Duration::from_hours(2));
        seen.push(world.get_as(&customer, MODELS).await.body == full.body);
        world.fetched(calls).await;
    }
    assert_eq!(
        seen,
        [true, true, false],
        "the first empty list was rejected, the second was stored"
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"invalid\"}")
            .await,
        1
    );

    // After a full list, the next empty one is rejected again.
    world.backend.set_script(|_| json(GOOD));
    world.pass(Duration::from_hours(2));
    world.get_as(&customer, MODELS).await;
    world.fetched(5).await;
    world
        .backend
        .set_script(|_| json(r#"{"success":true,"data":[]}"#));
    world.pass(Duration::from_hours(2));
    world.get_as(&customer, MODELS).await;
    world.fetched(6).await;
    assert_eq!(world.get_as(&customer, MODELS).await.json()["count"], 1);
    // Without previous data, an empty list is accepted.
    assert_eq!(
        world.get_as(&customer, "/api/v1/alerts").await.json()["count"],
        0
    );
}

#[tokio::test]
async fn no_list_is_missing() {
    let world = World::with("", |_| respond("404 Not Found", &[], "")).await;
    let customer = world.free().await;
    for target in [
        MODELS,
        "/api/v1/index",
        "/api/v1/analytics/transparency",
        "/api/v1/incidents",
    ] {
        assert_eq!(
            world.get_as(&customer, target).await.code(),
            "upstream_invalid",
            "{target}"
        );
    }
    for target in [ATLAS, "/api/v1/models/atlas/history", "/api/v1/drift/atlas"] {
        world.pass(BETWEEN_PROBES);
        assert_eq!(
            world.get_as(&customer, target).await.code(),
            "model_not_found",
            "{target}"
        );
    }
    assert_eq!(world.refused("upstream_invalid").await, 4);
}

#[tokio::test]
async fn bytes_after_a_response_are_never_served() {
    let world = World::with("", |_| json(GOOD)).await;
    let customer = world.free().await;
    let mut extra = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{GOOD}",
        GOOD.len()
    );
    extra.push_str("HTTP/1.1 200 OK\r\ncontent-length: 18\r\n\r\n[{\"id\":\"smuggled\"}]");
    world.backend.next(Act::Raw(extra.into_bytes()));
    for target in [ATLAS, MODELS, "/api/v1/index", "/api/v1/alerts"] {
        let response = world.get_as(&customer, target).await;
        assert_eq!(
            (response.status, &response.json()["data"][0]["id"]),
            (200, &"atlas".into()),
            "{target}"
        );
    }
    assert_eq!(world.served("miss").await, 4);
}
