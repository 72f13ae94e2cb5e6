//! Message framing: bodies, lengths, hosts, forms of the target, methods, sizes. Any ambiguity has one response and
//! closes the connection; smuggled requests after it are never answered.

use crate::client::Connection;
use crate::raw::{After, exchange, is_codec_response, show};
use crate::world::{Customer, World, good};

const WIDE: &str = "guard.per_minute = 100000";
/// A complete request that must not be answered.
const INNER: &str =
    "GET /api/v1/models/smuggled HTTP/1.1\r\nHost: localhost\r\nX-API-Key: KEY\r\n\r\n";

/// Ambiguous heads. `KEY` is a valid key and `INNER` a complete request; each is refused with a 400 and closes. Those
/// that the codec itself refuses as invalid HTTP are marked.
#[rustfmt::skip]
const DOUBTFUL: &[(&str, bool)] = &[
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 5\r\n\r\nhello", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 90\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 5\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 00\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", false),
    ("HEAD /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 5\r\n\r\nhello", false),
    ("POST /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 5\r\n\r\nhello", false),
    ("OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", false),
    ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: identity\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked, gzip\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: xchunked\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.0\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding : chunked\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\tgzip\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length:\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 0, 0\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: +0\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: -1\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 0x5\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\nContent-Length: 18446744073709551616\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nHost: a\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nHost: b\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost:\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a, b\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a b\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: user@a\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a/x\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.0\r\nHost: a\r\nHost: b\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET / HTTP/1.1\r\n\r\nINNER", false),
    ("GET * HTTP/1.1\r\nHost: a\r\n\r\nINNER", false),
    ("GET http://b/api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: KEY\r\n\r\nINNER", false),
    ("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\nINNER", false),
    ("OPTIONS http://a:81/ HTTP/1.1\r\nHost: a\r\n\r\nINNER", false),
    ("GET a:80 HTTP/1.1\r\nHost: a:80\r\n\r\nINNER", false),
    ("GET /api/v1/models HTTP/1.1\r\n: x\r\nHost: a\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost : a\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\n Host: a\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer\0KEY\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer KEY\rX: y\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/1.2\r\nHost: a\r\n\r\nINNER", true),
    ("GET /api/v1/models HTTP/2.0\r\nHost: a\r\n\r\nINNER", true),
    ("GET /api/v1/models http/1.1\r\nHost: a\r\n\r\nINNER", true),
    ("GET /api/v1/models\r\nHost: a\r\n\r\nINNER", true),
    ("GET  /api/v1/models HTTP/1.1\r\nHost: a\r\n\r\nINNER", true),
    ("GET /api/v1/models  HTTP/1.1\r\nHost: a\r\n\r\nINNER", true),
    ("G\u{cb}T /api/v1/models HTTP/1.1\r\nHost: a\r\n\r\nINNER", true),
    ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", true),
];

async fn wide() -> (World, String) {
    let world = World::with(WIDE, good).await;
    let Customer { key, .. } = world.customer("pro").await;
    (world, key)
}

#[tokio::test]
async fn framing_every_ambiguity_is_one_400_and_closes_the_connection() {
    let (world, key) = wide().await;
    let mut wrong = Vec::new();
    for (row, bare) in DOUBTFUL {
        let bytes = row.replace("INNER", INNER).replace("KEY", &key);
        let (response, after) = exchange(&world, bytes.as_bytes()).await;
        if (response.status, after, is_codec_response(&response)) != (400, After::Closed, *bare) {
            wrong.push(format!(
                "{}: {} {after:?} {}",
                show(row.as_bytes()),
                response.status,
                show(&response.body)
            ));
        } else if !bare && !bytes.starts_with("HEAD") {
            assert_eq!(response.code(), "bad_request", "{}", show(row.as_bytes()));
            world.check("GET", "/", &response);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(world.backend.received().is_empty());
    let counted = world
        .counted("scoregate_refusals_total{code=\"bad_request\"}")
        .await;
    assert_eq!(
        usize::try_from(counted).unwrap(),
        DOUBTFUL.iter().filter(|(_, bare)| !bare).count()
    );
}

#[tokio::test]
async fn framing_a_body_is_refused_on_every_route() {
    let (world, key) = wide().await;
    // A hit, a miss, a 401, a 403, a 404 and a 429: the body is detected before any of them.
    assert_eq!(
        world.get("/api/v1/models").key(&key).send().await.status,
        200
    );
    let free = world.customer("free").await;
    assert_eq!(
        world
            .get("/api/v1/models")
            .key(&free.key)
            .send()
            .await
            .status,
        200
    );
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
async fn framing_every_other_method_is_one_405() {
    let (world, key) = wide().await;
    for method in [
        "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "BREW", "get", "Get", "G", "PRI",
        "QUERY",
    ] {
        let bytes =
            format!("{method} /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
        let (response, after) = exchange(&world, bytes.as_bytes()).await;
        assert_eq!(
            (response.code().as_str(), after),
            ("method_not_allowed", After::Open),
            "{method}"
        );
        world.check(method, "/api/v1/models", &response);
    }
    assert!(world.backend.received().is_empty());
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"method_not_allowed\"}")
            .await,
        12
    );
}

#[tokio::test]
async fn framing_a_connect_is_a_405_that_opens_no_tunnel_and_its_payload_is_not_answered() {
    let (world, key) = wide().await;
    // A client need not wait for the response and may send the payload of the tunnel immediately.
    for target in ["backend.example:443", "127.0.0.1:80", "localhost:1"] {
        let inner = INNER.replace("KEY", &key);
        let bytes = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n{inner}");
        let (response, after) = exchange(&world, bytes.as_bytes()).await;
        assert_eq!(
            (response.status, response.code().as_str()),
            (405, "method_not_allowed"),
            "{target}"
        );
        assert_eq!(after, After::Closed, "{target}");
        world.check("CONNECT", "/", &response);
    }
    assert!(world.backend.received().is_empty());
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"method_not_allowed\"}")
            .await,
        3
    );
}

