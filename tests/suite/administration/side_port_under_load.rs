//! The side port while the public port is blocked or overloaded: operators get responses without delay. The content
//! of the responses is tested in `side_port_keys`, `purge` and `metrics_scrape`.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, SyncSender, channel, sync_channel},
    },
    thread::{Scope, ThreadId},
    time::{Duration, Instant},
};

use scoregate::{
    gateway::AccessLog,
    upstream::{Upstream, UpstreamFuture as Answered, UpstreamRequest},
};
use tempfile::TempDir;
use tokio::sync::Semaphore;

use crate::{
    in_process_upstream::{behind, one_model},
    load_clients::{TARGET, prepare},
    program::{BUILT_IN, Program},
    world::{Customer, World, good},
};

/// Time limit of a side port response.
const SOON: Duration = Duration::from_millis(100);
/// A test fails after this long without a response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Number of requests per measurement.
const REQUESTS: usize = 40;
/// Attempts on a busy machine. A side port that waits for the public one fails in all of them.
const ATTEMPTS: usize = 5;

/// The response of the side port on a new connection.
fn raw_response(side: SocketAddr, request: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(side).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let head =
        format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{WITH_TOKEN}");
    let length = body.len();
    stream
        .write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())
        .unwrap();
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .unwrap_or_else(|error| panic!("{request} is not answered: {error}"));
    response
}

/// A 200 of the side port, and its duration.
fn timed_get(side: SocketAddr, request: &str) -> (String, Duration) {
    let start = Instant::now();
    let response = raw_response(side, request, "");
    assert!(
        response.starts_with("HTTP/1.1 200 "),
        "{request}: {response}"
    );
    (response, start.elapsed())
}

/// Repeats the measurement until 95 % of its requests are within the limit.
fn assert_fast(what: &str, mut timed_request: impl FnMut() -> Duration) {
    let mut attempts = Vec::new();
    for _ in 0..ATTEMPTS {
        let mut durations: Vec<Duration> = (0..REQUESTS).map(|_| timed_request()).collect();
        durations.sort_unstable();
        let slow = durations[REQUESTS * 19 / 20];
        if slow < SOON {
            return;
        }
        attempts.push((durations[REQUESTS / 2], slow, durations[REQUESTS - 1]));
    }
    panic!("{what}: median, 95th percentile and maximum of each attempt: {attempts:?}");
}

/// Threads of the public port, and concurrent upstream requests.
const THREADS: usize = 2;
const TOKEN: &str = "admin.token = \"a-token-of-the-side-port\"";
const WITH_TOKEN: &str = "Authorization: Bearer a-token-of-the-side-port\r\n";

/// An in-process backend that blocks the threads on which it is called.
struct BlockingUpstream {
    /// Barrier for all calls.
    gate: Semaphore,
    came: Sender<()>,
    kept: Sender<ThreadId>,
    barrier: Arc<RwLock<()>>,
}

impl Upstream for BlockingUpstream {
    fn fetch<'a>(&'a self, _: UpstreamRequest<'a>) -> Answered<'a> {
        Box::pin(async move {
            self.came.send(()).unwrap();
            self.gate.acquire().await.unwrap().forget();
            self.kept.send(std::thread::current().id()).unwrap();
            // Blocks the thread, so that no other task runs on it. No real task may do this.
            drop(self.barrier.read());
            Ok(one_model())
        })
    }

    fn address(&self) -> String {
        "in a test".into()
    }

    fn lists_all_models(&self) -> bool {
        false
    }
}

