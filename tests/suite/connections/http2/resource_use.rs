//! Resource use of the real program under floods: memory is freed afterwards, and other clients are not delayed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use super::{Wire, floods::floods, get, http2_client::Http2Client, request};
use crate::{
    client::Connection,
    program::{BUILT_IN, Keys, Program},
};

const MEGABYTE: u64 = 1 << 20;
/// Limit of additional memory after all floods.
const AT_MOST: u64 = 8 * MEGABYTE;
const SOON: Duration = Duration::from_secs(1);

/// Sends requests until stopped, and returns the longest duration of a request.
async fn slowest_request(address: SocketAddr, over: Arc<AtomicBool>) -> Duration {
    let clock = Clock::system();
    let mut connection = Connection::open(address).await;
    let mut slowest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let asked_at = clock.now().mono;
        connection
            .write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await;
        assert_eq!(
            connection.read(false).await.expect("a response").status,
            200
        );
        slowest = slowest.max(clock.now().mono.since(asked_at));
    }
    slowest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_floods_leave_no_memory_in_use_and_delay_no_other_client_by_a_second() {
    let directory = TempDir::new().unwrap();
    let (_, key) = Keys(directory.path()).create("enterprise");
    let program = Program::serve(directory.path(), &BUILT_IN);
    let address = program.public();
    let request_bytes = request(1, &get("/api/v1/models", &[("x-api-key", &key)]));
    // The memory of a program that has already worked, as the baseline.
    for _ in 0..20 {
        let client = Http2Client::to(address).await;
        assert_eq!(
            client
                .request("GET", "/api/v1/models", &[("x-api-key", &key)])
                .await
                .unwrap()
                .status,
            200
        );
    }
    let before = program.resident();
    let mut delays = Vec::new();
    for _ in 0..3 {
        let over = Arc::new(AtomicBool::new(false));
        let other_client = tokio::spawn(slowest_request(address, Arc::clone(&over)));
        for flood in floods(&request_bytes) {
            let mut wire = Wire::open(address).await;
            assert!(flood.run(&mut wire).await.is_some(), "{}", flood.name);
        }
        over.store(true, Ordering::Relaxed);
        delays.push(other_client.await.unwrap());
    }
    let peak = program.most_resident();
    assert!(
        peak <= before + AT_MOST,
        "{before} bytes before, peak {peak}"
    );
    // A busy machine delays requests too.
    assert!(delays.iter().any(|slowest| *slowest < SOON), "{delays:?}");
    let ended = program.stop().with(0);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}
