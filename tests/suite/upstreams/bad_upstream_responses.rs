//! Upstream responses that fail before their data: unreachable backends, slow responses, oversized heads and
//! contradictory framing. Each has its error code, and no part of the response is stored or served.
//!
//! The gateway uses only HTTP/1.1 to backends, so failures of HTTP/2 cannot occur. Bad data in a valid response is in
//! `faults`.

use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

use crate::{
    backend::{Act, json, respond},
    world::{World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const DATA: &str =
    r#"{"generated_at":"2026-11-21T12:00:00Z","data":[{"id":"atlas","currentScore":1}]}"#;
const SECOND: Duration = Duration::from_secs(1);

/// A response whose bytes are sent one by one.
fn byte_by_byte(text: &str) -> Act {
    Act::Parts(text.bytes().map(|byte| vec![byte]).collect())
}

/// Checks that the same document is served a second later from a good response.
async fn assert_recovers(world: &World, name: &str) {
    let customer = world.paid().await;
    world.pass(SECOND);
    let good = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (good.status, good.header("cache-status")),
        (200, "scoregate; fwd=miss; stored; detail=miss"),
        "{name}"
    );
    assert_eq!(good.json()["data"][0]["id"], "atlas", "{name}");
    world.settled().await;
    assert_eq!(world.counted("scoregate_panics_total").await, 0, "{name}");
}

/// A backend whose accept queue is full: further connections neither succeed nor fail.
async fn black_hole() -> (String, Vec<TcpStream>, tokio::net::TcpListener) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // The kernel accepts one more than configured.
    let filling = [
        TcpStream::connect(address).await.unwrap(),
        TcpStream::connect(address).await.unwrap(),
    ];
    (format!("http://{address}"), filling.into(), listener)
}

#[tokio::test]
async fn a_backend_that_accepts_no_connection_is_a_504_after_the_connect_timeout() {
    let (url, _filling, _listener) = black_hole().await;
    let settings = format!("[upstream]\nurl = \"{url}\"\nconnect_timeout = \"50ms\"");
    let world = World::with(&settings, good).await;
    let customer = world.paid().await;
    let late = world.get_as(&customer, MODELS).await;
    assert_eq!((late.status, late.code()), (504, "upstream_timeout".into()));
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"timeout\"}")
            .await,
        1
    );
    assert_eq!(world.documents(), 0);
}

#[tokio::test]
async fn a_backend_that_accepts_no_connection_is_a_504_after_the_total_timeout_at_the_latest() {
    let (url, _filling, _listener) = black_hole().await;
    let settings = format!("[upstream]\nurl = \"{url}\"\nconnect_timeout = \"1h\"");
    let world = World::with(&settings, good).await;
    let customer = world.paid().await;
    let (late, ()) = tokio::join!(world.get_as(&customer, MODELS), async {
        world.reaches("scoregate_requests_in_progress", 1).await;
        world.wait_for_fetches(1).await;
        world.pass(Duration::from_secs(15));
    });
    assert_eq!((late.status, late.code()), (504, "upstream_timeout".into()));
}

#[tokio::test]
async fn a_response_of_one_byte_a_second_is_a_504_at_the_body_deadline() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n", DATA.len());
    // A head that is incomplete after 15 s, and a body that is incomplete after 20 s.
    for (name, at_once, dripped, seconds) in [
        ("head", "", head.as_str(), 15),
        ("body", &format!("{head}\r\n"), DATA, 20),
    ] {
        let world = World::with("freshness.max_wait = \"1m\"", good).await;
        let customer = world.paid().await;
        let Act::Parts(mut parts) = byte_by_byte(dripped) else {
            unreachable!()
        };
        parts.insert(0, at_once.as_bytes().to_vec());
        world.backend.next(Act::Parts(parts));
        world.backend.hold();
        let (late, ()) = tokio::join!(world.get_as(&customer, MODELS), async {
            world.backend.has_received(1).await;
            world.backend.release(1);
            world.backend.has_sent(1).await;
            for second in 1..seconds {
                world.backend.release(1);
                world.backend.has_sent(second + 1).await;
                world.pass(SECOND);
                assert_eq!(
                    world.counted("scoregate_requests_in_progress").await,
                    1,
                    "{name} {second}"
                );
            }
            world.pass(SECOND);
        });
        assert_eq!(
            (late.status, late.code()),
            (504, "upstream_timeout".into()),
            "{name}"
        );
        world.backend.open();
        assert_recovers(&world, name).await;
    }
}

