//! Deadlines of a connection: silent, partial requests, idle, waiting, not reading, maximum age. Each deadline is
//! exact to the millisecond by the manual clock; requests in time are answered.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use crate::{
    backend::{Act, Received},
    client::Connection,
    world::{World, good},
};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
const MINUTE_LESS_A_MOMENT: Duration = Duration::from_millis(59_999);
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

impl World {
    /// An accepted connection, on which these bytes have been sent.
    async fn caller(&self, bytes: &[u8]) -> Connection {
        let before = self.connections_seen().await;
        let mut connection = Connection::open(self.address()).await;
        while self.connections_seen().await == before {
            tokio::task::yield_now().await;
        }
        connection.write(bytes).await;
        connection
    }
}

impl Connection {
    /// The status of the response to this request.
    async fn status(&mut self, bytes: &[u8]) -> u16 {
        self.write(bytes).await;
        self.read(false).await.expect("a response").status
    }
}

#[tokio::test]
async fn an_incomplete_head_is_cut_off_after_nine_seconds_and_not_before() {
    let world = World::new().await;
    let start: [&[u8]; 9] = [
        b"",
        b"P",
        b"PRI",
        b"PRI * HTTP/2.0\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r",
        b"G",
        b"GET /healthz HT",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-",
        b"\r\n",
    ];
    let mut cut = Vec::new();
    for bytes in start {
        cut.push((world.caller(bytes).await, bytes));
    }
    let mut in_time = world.caller(b"").await;
    world.pass(Duration::from_millis(8_999));
    assert_eq!(in_time.status(HEALTH).await, 200);
    world.pass(MOMENT);
    for (mut connection, bytes) in cut {
        assert!(connection.is_closed().await, "{bytes:?}");
    }
    assert_eq!(world.ended("head_timeout").await, 9);
    assert_eq!(in_time.status(HEALTH).await, 200);
}

#[tokio::test]
async fn between_two_requests_a_connection_may_idle_for_a_minute() {
    let world = World::new().await;
    let mut idle = world.caller(b"").await;
    let mut busy = world.caller(b"").await;
    assert_eq!(
        (idle.status(HEALTH).await, busy.status(HEALTH).await),
        (200, 200)
    );
    world.pass(MINUTE_LESS_A_MOMENT);
    assert_eq!(busy.status(HEALTH).await, 200);
    world.pass(MOMENT);
    assert!(idle.is_closed().await);
    assert_eq!(busy.status(HEALTH).await, 200);
    assert_eq!(world.ended("idle_timeout").await, 1);
}

#[tokio::test]
async fn a_request_without_a_response_ends_after_a_minute() {
    let settings = "freshness.max_wait = \"1h\"\n[upstream]\nurl = \"{backend}\"\n\
        first_byte_timeout = \"1h\"\ntimeout = \"1h\"";
    let silent = |received: &Received| {
        if received.target().contains("index") {
            Act::Hang
        } else {
            good(received)
        }
    };
    let world = World::with(settings, silent).await;
    let key = world.customer("pro").await.key;
    let bytes = format!("GET /api/v1/index HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
    let mut connection = world.caller(bytes.as_bytes()).await;
    world.backend.has_received(1).await;
    world.pass(MINUTE_LESS_A_MOMENT);
    assert_eq!(world.get_by(&key, "/api/v1/models").await.status, 200);
    assert_eq!(world.ended("request_timeout").await, 0);
    world.pass(MOMENT);
    let response = connection.read(false).await;
    assert!(response.is_none(), "{response:?}");
    assert_eq!(
        (
            world.ended("request_timeout").await,
            world.counted("scoregate_client_disconnects_total").await
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn a_client_that_reads_a_byte_a_second_is_cut_off_as_if_it_read_nothing() {
    let world = World::with(
        "server.request_timeout = \"1d\"\nserver.idle_timeout = \"1d\"",
        good,
    )
    .await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(world.address()).await.unwrap();
    stream
        .write_all(&b"GET /docs HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200))
        .await
        .unwrap();
    // All buffers are full when no further response begins. The clock does not advance before.
    let pages = "scoregate_requests_total{endpoint=\"page\",class=\"2xx\"}";
    let mut start = 0;
    let mut looks = 0;
    while start == 0 || looks < 50 {
        let now = world.counted(pages).await;
        looks = if now == start { looks + 1 } else { 0 };
        start = now;
    }
    assert!(start < 200, "all of it was answered");
    let mut seconds = 0;
    while world.counted("scoregate_connections").await > 0 {
        let mut byte = [0];
        // Once the connection is cut off, there may be nothing to read.
        drop(stream.try_read(&mut byte));
        world.pass(SECOND);
        seconds += 1;
    }
    assert_eq!(world.ended("write_timeout").await, 1);
    assert!((20..25).contains(&seconds), "{seconds} s");
}

#[tokio::test]
async fn a_connection_closes_with_the_first_response_after_an_hour_or_a_second_later() {
    let world = World::with("server.idle_timeout = \"1d\"", good).await;
    let mut asks = world.caller(b"").await;
    let mut idles = world.caller(b"").await;
    for connection in [&mut asks, &mut idles] {
        assert_eq!(connection.status(HEALTH).await, 200);
    }
    world.pass(Duration::from_hours(1));
    asks.write(HEALTH).await;
    let last = asks.read(false).await.unwrap();
    assert_eq!((last.status, last.header("connection")), (200, "close"));
    assert!(asks.is_closed().await);
    // The other connection may detect its age only now, and then closes a second later.
    world.pass(SECOND);
    world.pass(SECOND);
    assert!(idles.is_closed().await);
}
