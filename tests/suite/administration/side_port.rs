//! The side port over TCP with careless or hostile clients: foreign hosts, unfinished heads and
//! bodies.
//!
//! Its routes are in `side_port_keys` and `side_port_settings`.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};

use crate::{
    client::{Connection, Response},
    world::{World, good},
};

const TOKEN: &str = "a-token-of-the-side-port";
const WITH_TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"\n";
const LARGEST_BODY: usize = 65_536;
const LARGEST_BATCH: usize = 4 << 20;

/// The response of the side port to these bytes, on a new connection.
async fn response_to(world: &World, bytes: &str) -> Response {
    let mut connection = Connection::open(world.running.side).await;
    connection.write(bytes.as_bytes()).await;
    connection.read(false).await.unwrap()
}

fn error(response: &Response) -> String {
    response.json()["error"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", response.fingerprint))
        .to_owned()
}

#[tokio::test]
async fn the_side_port_refuses_a_foreign_host_unless_it_is_listed() {
    let mut world = World::with(
        "admin.hosts = [\"gateway\", \"Scoregate-Side.example\"]\n",
        good,
    )
    .await;
    let status = async |world: &World, path: &str, host: &str| {
        let response = response_to(
            world,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        )
        .await;
        if response.status == 421 {
            let error = error(&response);
            assert!(
                error.contains("admin.hosts") && !error.contains("evil"),
                "{error}"
            );
        }
        response.status
    };
    for path in ["/metrics", "/healthz", "/readyz"] {
        for host in [
            "127.0.0.1:9464",
            "10.1.2.3",
            "[::1]:9464",
            "[fe80::1]",
            "localhost",
            "LocalHost.:9464",
            "gateway:9464",
            "GATEWAY",
            "scoregate-side.example.:1",
        ] {
            assert_eq!(status(&world, path, host).await, 200, "{path} for {host}");
        }
        for host in [
            "evil.example",
            "evil.example:9464",
            "gateway.evil.example",
            "evilgateway",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "gateway:",
            "gateway:x",
            "127.0.0.1\r\nHost: evil.example",
            "evil.example\r\nHost: 127.0.0.1",
            "",
        ] {
            assert_eq!(status(&world, path, host).await, 421, "{path} for {host:?}");
        }
        let absolute = format!("GET http://evil.example{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(response_to(&world, &absolute).await.status, 421, "{path}");
        // A load balancer with HTTP/1.0 sends no Host; a browser always does.
        let without = response_to(&world, &format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert_eq!(without.status, 200, "{path}");
    }
    assert_eq!(status(&world, "/v1/nothing", "evil.example").await, 421);
    world.reload("admin.hosts = [\"other\"]\n").await.unwrap();
    assert_eq!(status(&world, "/metrics", "gateway").await, 421);
    assert_eq!(status(&world, "/metrics", "other").await, 200);
}

#[tokio::test]
async fn the_unix_socket_of_the_side_port_needs_no_host() {
    let world = World::new().await;
    for host in ["Host: evil.example\r\n", ""] {
        let socket = world.directory.path().join("scoregate.sock");
        let mut stream = UnixStream::connect(socket).await.unwrap();
        stream
            .write_all(
                format!("GET /v1/settings/list HTTP/1.1\r\n{host}Connection: close\r\n\r\n")
                    .as_bytes(),
            )
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_for_a_command_is_a_413_with_the_limit() {
    let world = World::with(WITH_TOKEN, good).await;
    for (path, limit) in [
        ("/v1/keys/create", LARGEST_BODY),
        ("/v1/cache/purge", LARGEST_BODY),
        ("/v1/keys/import", LARGEST_BATCH),
    ] {
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n");
        let oversized = response_to(
            &world,
            &format!("{head}Content-Length: {}\r\n\r\n", limit + 1),
        )
        .await;
        assert!(oversized.closes(), "the body is not read");
        let chunk = "a".repeat(1024);
        let chunks = format!("400\r\n{chunk}\r\n").repeat(limit / 1024) + "1\r\nb\r\n0\r\n\r\n";
        let streamed = response_to(
            &world,
            &format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}"),
        )
        .await;
        for response in [oversized, streamed] {
            assert_eq!(response.status, 413, "{path}: {}", response.fingerprint);
            assert!(
                error(&response).contains(&limit.to_string()),
                "{}",
                error(&response)
            );
        }
        let whole = response_to(
            &world,
            &format!("{head}Content-Length: {limit}\r\n\r\n{}", "a".repeat(limit)),
        )
        .await;
        assert_eq!(whole.status, 400, "{path}: {}", whole.fingerprint);
    }
}

#[tokio::test]
async fn a_body_that_does_not_arrive_within_ten_seconds_is_a_408_and_cut_off() {
    let world = World::with(WITH_TOKEN, good).await;
    let head = format!(
        "POST /v1/keys/create HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    );
    let mut stream = TcpStream::connect(world.running.side).await.unwrap();
    let head_with_expect = format!("{head}Expect: 100-continue\r\nContent-Length: 50\r\n\r\n");
    stream.write_all(head_with_expect.as_bytes()).await.unwrap();
    // The interim response shows that the body is being read.
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    let mut connection = Connection::over(stream);
    world.pass(Duration::from_millis(9_999));
    connection.write(b"{\"name\":").await;
    world.pass(Duration::from_millis(1));
    let response = connection.read(false).await.unwrap();
    assert_eq!(response.status, 408, "{}", response.fingerprint);
    assert!(
        error(&response).contains("10 s") && response.closes(),
        "{}",
        response.fingerprint
    );
    assert!(connection.is_closed().await);
}