/// Invalid response heads, each followed by good data.
fn contradictory() -> Vec<(String, Act)> {
    let length = DATA.len();
    let raw =
        |head: &str, body: &str| Act::Raw(format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes());
    let chunked = format!("{length:x}\r\n{DATA}\r\n0\r\n\r\n");
    let many = (0..1_000)
        .map(|number| format!("\r\nx-{number}: 1"))
        .collect::<Vec<_>>()
        .concat();
    let long = format!("\r\nx-long: {}", "x".repeat(1 << 20));
    [
        (
            "two lengths",
            raw(
                &format!("200 OK\r\ncontent-length: {length}\r\ncontent-length: 7"),
                DATA,
            ),
        ),
        (
            "chunks, then a length",
            raw(
                &format!("200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: {length}"),
                &chunked,
            ),
        ),
        (
            "a chunk without a size",
            raw(
                "200 OK\r\ntransfer-encoding: chunked",
                &format!("zz\r\n{DATA}\r\n0\r\n\r\n"),
            ),
        ),
        (
            "a thousand headers",
            raw(&format!("200 OK\r\ncontent-length: {length}{many}"), DATA),
        ),
        (
            "a header of a megabyte",
            raw(&format!("200 OK\r\ncontent-length: {length}{long}"), DATA),
        ),
        (
            "no HTTP",
            Act::Raw(format!("SSH-2.0-OpenSSH\r\n\r\n{DATA}").into_bytes()),
        ),
        (
            "another protocol",
            raw(
                "101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade",
                DATA,
            ),
        ),
        (
            "elsewhere",
            raw(
                &format!("301 Moved Permanently\r\nlocation: /\r\ncontent-length: {length}"),
                DATA,
            ),
        ),
        ("no content", raw("204 No Content", "")),
    ]
    .map(|(name, act)| (name.to_owned(), act))
    .into()
}

#[tokio::test]
async fn a_response_with_an_invalid_head_is_a_502_and_its_connection_is_not_reused() {
    let mut wrong = Vec::new();
    for (name, act) in contradictory() {
        let world = World::with("", |_| json(DATA)).await;
        let customer = world.paid().await;
        world.backend.next(act);
        let response = world.get_as(&customer, MODELS).await;
        let documents = world.documents();
        if (response.status, documents) != (502, 0) {
            wrong.push(format!(
                "{name}: {} with {documents} stored",
                response.status
            ));
            continue;
        }
        assert_eq!(
            (response.code(), world.backend.received().len()),
            ("upstream_invalid".into(), 1),
            "{name}"
        );
        assert_recovers(&world, &name).await;
        let connections: Vec<usize> = world
            .backend
            .received()
            .iter()
            .map(|one| one.connection)
            .collect();
        let may_be_kept = ["elsewhere", "no content"].contains(&&*name);
        assert!(
            may_be_kept || connections == [0, 1],
            "{name}: {connections:?}"
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test]
async fn the_response_body_decides_and_its_content_type_is_ignored() {
    for media_type in [
        "text/plain",
        "text/html; charset=utf-8",
        "application/octet-stream",
        "",
        "application/xml",
    ] {
        let of_type = [("content-type", media_type)];
        let data = respond("200 OK", &of_type, DATA);
        let page = "<html>it works</html>";
        let world = World::with("", move |_| data.clone()).await;
        let customer = world.paid().await;
        let response = world.get_as(&customer, MODELS).await;
        assert_eq!(
            (response.status, response.header("content-type")),
            (200, "application/json"),
            "{media_type}"
        );
        world.backend.next(respond(
            "200 OK",
            &[("content-type", "application/json")],
            page,
        ));
        let response = world.get_as(&customer, "/api/v1/index").await;
        assert_eq!(
            (response.status, response.code()),
            (502, "upstream_invalid".into()),
            "{media_type}"
        );
    }
}
