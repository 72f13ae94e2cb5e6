//! Unauthenticated clients cannot make any map or the memory grow.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use scoregate_base::keys::KeyForm;
use tempfile::TempDir;

use super::slow_clients;
use crate::client::Connection;
use crate::program::Program;

/// Sends requests with random keys over one connection, in batches, and reads all responses.
fn flood(public: SocketAddr, requests: usize) {
    let form = KeyForm::new("sg_live", false);
    let mut stream = TcpStream::connect(public).unwrap();
    let mut responses = vec![0u8; 1 << 20];
    for batch in 0..requests / 100 {
        let mut text = String::new();
        for number in 0..100 {
            let key = form.mint().unwrap();
            // Half of them are well-formed keys and are looked up; half are refused before that.
            let key = if number % 2 == 0 {
                key.expose().to_owned()
            } else {
                key.expose().replace("sg_live_", "sg_liveX")
            };
            let path = ["/api/v1/models", "/api/v1/models/x", "/api/v1/nothing"][number % 3];
            text.push_str(&format!(
                "GET {path}?n={batch} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
            ));
        }
        stream.write_all(text.as_bytes()).unwrap();
        let mut read = 0;
        let mut seen = 0;
        while seen < 100 {
            let more = stream.read(&mut responses[read..]).unwrap();
            assert!(more > 0, "the connection was closed");
            let from = read.saturating_sub(16);
            read += more;
            seen += responses[from..read]
                .windows(17)
                .filter(|window| window == b"HTTP/1.1 401 Unau")
                .count();
        }
    }
}

async fn keys_and_documents(side: SocketAddr) -> (String, String) {
    let mut connection = Connection::open(side).await;
    connection
        .write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let text = String::from_utf8(connection.read(false).await.unwrap().body).unwrap();
    let line = |name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    (line("scoregate_keys "), line("scoregate_cache_documents "))
}

#[tokio::test]
async fn unknown_keys_use_no_memory_and_no_map_entries() {
    let requests = if slow_clients::is_full() {
        1_000_000
    } else {
        60_000
    };
    let directory = TempDir::new().unwrap();
    let settings = [
        ("SCOREGATE_UPSTREAM", "built-in"),
        ("SCOREGATE_GUARD_PER_MINUTE", "100000000"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let (public, side) = program.ports();
    // The first requests allocate what is allocated once: threads, buffers, pages of code.
    flood(public, 20_000);
    let before = program.resident();
    let maps = keys_and_documents(side).await;
    flood(public, requests);
    let after = program.resident();
    let maps_after = keys_and_documents(side).await;
    assert_eq!(maps, maps_after);
    assert!(
        after <= before + (2 << 20),
        "{requests} random keys: {before} bytes before, {after} after"
    );
    program.stop().with(0);
}
