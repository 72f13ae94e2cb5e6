//! Values from unauthenticated clients add no series and use no memory. Many requests, each with a different path,
//! method, agent, request id, trace and key, do not change the list of series.

use std::{collections::BTreeSet, net::SocketAddr};

use scoregate_base::keys::KeyForm;
use scoregate_observe::telemetry::metrics::{METRICS, max_series};
use tempfile::TempDir;

use crate::{
    client::Connection,
    full_runs::is_full_size,
    load_clients::{LoadClient, prepare},
    program::{BUILT_IN, Program},
};

const SMALL: usize = 20_000;
const FULL: usize = 1_000_000;
/// After these requests, all one-time allocations have been made: threads, buffers, pages of code.
const WARM: usize = 15_000;
/// Requests per batch on a connection.
const BATCH: usize = 100;
const CONNECTIONS: usize = 4;
/// 52 bytes for each request of the small size. Each contains new names of sixteen characters: if a single one of
/// them were kept in a map, its allocation and its entry would take more.
const GROWTH: u64 = 1 << 20;

/// A request with random values in every position, and its status.
fn request_unknown_models(number: usize, key: &str) -> (String, u16) {
    let nobody = KeyForm::new("sg_live", false).mint().unwrap();
    let name = format!("made-up-{number:08}");
    // A well-formed unknown key, a malformed key, and a valid key.
    let nobody = nobody.expose();
    let malformed = format!("sg_live_{name}");
    let (method, target, key, status) = match number % 10 {
        0 => ("GET", format!("/api/v1/models?{name}={name}"), nobody, 401),
        1 => ("GET", format!("/{name}"), &*malformed, 401),
        2 => ("GET", format!("/{name}"), key, 404),
        3 => (
            &*format!("M{number:08}"),
            format!("/api/v1/{name}"),
            key,
            405,
        ),
        4 => ("GET", format!("/api/v1/models/{name}"), key, 404),
        5 => ("GET", format!("/api/v1/models?period={name}"), key, 400),
        6 => ("GET", format!("/api/v1/models/%00{name}"), key, 400),
        7 => ("HEAD", format!("/api/v1/index?{name}={name}"), key, 200),
        8 => ("OPTIONS", format!("/{name}/{name}"), nobody, 204),
        _ => ("HEAD", format!("/docs?{name}"), &*malformed, 200),
    };
    let parent = format!("00-{number:032x}-{number:016x}-01", number = number + 1);
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {name}.example\r\nX-API-Key: {key}\r\nUser-Agent: {name}\r\n\
         X-Request-Id: {name}\r\ntraceparent: {parent}\r\nX-{name}: {name}\r\n\r\n"
    );
    (head, status)
}

/// Sends this many distinct requests.
async fn send(public: SocketAddr, load_client: &LoadClient, numbers: std::ops::Range<usize>) {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(public).await);
    }
    let numbers: Vec<usize> = numbers.collect();
    for (turn, batch) in numbers.chunks(BATCH).enumerate() {
        let connection = &mut connections[turn % CONNECTIONS];
        let made: Vec<(String, u16)> = batch
            .iter()
            .map(|number| request_unknown_models(*number, &load_client.key))
            .collect();
        connection
            .write(
                made.iter()
                    .map(|(head, _)| head.as_str())
                    .collect::<String>()
                    .as_bytes(),
            )
            .await;
        for (head, status) in made {
            let response = connection
                .read(head.starts_with("HEAD "))
                .await
                .expect("a response");
            assert_eq!(response.status, status, "{head}");
        }
    }
}

/// The metrics without their values, and the memory of the process.
async fn series(side: SocketAddr) -> (BTreeSet<String>, u64) {
    let mut connection = Connection::open(side).await;
    connection
        .write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let text = String::from_utf8(connection.read(false).await.unwrap().body).unwrap();
    let resident = text
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    let resident = resident.unwrap().parse().unwrap();
    let series = |line: &str| match line.rsplit_once(' ') {
        Some((series, _)) if !line.starts_with('#') => series.to_owned(),
        _ => line.to_owned(),
    };
    let lines = text.lines().filter(|line| !line.is_empty());
    let all = text.lines().filter(|line| !line.is_empty());
    let series: BTreeSet<String> = lines.map(series).collect();
    assert_eq!(series.len(), all.count(), "a series is repeated");
    (series, resident)
}

#[tokio::test]
async fn random_paths_methods_agents_and_keys_add_no_series_and_use_no_memory() {
    let requests = if is_full_size() { FULL } else { SMALL };
    let directory = TempDir::new().unwrap();
    let load_client = prepare(directory.path(), &[("enterprise", 100_000_000)]).remove(0);
    let program = Program::serve(
        directory.path(),
        &[("SCOREGATE_GUARD_PER_MINUTE", "100000000"), BUILT_IN[0]],
    );
    let (public, side) = program.ports();
    let (at_first, _) = series(side).await;
    send(public, &load_client, 0..WARM).await;
    let (before, resident) = series(side).await;
    send(public, &load_client, WARM..WARM + requests).await;
    let (after, grown) = series(side).await;
    assert_eq!((&at_first, &before), (&before, &after));
    let series_after: Vec<&String> = after.iter().filter(|line| !line.starts_with('#')).collect();
    assert!(
        (METRICS.len()..=max_series()).contains(&series_after.len()),
        "{}",
        series_after.len()
    );
    assert!(
        !after.iter().any(|line| line.contains("made-up")),
        "{after:?}"
    );
    assert!(
        grown <= resident + GROWTH,
        "{requests} requests: {resident} bytes before, {grown} after"
    );
    program.stop().with(0);
}
