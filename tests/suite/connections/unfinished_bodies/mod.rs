//! Clients that send request bodies and do not finish them, against the real program. Its memory grows by less than the
//! budget for bodies plus 16 MiB. Other clients get responses meanwhile, although their bodies arrive after their
//! heads.
//!
//! Small in every run; `SCOREGATE_FULL=1` runs 10,000 connections and writes a dated page to `tests/results/`. Run that
//! with `--test-threads=1`.

#![expect(clippy::print_stdout, reason = "the tests print their figures")]

mod attack;

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    future::join_all,
    stream::{self, FuturesUnordered},
};
use scoregate_base::clock::Clock;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::http2::unread_responses::{AttackTarget, Stream, program_with};
use crate::{
    client::{Connection, Response},
    full_runs::{BUILD, CARGO_TEST, cores, is_full_size, write_page},
    mcp::session::{call, post, rpc},
    program::{Keys, Program},
    site::leaked_keys::{self, Scanner},
    world::{World, good},
};

use attack::{Attack, SENT, Target, Transport};

const SECOND: Duration = Duration::from_secs(1);
/// Limit of the program's memory growth, in addition to the memory of idle connections.
const GROWTH: u64 = 48 << 20;
/// Limits of the memory of an idle HTTP/1.1 connection and an idle HTTP/2 connection with its codec, and of the growth
/// without connections.
const IDLE: u64 = 8 << 10;
const IDLE_HTTP2: u64 = 32 << 10;
const SPARE: u64 = 4 << 20;
/// Duration of an attack at the small size and at full size.
const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(12);
/// How long an attacker that was refused keeps its connection open.
const HOLD: Duration = Duration::from_secs(2);
/// Streams of a connection, which may have 100 concurrent streams.
const STREAMS: u32 = 100;
const FEW_STREAMS: u32 = 4;

/// A program with every endpoint that accepts bodies, and the data that callers need.
struct Attacked {
    program: Program,
    means: Arc<Means>,
    _directory: TempDir,
}

/// The data that callers and attackers need.
struct Means {
    target: AttackTarget,
    scanner: Scanner,
    key: String,
}

impl Attacked {
    fn start(transport: Transport) -> Self {
        let directory = TempDir::new().unwrap();
        let scanner = Scanner::new("one");
        let published = directory.path().join("public_keys.json");
        std::fs::write(&published, scanner.published()).unwrap();
        let settings = format!(
            "mcp.enabled = true\nleaks.public_keys = \"{}\"\nguard.per_minute = 1000000\n\
             server.max_connections_per_address = 12000\nservice.base_url = \"http://127.0.0.1:8080\"\n\
             site.sign_up = true\nmail.server = \"127.0.0.1:1\"\nmail.tls = \"none\"\nmail.from = \"api@example.org\"\n",
            published.display()
        );
        let is_secure = transport == Transport::Http1OverTls;
        let (_, key) = Keys(&directory.path().join("state")).create("enterprise");
        let (program, target) = program_with(directory.path(), 12_000, is_secure, &settings);
        let means = Arc::new(Means {
            target,
            scanner,
            key,
        });
        Self {
            program,
            means,
            _directory: directory,
        }
    }
}

impl Means {
    async fn open(&self, from: IpAddr) -> std::io::Result<Box<dyn Stream>> {
        let connector = self.target.tls_of_http1();
        let plain = AttackTarget {
            tls: connector,
            ..self.target.clone()
        };
        plain.open_from(from).await
    }

    /// The requests of honest callers: a name, the head, the body, and the expected status.
    fn honest(&self) -> Vec<(&'static str, String, u16)> {
        let key = ("X-API-Key", self.key.as_str());
        let report = json!([leaked_keys::token("ghp_x", "https://example.org/")]).to_string();
        let signed = self.scanner.signed(report.as_bytes());
        let signed = signed.map(|(name, value)| format!("{name}: {value}\r\n"));
        let report = format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n{}\r\n{report}",
            leaked_keys::PATH,
            report.len(),
            signed.concat()
        );
        let form = "POST /account/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\
                    Content-Type: application/x-www-form-urlencoded\r\n\r\nemail=a";
        let get = format!(
            "GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {}\r\n\r\n",
            self.key
        );
        vec![
            (
                "call with a key",
                post(&call("get_models", &json!({})), &[key]),
                200,
            ),
            (
                "list without a key",
                post(&rpc("tools/list", &json!({})), &[]),
                200,
            ),
            ("signed report", report, 200),
            ("form", form.into(), 403),
            ("request of the API", get, 200),
        ]
    }
}

/// Sends a head, and later its body. Returns the status.
async fn in_two_parts(stream: Box<dyn Stream>, request: &str, clock: &Clock) -> Option<u16> {
    let mut connection = Connection::over(stream);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    connection.write(format!("{head}\r\n\r\n").as_bytes()).await;
    if !body.is_empty() {
        clock.sleep(Duration::from_millis(20)).await;
        connection.write(body.as_bytes()).await;
    }
    Some(connection.read(false).await?.status)
}