fn start_request(public: SocketAddr, target: &str, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(public).unwrap();
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

fn status(mut stream: TcpStream) -> String {
    let mut response = [0; 12];
    stream.read_exact(&mut response).unwrap();
    String::from_utf8_lossy(&response).into_owned()
}

/// Runs one closure while every thread of the public port is blocked, and another after their release, with the
/// responses to the two requests that blocked them.
fn while_all_threads_are_blocked<T>(
    while_blocked: impl FnOnce(&World, &Customer) -> T,
    afterwards: impl FnOnce(&World, T, [String; THREADS]),
) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    let (came, all_came) = channel();
    let (kept, all_kept) = channel();
    let backend = BlockingUpstream {
        gate: Semaphore::new(0),
        came,
        kept,
        barrier: Arc::default(),
    };
    let barrier = Arc::clone(&backend.barrier);
    let backend = Arc::new(backend);
    let inside = Arc::clone(&backend) as Arc<dyn Upstream>;
    let (world, customer) = runtime.block_on(async {
        let mut world = World::with(TOKEN, good).await;
        // Enough units are leased, so that only the backend delays the request.
        let customer = world.busy().await;
        behind(&mut world, inside, AccessLog::default()).await;
        (world, customer)
    });
    let closed = barrier.write().unwrap();
    let waiting = ["24h", "7d"].map(|period| {
        let stream = start_request(
            world.running.public,
            &format!("/api/v1/models?period={period}"),
            &customer.key,
        );
        all_came.recv_timeout(TIMEOUT).unwrap();
        stream
    });
    backend.gate.add_permits(THREADS);
    let held = [(); THREADS].map(|()| all_kept.recv_timeout(TIMEOUT).unwrap());
    assert_eq!(
        (runtime.metrics().num_workers(), held[0] != held[1]),
        (THREADS, true)
    );
    let result = while_blocked(&world, &customer);
    drop(closed);
    afterwards(&world, result, waiting.map(status));
}

#[test]
fn with_every_public_thread_blocked_the_side_port_answers_every_request() {
    let while_blocked = |world: &World, customer: &Customer| {
        let late = start_request(world.running.public, "/healthz", "");
        let side = world.running.side;
        let application = format!("GET /v1/keys/show?id={}", customer.id);
        for request in [
            "GET /metrics",
            "GET /healthz",
            "GET /readyz",
            "GET /v1/cache/list",
            &application,
        ] {
            assert_fast(request, || timed_get(side, request).1);
        }
        let metrics = timed_get(side, "GET /metrics").0;
        assert!(
            metrics.contains("\nscoregate_requests_in_progress 2\n"),
            "{metrics}"
        );
        // A key can be revoked meanwhile. The revocation applies once the threads are free.
        let body = format!("{{\"id\":\"{}\"}}", customer.id);
        let revoked = raw_response(side, "POST /v1/keys/revoke", &body);
        assert!(revoked.contains("\"revoked_at\":\"2026"));

        // The earlier request to the public port still has no response.
        late.set_nonblocking(true).unwrap();
        assert_eq!(
            late.peek(&mut [0]).map_err(|error| error.kind()),
            Err(ErrorKind::WouldBlock)
        );
        late.set_nonblocking(false).unwrap();
        late
    };
    while_all_threads_are_blocked(while_blocked, |_, late, waiting| {
        assert_eq!(status(late), "HTTP/1.1 200");
        assert_eq!(waiting, ["HTTP/1.1 401"; THREADS], "their key was revoked");
    });
}

/// The status line and the body of a probe.
fn probed(side: SocketAddr, path: &str) -> (String, String) {
    let response = raw_response(side, &format!("GET {path}"), "");
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head[..12].to_owned(), body.to_owned())
}

#[test]
fn a_blocked_public_runtime_is_not_ready_after_five_seconds_and_not_alive_after_twenty() {
    const OK: &str = "HTTP/1.1 200";
    const UNAVAILABLE: &str = "HTTP/1.1 503";
    let while_blocked = |world: &World, _: &Customer| {
        let side = world.running.side;
        let mut passed = Duration::ZERO;
        for (at, ready, alive) in [
            (0, OK, OK),
            (4_999, OK, OK),
            (5_000, UNAVAILABLE, OK),
            (19_999, UNAVAILABLE, OK),
            (20_000, UNAVAILABLE, UNAVAILABLE),
        ] {
            let at = Duration::from_millis(at);
            world.pass(at.checked_sub(passed).unwrap());
            passed = at;
            let seen = [probed(side, "/readyz"), probed(side, "/healthz")];
            assert_eq!(
                seen.each_ref().map(|(status, _)| status.as_str()),
                [ready, alive],
                "{at:?}: {seen:?}"
            );
        }
        let why = "the runtime of the public port has not run a task for 20 s\n";
        assert_eq!(probed(side, "/readyz").1, format!("not ready: {why}"));
        assert_eq!(probed(side, "/healthz").1, format!("not alive: {why}"));
        assert!(
            timed_get(side, "GET /metrics")
                .0
                .contains("\nscoregate_heartbeat_age_seconds 20\n")
        );
    };
    // The responses to the two waiters depend on which deadline is detected first.
    while_all_threads_are_blocked(while_blocked, |world, (), _| {
        let start = Instant::now();
        let is_alive = || {
            ["/readyz", "/healthz"]
                .iter()
                .all(|path| probed(world.running.side, path).0 == OK)
        };
        while !is_alive() {
            assert!(start.elapsed() < TIMEOUT, "the process does not recover");
        }
    });
}

