//! What strangers cannot do: grow anything.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use scoregate::keys::KeyForm;

use crate::process::Process;

/// Sends requests with random keys over one connection, a batch at a time, and reads all answers.
fn flood(process: &Process, requests: usize) {
    let form = KeyForm::new("sg_live", false);
    let mut stream = TcpStream::connect(process.public).unwrap();
    let mut answers = vec![0u8; 1 << 20];
    for batch in 0..requests / 100 {
        let mut text = String::new();
        for number in 0..100 {
            let key = form.mint().unwrap();
            // Half of them have the form of a key and are looked up; half are refused before that.
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
        let (mut read, mut seen) = (0, 0);
        while seen < 100 {
            let more = stream.read(&mut answers[read..]).unwrap();
            assert!(more > 0, "the connection was closed");
            let from = read.saturating_sub(16);
            read += more;
            seen += answers[from..read].windows(17).filter(|window| window == b"HTTP/1.1 401 Unau").count();
        }
    }
}

async fn keys_and_documents(process: &Process) -> (String, String) {
    let mut connection = crate::client::Connection::open(process.side).await;
    connection.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let text = String::from_utf8(connection.read(false).await.unwrap().body).unwrap();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    (line("scoregate_keys "), line("scoregate_cache_documents "))
}

#[tokio::test]
async fn random_keys_grow_no_map_and_no_memory() {
    let requests = 1_000_000;
    let process = Process::serve(&[("guard.per_minute", "100000000")]);
    // The first requests warm up what is allocated once: threads, buffers, pages of code.
    flood(&process, 20_000);
    let (before, maps) = (process.resident(), keys_and_documents(&process).await);
    flood(&process, requests);
    let (after, maps_after) = (process.resident(), keys_and_documents(&process).await);
    assert_eq!(maps, maps_after);
    assert!(after <= before + (2 << 20), "{requests} random keys: {before} bytes before, {after} after");
}