/// Sends the requests of honest callers until the attack is over. Returns their number and the longest duration.
async fn callers(means: Arc<Means>, over: Arc<AtomicBool>) -> (u32, Duration) {
    let clock = Clock::system();
    let from = IpAddr::V4(Ipv4Addr::new(127, 200, 0, 1));
    let mut answered = 0;
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        for (name, request, expected) in means.honest() {
            let start = clock.mono();
            let stream = means.open(from).await.unwrap();
            let status = in_two_parts(stream, &request, &clock).await;
            assert_eq!(status, Some(expected), "{name}, after {answered} responses");
            answered += 1;
            longest = longest.max(clock.mono().since(start));
        }
        clock.sleep(SECOND / 20).await;
    }
    (answered, longest)
}

/// Repeatedly opens a connection, sends an unfinished body, and keeps the connection open until the program closes it.
async fn attacker(means: &Means, from: IpAddr, opening: &[u8], over: &AtomicBool) {
    let clock = Clock::system();
    while !over.load(Ordering::Relaxed) {
        let Ok(mut stream) = means.open(from).await else {
            clock.sleep(SECOND / 10).await;
            continue;
        };
        let mut chunk = [0; 1_024];
        let work = async {
            drop(stream.write_all(opening).await);
            drop(stream.flush().await);
            while !matches!(stream.read(&mut chunk).await, Ok(0) | Err(_)) {}
            clock.sleep(HOLD).await;
        };
        let ended = async {
            while !over.load(Ordering::Relaxed) {
                clock.sleep(SECOND / 4).await;
            }
        };
        tokio::select! { () = work => {}, () = ended => {} }
    }
}

/// Peak memory while as many connections as in an attack are open without a request.
async fn idle(attacked: &Attacked, attack: Attack) -> u64 {
    let means = &attacked.means;
    attacked.program.forget_peak();
    let opened = (0..attack.connections).map(async |number| {
        let mut stream = means.open(attack.address(number)).await?;
        stream.write_all(&attack.preface()).await?;
        stream.flush().await?;
        std::io::Result::Ok(stream)
    });
    let mut idle: Vec<_> = stream::iter(opened).buffered(32).collect().await;
    let (_, request, expected) = means.honest().remove(0);
    let last = means.open(attack.address(0)).await.unwrap();
    let status = in_two_parts(last, &request, &Clock::system()).await;
    assert_eq!(status, Some(expected), "after idle connections");
    let most = attacked.program.most_resident();
    let closed = idle.iter_mut().map(async |stream| {
        let stream = stream.as_mut().unwrap();
        drop(stream.shutdown().await);
        while stream.read_u8().await.is_ok() {}
    });
    join_all(closed).await;
    most
}

async fn run(attack: Attack) {
    let attacked = Attacked::start(attack.transport);
    let means = &attacked.means;
    let clock = Clock::system();
    for (name, request, expected) in means.honest() {
        let stream = means.open(attack.address(0)).await.unwrap();
        let status = in_two_parts(stream, &request, &clock).await;
        assert_eq!(status, Some(expected), "{name} before the attack");
    }
    let opening = attack.opening(&means.scanner);
    let before = attacked.program.resident();
    let idle = idle(&attacked, attack).await.saturating_sub(before);
    attacked.program.forget_peak();
    let over = Arc::new(AtomicBool::new(false));
    // The callers have a separate task. Otherwise they would wait for the work of all attackers.
    let callers = tokio::spawn(callers(Arc::clone(means), Arc::clone(&over)));
    let attackers = (0..attack.connections)
        .map(|number| attacker(means, attack.address(number), &opening, &over));
    let time = if is_full_size() { LONG } else { SHORT };
    let ends = async {
        clock.sleep(time).await;
        over.store(true, Ordering::Relaxed);
    };
    tokio::join!(join_all(attackers), ends);
    let (answered, longest) = callers.await.unwrap();
    let growth = attacked.program.most_resident().saturating_sub(before);
    let Attack {
        transport,
        target,
        networks,
        ..
    } = attack;
    let row = format!(
        "| {transport:?} | {target:?} | {} | {networks} | {} MiB | +{} MiB | +{} MiB | {answered} | {} ms |",
        attack.bodies(),
        before >> 20,
        idle >> 20,
        growth >> 20,
        longest.as_millis()
    );
    println!("{row}");
    record(row);
    let most = GROWTH + idle;
    assert!(growth <= most, "{attack:?}: {} MiB", growth >> 20);
    let each = match transport {
        Transport::Http1 | Transport::Http1OverTls => IDLE,
        Transport::Http2(_) => IDLE_HTTP2,
    };
    let most_idle = SPARE + u64::from(attack.connections) * each;
    assert!(idle <= most_idle, "{attack:?}: idle {} MiB", idle >> 20);
    let slowest = if is_full_size() { LONG } else { 2 * SECOND };
    assert!(longest < slowest, "{attack:?}: {longest:?}");
    assert_eq!(attacked.program.stop().code, Some(0));
}