/// Connections that send requests without pauses, the number of requests per batch, and the maximum number of
/// unanswered batches per connection.
const FLOODS: usize = 8;
const BATCH: u64 = 100;
const AHEAD: usize = 10;
/// Connections that have sent part of a request and send a few more bytes from time to time.
const TRICKLES: usize = 20;
/// Number of samples in which the gateway must be behind.
const SAMPLES: usize = 1_000;

/// Connections that send requests faster than they are answered.
#[derive(Default)]
struct Flood {
    sent: AtomicU64,
    read: AtomicU64,
    over: AtomicBool,
}

impl Flood {
    /// Opens this many connections, which send requests until stopped.
    fn open<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        connections: usize,
        public: SocketAddr,
        key: &'s str,
    ) {
        for _ in 0..connections {
            let stream = Arc::new(TcpStream::connect(public).unwrap());
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.set_write_timeout(Some(TIMEOUT)).unwrap();
            let (ahead, behind) = sync_channel(AHEAD);
            let also = Arc::clone(&stream);
            scope.spawn(move || self.send_request(&stream, key, &ahead));
            scope.spawn(move || self.reads(&also, &behind));
        }
    }

    /// Sends requests on a connection until stopped: cached documents and refused requests alternately.
    fn send_request(&self, mut stream: &TcpStream, key: &str, ahead: &SyncSender<()>) {
        let request = |target: &str, key: &str| {
            format!("HEAD {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
        };
        let few = [
            request(TARGET, key),
            request(TARGET, "sg_live_nobody"),
            request("/nowhere", key),
            request("/docs", ""),
        ];
        let batch: String = few
            .iter()
            .cycle()
            .take(BATCH.try_into().unwrap())
            .map(String::as_str)
            .collect();
        while !self.over.load(Ordering::SeqCst) {
            ahead.send(()).unwrap();
            stream.write_all(batch.as_bytes()).unwrap();
            self.sent.fetch_add(BATCH, Ordering::SeqCst);
        }
    }

    /// Reads all responses of a connection.
    fn reads(&self, mut stream: &TcpStream, ahead: &Receiver<()>) {
        const END: &[u8] = b"\r\n\r\n";
        let mut piece = vec![0; 1 << 16];
        let mut kept = Vec::new();
        let mut seen = 0;
        for () in ahead {
            while seen < BATCH {
                let read = stream.read(&mut piece).unwrap();
                assert!(read > 0, "the connection was closed");
                kept.extend_from_slice(&piece[..read]);
                let ends = kept
                    .windows(END.len())
                    .filter(|window| *window == END)
                    .count();
                kept.drain(..kept.len().saturating_sub(END.len() - 1));
                seen += u64::try_from(ends).unwrap();
                self.read
                    .fetch_add(u64::try_from(ends).unwrap(), Ordering::SeqCst);
            }
            seen -= BATCH;
        }
    }

    /// Duration of a scrape while the gateway was behind: the requests that were sent before the scrape and unanswered
    /// after it outnumbered the unread responses.
    fn scrape_duration(&self, side: SocketAddr, before: u64) -> Duration {
        for _ in 0..SAMPLES {
            let sent = self.sent.load(Ordering::SeqCst);
            let (metrics, scrape_duration) = timed_get(side, "GET /metrics");
            let answered = answered(&metrics) - before;
            let unread = answered.saturating_sub(self.read.load(Ordering::SeqCst));
            if sent.saturating_sub(answered) > unread.max(BATCH) {
                return scrape_duration;
            }
        }
        panic!("the public port is not saturated");
    }
}

