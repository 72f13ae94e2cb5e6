//! Collectors with endless replies: spans are sent to them a limited number of times, and accepted spans only once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use scoregate_base::clock::Clock;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{delivery::reaches, *};

/// More than the buffers of two sockets.
const MOST_SENT: usize = 16 << 20;
const ATTEMPTS: usize = 4;
/// Interval between two pieces of a slow reply.
const PAUSE: Duration = Duration::from_millis(2);

/// How a reply continues after its first bytes.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// With this text, as fast as it is read.
    Flood(&'static str),
    /// With this text, one piece at a time.
    Drip(&'static str),
}

struct EndlessCollector {
    settings: String,
    requests: Arc<AtomicUsize>,
    /// Bytes of all replies.
    sent: Arc<AtomicUsize>,
}

impl EndlessCollector {
    async fn start(begin: &'static str, rest: Rest) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let collector = Self {
            settings: format!(
                "traces.endpoint = \"http://{address}/v1/traces\"\ntraces.sample_one_in = 1\n"
            ),
            requests: Arc::default(),
            sent: Arc::default(),
        };
        let requests = Arc::clone(&collector.requests);
        let sent = Arc::clone(&collector.sent);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let requests = Arc::clone(&requests);
                let sent = Arc::clone(&sent);
                tokio::spawn(async move {
                    if has_request(&mut stream).await {
                        requests.fetch_add(1, Ordering::Relaxed);
                        reply(stream, begin, rest, &sent).await;
                    }
                });
            }
        });
        collector
    }
}

/// Waits for a request. Clients may open connections without one.
async fn has_request(stream: &mut TcpStream) -> bool {
    let mut received = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&received).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return true;
            }
        }
        if !matches!(stream.read_buf(&mut received).await, Ok(1..)) {
            return false;
        }
    }
}

async fn reply(mut stream: TcpStream, begin: &str, rest: Rest, sent: &AtomicUsize) {
    drop(stream.write_all(begin.as_bytes()).await);
    let piece = match rest {
        Rest::Flood(piece) => piece.repeat(100),
        Rest::Drip(piece) => piece.to_owned(),
    };
    while stream.write_all(piece.as_bytes()).await.is_ok() {
        if sent.fetch_add(piece.len(), Ordering::Relaxed) > ATTEMPTS * MOST_SENT {
            return;
        }
        if matches!(rest, Rest::Drip(_)) {
            Clock::system().sleep(PAUSE).await;
        }
    }
}

#[tokio::test]
async fn a_collector_whose_reply_has_no_end_gets_spans_a_limited_number_of_times() {
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let accepted = "HTTP/1.1 200 OK\r\n\r\n";
    let refused = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
    for (begin, rest, result, attempts) in [
        ("", Rest::Flood(interim), "failed", ATTEMPTS),
        ("", Rest::Drip(interim), "failed", ATTEMPTS),
        (
            "HTTP/1.1 200 OK\r\nx: ",
            Rest::Flood("x"),
            "failed",
            ATTEMPTS,
        ),
        (
            "HTTP/1.1 200 OK\r\nx: ",
            Rest::Drip("x"),
            "failed",
            ATTEMPTS,
        ),
        (accepted, Rest::Flood("x"), "exported", 1),
        (accepted, Rest::Drip("x"), "exported", 1),
        (refused, Rest::Flood("x"), "failed", ATTEMPTS),
        (refused, Rest::Drip("x"), "failed", ATTEMPTS),
    ] {
        let collector = EndlessCollector::start(begin, rest).await;
        let world = World::with(&collector.settings, good).await;
        let customer = world.paid().await;
        assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
        reaches(&world, result, 1).await;
        let requests = collector.requests.load(Ordering::Relaxed);
        assert_eq!(requests, attempts, "{begin:?} {rest:?}");
        let sent = collector.sent.load(Ordering::Relaxed);
        assert!(sent < attempts * MOST_SENT, "{begin:?} {rest:?}: {sent}");
    }
}
