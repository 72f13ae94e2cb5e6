//! Oversized upstream responses and decompression bombs against the real program: they are rejected early, at the cap,
//! and use no more memory than the cap. Also a hundred simultaneous valid responses.

use std::time::Duration;

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, Received, json},
    program::{Keys, Program, ProgramClient},
};

const MEGABYTE: usize = 1 << 20;
/// Limit of additional peak memory. The cap on a response is 8 MiB; the allocator keeps freed pages for up
/// to ten seconds, so the buffers of several responses add up. The responses themselves have 200 MB and more.
const AT_MOST: u64 = 28 << 20;
/// Memory to build a document, and everything else for a hundred concurrent requests.
const PER_BUILD: u64 = 8 << 20;
const OTHER_MEMORY: u64 = 24 << 20;
const SOON: Duration = Duration::from_secs(1);

/// A gigabyte of spaces, which is a valid start of JSON, in a megabyte of gzip: one block repeated.
fn gzipped() -> Vec<u8> {
    let mut piece = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(9));
    std::io::Write::write_all(&mut piece, &vec![b' '; 16 * MEGABYTE]).unwrap();
    piece.finish().unwrap().repeat(64)
}

/// 200 megabytes after this head.
fn endless(head: &str, piece: &str) -> Act {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}");
    Act::Flood(head.into_bytes(), piece.as_bytes().to_vec(), 200)
}

fn bombs() -> Vec<(&'static str, Act)> {
    let blanks = " ".repeat(MEGABYTE);
    let chunk = format!("{MEGABYTE:x}\r\n{blanks}\r\n");
    let with = |head: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{head}\r\n",
            body.len()
        );
        Act::Raw([head.as_bytes(), body].concat())
    };
    vec![
        (
            "gzip with Content-Encoding",
            with("content-encoding: gzip\r\n", &gzipped()),
        ),
        ("gzip without Content-Encoding", with("", &gzipped())),
        (
            "a length of 200 MB",
            endless(
                &format!("content-length: {}\r\n\r\n", 200 * MEGABYTE),
                &blanks,
            ),
        ),
        (
            "200 MB in chunks",
            endless("transfer-encoding: chunked\r\n\r\n", &chunk),
        ),
        (
            "200 MB in one chunk",
            endless(
                &format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n", 200 * MEGABYTE),
                &blanks,
            ),
        ),
        ("200 MB to the connection's end", endless("\r\n", &blanks)),
        ("a header of 200 MB", endless("x: ", &"x".repeat(MEGABYTE))),
    ]
}

/// A page of rankings.
fn page() -> String {
    let item = |number: u64| {
        let noise = number.wrapping_mul(6_364_136_223_846_793_005) >> 20;
        format!(
            r#"{{"id":"model-{number}","name":"Model {noise:x}","currentScore":{}.5}}"#,
            noise % 100
        )
    };
    format!("[{}]", (1..=100).map(item).collect::<Vec<_>>().join(","))
}

/// The bomb for a request, selected by its limit.
fn number_in(target: &str) -> usize {
    target.split("limit=").nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_oversized_response_is_rejected_early_and_uses_no_memory_beyond_the_cap() {
    let bombs = bombs();
    let (names, acts): (Vec<_>, Vec<_>) = bombs.into_iter().unzip();
    let backend = Backend::start(
        move |received: &Received| match number_in(received.target()) {
            100 => json(r#"[{"id":"atlas"}]"#),
            number => acts[number % acts.len()].clone(),
        },
    );
    let backend = backend.await;
    let directory = TempDir::new().unwrap();
    let (_, key) = Keys(directory.path()).create("enterprise");
    let url = backend.url();
    let settings = [
        ("SCOREGATE_UPSTREAM_URL", url.as_str()),
        ("SCOREGATE_FRESHNESS_PROBE", "false"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let client = ProgramClient::to(program.public()).await;
    let target = |number: usize| format!("/api/v1/incidents?limit={number}");
    assert_eq!(client.get(&target(100), &key).send().await.status, 200);
    let before = program.resident();
    let clock = Clock::system();
    for (bomb, name) in names.iter().enumerate() {
        let mut fastest = Duration::MAX;
        // One attempt may be slow on a busy machine.
        for again in 1..=3 {
            let sent_at = clock.now().mono;
            let response = client
                .get(&target(names.len() * again + bomb), &key)
                .send()
                .await;
            assert_eq!(
                (response.status, response.code()),
                (502, "upstream_invalid".into()),
                "{name}"
            );
            fastest = fastest.min(clock.now().mono.since(sent_at));
        }
        assert!(fastest < SOON, "{name}: {fastest:?}");
    }
    let peak = program.most_resident();
    assert!(
        peak <= before + AT_MOST,
        "{before} bytes before, peak {peak}"
    );
    let good = client.get(&target(100), &key).send().await;
    assert!(good.header("cache-status").starts_with("scoregate; hit"));
    let ended = program.stop().with(0);
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_simultaneous_documents_are_built_a_few_at_a_time() {
    let page = page();
    let backend = Backend::start(move |_| json(&page)).await;
    let directory = TempDir::new().unwrap();
    let (_, key) = Keys(directory.path()).create("enterprise");
    let url = backend.url();
    let settings = [
        ("SCOREGATE_UPSTREAM_URL", url.as_str()),
        ("SCOREGATE_UPSTREAM_MAX_CONCURRENT_REQUESTS", "100"),
        ("SCOREGATE_FRESHNESS_PROBE", "false"),
    ];
    let program = Program::serve(directory.path(), &settings);
    let client = ProgramClient::to(program.public()).await;
    let before = program.resident();
    backend.hold();
    let target = |number: usize| format!("/api/v1/incidents?limit={number}");
    let requests: Vec<_> = (1..=100)
        .map(|number| tokio::spawn(client.get(&target(number), &key).send()))
        .collect();
    backend.has_received(100).await;
    backend.open();
    for response in requests {
        assert_eq!(response.await.unwrap().status, 200);
    }
    let builders = std::thread::available_parallelism()
        .unwrap()
        .get()
        .div_ceil(2) as u64;
    let peak = program.most_resident() - before;
    let at_most = OTHER_MEMORY + builders * PER_BUILD;
    assert!(
        peak <= at_most,
        "{peak} bytes for {builders} concurrent builds, limit {at_most}"
    );
}