/// Number of answered requests, from the metrics.
fn answered(metrics: &str) -> u64 {
    let lines = metrics
        .lines()
        .filter(|line| line.starts_with("scoregate_requests_total{"));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

/// Stops the load, also when a test fails.
struct StopOnDrop<'o>(&'o AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

const ONE_WORKER: [(&str, &str); 3] = [
    ("SCOREGATE_SERVER_WORKERS", "1"),
    ("SCOREGATE_GUARD_PER_MINUTE", "100000000"),
    BUILT_IN[0],
];

#[test]
fn metrics_are_returned_quickly_while_the_public_port_is_overloaded() {
    let directory = TempDir::new().unwrap();
    let load_client = prepare(directory.path(), &[("enterprise", 100_000_000)]).remove(0);
    let program = Program::serve(directory.path(), &ONE_WORKER);
    let (public, side) = program.ports();
    let flood = Flood::default();
    let before = answered(&timed_get(side, "GET /metrics").0);
    std::thread::scope(|scope| {
        flood.open(scope, FLOODS, public, &load_client.key);
        let _ended = StopOnDrop(&flood.over);
        let mut trickles = [(); TRICKLES].map(|()| TcpStream::connect(public).unwrap());
        assert_fast("/metrics", || {
            // A connection that sends too slowly is closed, which is fine.
            for stream in &mut trickles {
                drop(stream.write_all(b"G"));
            }
            flood.scrape_duration(side, before)
        });
    });
    let after = answered(&timed_get(side, "GET /metrics").0);
    let [sent, read] = [&flood.sent, &flood.read].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(
        (after - before, read),
        (sent, sent),
        "all of them were answered in the end"
    );
    program.stop().with(0);
}

/// Connections of the overload: each has a thousand requests outstanding, in total far more than ten seconds of work.
const OVERLOADS: usize = 40;
/// Duration of the overload.
const OVERLOAD_DURATION: Duration = Duration::from_secs(6);
/// The process is not ready with an older heartbeat, long before it counts as not alive.
const FRESH: f64 = 5.0;

/// Age of the public runtime's heartbeat.
fn heartbeat_age(metrics: &str) -> f64 {
    let age = metrics
        .lines()
        .find_map(|line| line.strip_prefix("scoregate_heartbeat_age_seconds "));
    age.unwrap().parse().unwrap()
}

#[test]
fn at_ten_times_the_capacity_the_process_stays_ready_and_alive() {
    let directory = TempDir::new().unwrap();
    let load_client = prepare(directory.path(), &[("enterprise", 100_000_000)]).remove(0);
    let program = Program::serve(directory.path(), &ONE_WORKER);
    let (public, side) = program.ports();
    let flood = Flood::default();
    let before = answered(&timed_get(side, "GET /metrics").0);
    let mut oldest = 0.0_f64;
    let mut most_behind = 0;
    let mut answered_in_all = 0;
    let start = Instant::now();
    std::thread::scope(|scope| {
        flood.open(scope, OVERLOADS, public, &load_client.key);
        let _ended = StopOnDrop(&flood.over);
        while start.elapsed() < OVERLOAD_DURATION {
            // A probe with status 503 fails the test.
            timed_get(side, "GET /readyz");
            timed_get(side, "GET /healthz");
            let sent = flood.sent.load(Ordering::SeqCst);
            let metrics = timed_get(side, "GET /metrics").0;
            oldest = oldest.max(heartbeat_age(&metrics));
            answered_in_all = answered(&metrics) - before;
            most_behind = most_behind.max(sent.saturating_sub(answered_in_all));
        }
    });
    let a_second = answered_in_all / OVERLOAD_DURATION.as_secs();
    writeln!(
        std::io::stderr(),
        "{a_second} responses a second, at most {most_behind} outstanding, oldest heartbeat {oldest:.3} s"
    )
    .unwrap();
    assert!(oldest < FRESH, "{oldest}");
    assert!(most_behind > 0, "the public port kept up");
    program.stop().with(0);
}