/// Runs an attack with these numbers of connections at the small size and at full size.
async fn attack(transport: Transport, target: Target, [small, full]: [u32; 2], networks: u32) {
    run(Attack {
        transport,
        target,
        connections: if is_full_size() { full } else { small },
        networks,
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_from_one_network_have_a_budget() {
    attack(Transport::Http1, Target::Mcp, [1_000, 10_000], 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_from_a_thousand_networks_have_a_budget() {
    attack(Transport::Http1, Target::Mcp, [1_000, 10_000], 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_of_unknown_length_have_a_budget() {
    attack(Transport::Http1, Target::McpChunked, [500, 9_000], 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_with_large_heads_have_a_budget() {
    attack(Transport::Http1, Target::McpLargeHead, [500, 9_000], 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_over_tls_have_a_budget() {
    attack(Transport::Http1OverTls, Target::Mcp, [100, 1_000], 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_over_http2_have_a_budget() {
    attack(Transport::Http2(STREAMS), Target::Mcp, [20, 100], 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_messages_over_many_connections_of_http2_have_a_budget() {
    attack(
        Transport::Http2(FEW_STREAMS),
        Target::Mcp,
        [200, 2_500],
        200,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_forms_have_a_budget() {
    attack(Transport::Http1, Target::Form, [500, 9_000], 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_reports_with_forged_signatures_keep_no_signed_report_out() {
    for (connections, networks) in [(20, 1), (17, 4), (160, 16), (1_000, 200)] {
        attack(Transport::Http1, Target::Report, [connections; 2], networks).await;
    }
}

/// The response to a message whose body is sent once the gateway expects it.
async fn awaited(world: &World, from: IpAddr, headers: &[(&str, &str)]) -> Response {
    let expects = [headers, &[("Expect", "100-continue")]].concat();
    let request = post(&rpc("tools/list", &json!({})), &expects);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut connection = Connection::open_from(from, world.address()).await;
    connection.write(format!("{head}\r\n\r\n").as_bytes()).await;
    let response = connection.read(false).await.unwrap();
    if response.status != 100 {
        return response;
    }
    connection.write(body.as_bytes()).await;
    connection.read(false).await.unwrap()
}

#[tokio::test]
async fn a_network_that_uses_up_the_memory_for_bodies_gives_way_to_others() {
    let world = World::with("mcp.enabled = true\nguard.per_minute = 1000000\n", good).await;
    let customer = world.paid().await;
    let [loud, quiet] = [1, 2].map(|number| IpAddr::V4(Ipv4Addr::new(127, number, 0, 1)));
    let unfinished = post(&" ".repeat(64 << 10), &[]);
    let (unfinished, _) = unfinished.split_at(SENT);
    // 24 MiB are enough for 277 bodies of 64 KiB with their heads and the buffers of the codec.
    let mut refused: FuturesUnordered<_> = (0..340)
        .map(|_| async {
            let mut connection = Connection::open_from(loud, world.address()).await;
            connection.write(unfinished.as_bytes()).await;
            connection.read(false).await.unwrap()
        })
        .collect();
    for _ in 0..58 {
        let refused = refused.next().await.unwrap();
        assert_eq!((refused.status, refused.closes()), (503, true));
        assert_eq!(refused.header("retry-after"), "60");
    }
    let before = world.counted("scoregate_bodies_refused_total").await;
    assert!((58..=68).contains(&before), "{before}");
    let key = [("X-API-Key", customer.key.as_str())];
    assert_eq!(
        awaited(&world, loud, &key).await.status,
        200,
        "an application's requests are served"
    );
    for _ in 0..10 {
        assert_eq!(awaited(&world, quiet, &[]).await.status, 200);
    }
}

/// Writes a row to the page in `tests/results/`, at full size only.
fn record(row: String) {
    static ROWS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    if !is_full_size() {
        return;
    }
    let mut rows = ROWS.lock().unwrap();
    rows.push(row);
    let cores = cores();
    let page = format!(
        "`{CARGO_TEST} --test suite -- --test-threads=1 unfinished_bodies::`: the {BUILD} build of the program, on {cores} cores \
         shared with its clients, for {} s per row, without the guard's limit. A refused attacker keeps its connection open for 2 s \
         and then reconnects. Other callers send a body 20 ms after its head; all of them were answered.\n\n\
         | Transport | Target | Concurrent bodies | Networks | Memory before | Idle | Peak | Responses to others | Slowest |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n{}\n\n\
         `Idle` is the memory growth with the same number of open connections without a request (on HTTP/2, after the exchange of \
         settings). `Peak` is the growth during the attack, including connections. `Http2(100)` has 100 bodies on each \
         connection. The test requires at most 48 MiB more than for idle connections.\n",
        LONG.as_secs(),
        rows.join("\n")
    );
    let title = "Request bodies that are never finished";
    write_page("unfinished-bodies", title, &page);
}
