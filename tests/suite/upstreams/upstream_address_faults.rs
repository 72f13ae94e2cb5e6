//! Three addresses that take turns at faults, in front of the real program with the real clock: one never responds, one
//! is slow, one answers 500 or with old data.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scoregate_base::clock::{Clock, Wall};
use tempfile::TempDir;

use crate::backend::{Act, Backend, Received, respond};
use crate::client::Connection;
use crate::program::{Keys, Program, ProgramClient};
use crate::world::{NOON, good};

const ADDRESSES: usize = 3;
const CALLERS: usize = 3;
/// How long callers wait.
const MAX_WAIT: Duration = Duration::from_secs(3);
/// More than a loaded machine needs besides.
const SLACK: Duration = Duration::from_secs(3);
/// Time with the same faults.
const PHASE: Duration = Duration::from_millis(900);
const PHASES: usize = 7;

/// The time in the data of a good response.
const LAST_UPDATED: &str = "2026-11-21T11:59:00Z";
/// The age of old data.
const OLD: Duration = Duration::from_hours(1);

/// A good response with data of this age.
fn aged(received: &Received, age: Duration) -> Vec<u8> {
    let Act::Raw(bytes) = good(received) else {
        panic!("{received:?}")
    };
    let at = Wall::from_seconds(Clock::system().now().wall.minus(age).seconds()).rfc3339();
    // With other data at each time: equal data keeps its time.
    String::from_utf8(bytes)
        .unwrap()
        .replace(NOON, &at)
        .replace(LAST_UPDATED, &at)
        .into_bytes()
}

/// A good response with the current time.
fn current(received: &Received) -> Vec<u8> {
    aged(received, Duration::ZERO)
}

/// The faults of a phase, by address: each takes its turn at each of them.
fn script(fault: usize, phase: usize) -> fn(&Received) -> Act {
    match (fault, phase % 2) {
        (0, _) => |_| Act::Hang,
        (1, _) => |received| Act::Slow(Duration::from_millis(200), current(received)),
        (_, 0) => |received| Act::Raw(aged(received, OLD)),
        (_, _) => |_| respond("500 Internal Server Error", &[], ""),
    }
}

/// The results of one caller.
#[derive(Default)]
struct Answers {
    statuses: Vec<u16>,
    longest: Duration,
    /// The newest time of the data of each document.
    newest: HashMap<String, String>,
}