#[tokio::test]
async fn framing_pipelined_requests_are_answered_in_order() {
    let (world, key) = wide().await;
    let mut connection = Connection::open(world.address()).await;
    let request =
        |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
    let targets = [
        "/api/v1/models",
        "/nothing",
        "/api/v1/index",
        "/healthz",
        "/api/v1/models?period=7D",
    ];
    connection
        .write(targets.map(request).concat().as_bytes())
        .await;
    for status in [200, 404, 200, 200, 400] {
        assert_eq!(connection.read(false).await.unwrap().status, status);
    }
}

#[tokio::test]
async fn framing_a_url_as_the_target_is_served_like_its_path() {
    let (world, key) = wide().await;
    let send = async |method: &str, target: &str, host: &str| {
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {key}\r\n\r\n");
        let (response, after) = exchange(&world, head.as_bytes()).await;
        assert_eq!(after, After::Open, "{method} {target}");
        response
    };
    for path in [
        "/api/v1/models",
        "/api/v1/models?period=24h",
        "/docs",
        "/healthz",
        "/openapi.json",
    ] {
        for method in ["GET", "HEAD", "OPTIONS", "PUT"] {
            let by_path = send(method, path, "a").await;
            for (target, host) in [
                (format!("http://a{path}"), "a"),
                (format!("https://a{path}"), "A"),
                (format!("http://A:80{path}"), "a"),
                (format!("http://[::1]:81{path}"), "[::1]:81"),
            ] {
                let by_url = send(method, &target, host).await;
                assert_eq!(by_url.status, by_path.status, "{method} {target}");
                assert_eq!(
                    by_url.header("etag"),
                    by_path.header("etag"),
                    "{method} {target}"
                );
                assert_eq!(
                    by_url.header("allow"),
                    by_path.header("allow"),
                    "{method} {target}"
                );
            }
        }
    }
    assert_eq!(
        send("GET", "http://a", "a").await.body,
        send("GET", "/", "a").await.body
    );
    let options = send("OPTIONS", "*", "a").await;
    assert_eq!(
        (options.status, options.header("allow")),
        (204, "GET, HEAD, OPTIONS")
    );
    assert_eq!(
        world.backend.received().len(),
        2,
        "a URL selects the same documents"
    );
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
        let mut connection = Connection::open(world.address()).await;
        connection
            .write(format!("{head}GET / HTTP/1.0\r\n\r\n").as_bytes())
            .await;
        let response = connection.read(false).await.unwrap();
        assert_eq!(response.status, status, "{head}");
        assert!(connection.is_closed().await, "{head}");
    }
}

#[tokio::test]
async fn framing_a_connection_close_request_is_honoured() {
    let (world, key) = wide().await;
    for target in ["/api/v1/models", "/docs", "/nothing"] {
        let bytes = format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
        );
        let (_, after) = exchange(&world, bytes.as_bytes()).await;
        assert_eq!(after, After::Closed, "{target}");
    }
}

#[tokio::test]
async fn framing_an_unambiguous_refusal_keeps_the_connection_open() {
    let (world, key) = wide().await;
    let free = world.customer("free").await;
    assert_eq!(
        world
            .get("/api/v1/models")
            .key(&free.key)
            .send()
            .await
            .status,
        200
    );
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