/// Requests documents until the end: the same one again and again, or others from this number on.
async fn call(
    client: &ProgramClient,
    key: &str,
    first: Option<usize>,
    end: &AtomicBool,
) -> Answers {
    let clock = Clock::system();
    let mut answers = Answers::default();
    while !end.load(Ordering::Relaxed) {
        let number = answers.statuses.len();
        let target = match first {
            None => "/api/v1/index".to_owned(),
            Some(first) => format!("/api/v1/incidents?limit={}", first + number % 50),
        };
        let before = clock.mono();
        let response = client.get(&target, key).send().await;
        answers.longest = answers.longest.max(clock.mono().since(before));
        if response.status == 200 {
            let at = response.json()["generated_at"].as_str().unwrap().to_owned();
            let newest = answers.newest.entry(target.clone()).or_default();
            assert!(at >= *newest, "{target} went back from {newest} to {at}");
            *newest = at;
        }
        answers.statuses.push(response.status);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    answers
}

/// Number of fetches that were sent to the backend and have ended.
async fn sent(side: SocketAddr) -> f64 {
    let mut connection = Connection::open(side).await;
    connection
        .write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let text = String::from_utf8(connection.read(false).await.unwrap().body).unwrap();
    let series = text
        .lines()
        .filter(|line| line.starts_with("scoregate_upstream_requests_total{"));
    let wanted =
        series.filter(|line| !line.contains("circuit_open") && !line.contains("queue_full"));
    wanted
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}

/// The program with these addresses and short timeouts.
fn serve(data: &Path, backends: &[Backend]) -> Program {
    let urls: Vec<String> = backends.iter().map(Backend::url).collect();
    let environment = [
        ("SCOREGATE_UPSTREAM_URLS", urls.join(",")),
        ("SCOREGATE_UPSTREAM_FIRST_BYTE_TIMEOUT", "700ms".into()),
        ("SCOREGATE_UPSTREAM_MAX_CONCURRENT_REQUESTS", "8".into()),
        (
            "SCOREGATE_FRESHNESS_MAX_WAIT",
            format!("{}s", MAX_WAIT.as_secs()),
        ),
        ("SCOREGATE_FRESHNESS_PROBE", "false".into()),
    ];
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    Program::serve(data, &environment)
}

/// Prints a line that is shown if the test fails.
#[expect(clippy::print_stdout, reason = "the output of a test that fails")]
fn note(text: &str) {
    println!("{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_documents_are_served_through_flapping_faults_and_failed_attempts_are_few() {
    let mut backends = Vec::new();
    for _ in 0..ADDRESSES {
        backends.push(Backend::start(|received| Act::Raw(current(received))).await);
    }
    let data = TempDir::new().unwrap();
    let clock = Clock::system();
    let started = clock.mono();
    let program = serve(data.path(), &backends);
    let (public, side) = program.ports();
    let client = ProgramClient::to(public).await;
    let (_, key) = Keys(data.path()).create("enterprise");
    assert_eq!(client.get("/api/v1/index", &key).send().await.status, 200);

    let end = Arc::new(AtomicBool::new(false));
    let faults = async {
        for phase in 0..PHASES {
            for (number, backend) in backends.iter().enumerate() {
                backend.set_script(script((number + phase) % ADDRESSES, phase));
            }
            tokio::time::sleep(PHASE).await;
        }
        end.store(true, Ordering::Relaxed);
    };
    let callers = async {
        let call = |first| call(&client, &key, first, &end);
        tokio::join!(call(None), call(Some(1)), call(Some(51)))
    };
    let ((stored, one, other), ()) = tokio::join!(callers, faults);
    assert!(stored.statuses.len() > 50 && stored.statuses.iter().all(|status| *status == 200));
    assert!(
        stored.longest < Duration::from_secs(1),
        "{:?}",
        stored.longest
    );
    let waited: Vec<u16> = [one.statuses, other.statuses].concat();
    let delivered = waited.iter().filter(|status| **status == 200).count();
    let longest = one.longest.max(other.longest);
    note(&format!(
        "{} served from a stored document",
        stored.statuses.len()
    ));
    note(&format!(
        "{delivered} of {} served without one, the longest after {longest:?}",
        waited.len()
    ));
    assert!(delivered > 0);
    assert!(
        waited
            .iter()
            .all(|status| [200, 502, 503, 504].contains(status)),
        "{waited:?}"
    );
    assert!(longest < MAX_WAIT + SLACK);

    // With good addresses again, each fetch that has begun ends soon.
    for backend in &backends {
        backend.set_script(|received| Act::Raw(current(received)));
    }
    let received = || {
        backends
            .iter()
            .map(|backend| backend.count("/api/v1/"))
            .sum::<usize>()
    };
    let mut before = (0, 0.0);
    let mut fetches = sent(side).await;
    while before != (received(), fetches) {
        before = (received(), fetches);
        tokio::time::sleep(Duration::from_millis(900)).await;
        fetches = sent(side).await;
    }
    let elapsed = clock.mono().since(started).as_secs_f64();
    let extra = f64::from(u32::try_from(received()).unwrap()) - fetches;
    // In each phase, at each address: one attempt of each caller, and one a second.
    let begun = u32::try_from(ADDRESSES * PHASES * CALLERS).unwrap();
    let allowed = f64::from(begun) + 3.0 * elapsed;
    note(&format!(
        "{extra} failovers for {fetches} fetches in {elapsed} s"
    ));
    assert!(
        extra >= 3.0 && extra <= allowed,
        "{extra} of at most {allowed} for {fetches} fetches"
    );
    tokio::task::spawn_blocking(move || program.stop().with(0))
        .await
        .unwrap();
}
