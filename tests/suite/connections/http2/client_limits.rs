//! Limits that depend on the key of a client: pending responses of a connection, connections of an application, and the
//! memory that one key takes in an attack.

#![expect(clippy::print_stdout, reason = "the tests print their figures")]

use std::{
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
};

use super::{
    DATA, END_STREAM, GOAWAY, HEADERS, PREFACE, RST_STREAM, SETTINGS, WINDOW_UPDATE, Wire, code,
    frame, get, request,
    unread_responses::{AttackTarget, program},
};
use crate::{
    balances::own,
    client::Connection,
    connections::slow_clients::{self, Part},
    full_runs::is_full_size,
    program::{Keys, ProgramClient},
    world::{World, good},
};

const INITIAL_WINDOW: u16 = 4;
const REFUSED_STREAM: u32 = 7;
const SECOND: Duration = Duration::from_secs(1);
const MEGABYTE: u64 = 1 << 20;

/// This many requests with a key.
fn requests(streams: u32, target: &str, key: &str) -> Vec<u8> {
    let fields = get(target, &[("x-api-key", key)]);
    (0..streams)
        .flat_map(|of| request(2 * of + 1, &fields))
        .collect()
}

/// How many of twenty requests are answered and refused if the client opens no window.
async fn answered_and_refused(world: &World, target: &str, key: &str) -> (usize, usize) {
    let mut connection = Wire::open_with(world.address(), &[(INITIAL_WINDOW, 0)]).await;
    connection.send(&requests(20, target, key)).await;
    let mut answered = 0;
    let mut refused = 0;
    while answered + refused < 20 {
        let read = connection.read().await.unwrap();
        answered += usize::from(read.kind == HEADERS);
        refused += usize::from(read.kind == RST_STREAM && code(&read.payload) == REFUSED_STREAM);
    }
    (answered, refused)
}

#[tokio::test]
async fn http2_eight_responses_wait_for_a_client_without_an_admitted_request_of_a_paid_tier() {
    let world = World::new().await;
    let free = world.customer_with("free", own(100, 100)).await.key;
    assert_eq!(
        answered_and_refused(&world, "/api/v1/models", &free).await,
        (8, 12),
        "admitted, but free"
    );
    let paid = world.customer_with("pro", own(1, 100)).await.key;
    assert_eq!(
        answered_and_refused(&world, "/api/v1/me", &paid).await,
        (8, 12),
        "takes no token of the minute"
    );
    assert_eq!(
        answered_and_refused(&world, "/api/v1/models", &paid).await,
        (20, 0),
        "the first one is admitted"
    );
    assert_eq!(
        answered_and_refused(&world, "/api/v1/models", &paid).await,
        (8, 12),
        "all of them get 429"
    );
    assert_eq!(
        world
            .counted("scoregate_streams_refused_total{scope=\"connection\"}")
            .await,
        36
    );
    assert_eq!(
        world
            .counted("scoregate_streams_refused_total{scope=\"process\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn http2_a_client_with_a_key_that_reads_gets_a_response_to_each_of_a_hundred_requests() {
    let world = World::new().await;
    let key = world.customer("free").await.key;
    let mut connection = Wire::open(world.address()).await;
    connection
        .send(&requests(100, "/api/v1/models", &key))
        .await;
    let mut ended = 0;
    while ended < 100 {
        let read = connection.read().await.unwrap();
        assert_ne!(read.kind, RST_STREAM, "after {ended} responses");
        ended += u32::from(read.kind == DATA && read.flags & END_STREAM != 0);
    }
}

#[tokio::test]
async fn connections_above_the_limit_of_an_application_are_closed_after_a_response() {
    let settings =
        "server.max_connections_per_application = 2\nserver.max_connections_per_address = 100";
    let world = World::with(settings, good).await;
    let [key, other] = [
        world.customer_with("pro", own(2, 1_000)).await.key,
        world.paid().await.key,
    ];
    let get_models = |key: &str| {
        format!("GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
            .into_bytes()
    };
    let mut held = Vec::new();
    for number in 0..4 {
        let mut connection =
            Connection::open_from(Ipv4Addr::new(127, 0, 0, 1 + number).into(), world.address())
                .await;
        connection.write(&get_models(&key)).await;
        let response = connection.read(false).await.unwrap();
        assert_eq!(
            (response.status, response.closes()),
            (if number < 2 { 200 } else { 429 }, number >= 2)
        );
        held.push(connection);
    }
    world
        .reaches(
            "scoregate_connections_total{reason=\"application_limit\"}",
            2,
        )
        .await;
    let mut surplus = Wire::open(world.address()).await;
    surplus.send(&requests(1, "/api/v1/models", &key)).await;
    while surplus.find(DATA).await.flags & END_STREAM == 0 {}
    assert_eq!(code(&surplus.find(GOAWAY).await.payload[4..]), 0);
    let mut of_another = world.connect().await;
    of_another.write(&get_models(&other)).await;
    assert!(
        !of_another.read(false).await.unwrap().closes(),
        "it has its own connections"
    );
    held.truncate(1);
    world
        .reaches("scoregate_connections_total{reason=\"done\"}", 1)
        .await;
    let mut next = world.connect().await;
    next.write(&get_models(&key)).await;
    assert!(!next.read(false).await.unwrap().closes());
}

#[tokio::test]
async fn connections_of_a_trusted_proxy_are_not_counted_for_an_application() {
    let settings = "server.max_connections_per_application = 1\nproxies.trusted = [\"127.0.0.1\"]";
    let world = World::with(settings, good).await;
    let key = world.customer_with("pro", own(1, 1_000)).await.key;
    let mut held = Vec::new();
    for _ in 0..3 {
        let mut connection = world.connect().await;
        let request =
            format!("GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n");
        connection.write(request.as_bytes()).await;
        assert!(!connection.read(false).await.unwrap().closes());
        held.push(connection);
    }
}

/// Reads to the end of a connection, and opens its windows after the first GOAWAY. Returns the responses begun, completed and
/// refused, and the last stream of the last GOAWAY.
async fn drained(connection: &mut Wire) -> (usize, usize, usize, u32) {
    let mut begun = 0;
    let mut completed = 0;
    let mut refused = 0;
    let mut last = 0;
    while let Some(read) = connection.read().await {
        begun += usize::from(read.kind == HEADERS);
        completed += usize::from(read.kind == DATA && read.flags & END_STREAM != 0);
        refused += usize::from(read.kind == RST_STREAM && code(&read.payload) == REFUSED_STREAM);
        if read.kind == GOAWAY {
            assert_eq!(code(&read.payload[4..]), 0);
            if last == 0 {
                let room = [
                    // The next two frames are for streams that were not accepted.
                    frame(WINDOW_UPDATE, 0, 119, &[0, 1, 0, 0]),
                    frame(RST_STREAM, 0, 117, &[0, 0, 0, 8]),
                    frame(SETTINGS, 0, 0, &[0, 4, 0, 15, 0, 0]),
                    frame(WINDOW_UPDATE, 0, 0, &[0, 127, 0, 0]),
                ];
                connection.send(&room.concat()).await;
            }
            last = code(&read.payload);
        }
    }
    (begun, completed, refused, last)
}

#[tokio::test]
async fn http2_after_a_burst_beyond_the_limit_every_response_that_has_begun_is_completed() {
    let world = World::new().await;
    let key = world.customer_with("free", own(100, 100)).await.key;
    for (number, (target, key)) in
        (1..).zip([("/api/v1/models", key.as_str()), ("/openapi.json", "")])
    {
        let mut connection = Wire::open_with(world.address(), &[(INITIAL_WINDOW, 0)]).await;
        connection.send(&requests(60, target, key)).await;
        // The client may repeat the requests after the last stream.
        assert_eq!(drained(&mut connection).await, (8, 8, 21, 57), "{target}");
        world
            .reaches("scoregate_connections_total{reason=\"done\"}", number)
            .await;
    }
}

/// The connections of an attack. At full size there are fewer if the limit of open files is lower.
fn connections() -> u32 {
    if !is_full_size() {
        return 800;
    }
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let soft: u32 = files
        .split_whitespace()
        .nth(3)
        .unwrap()
        .parse()
        .unwrap_or(u32::MAX);
    10_000.min(soft.saturating_sub(1_000))
}

/// An attack from ten addresses: each connection sends a hundred requests and reads frames, but opens no window. Ends after
/// `duration`, and returns how many connections were closed by then.
async fn attack(
    target: &AttackTarget,
    connections: u32,
    opening: Vec<u8>,
    duration: Duration,
) -> usize {
    let closed = Arc::new(AtomicUsize::new(0));
    let numbers = (0..connections).map(|number| number % 10);
    let attackers: Vec<_> = target
        .open_all(numbers, &opening, |stream, _| stream)
        .await
        .into_iter()
        .map(|mut stream| {
            let closed = Arc::clone(&closed);
            tokio::spawn(async move {
                let mut chunk = [0; 4_096];
                while !matches!(stream.read(&mut chunk).await, Ok(0) | Err(_)) {}
                closed.fetch_add(1, Ordering::Relaxed);
            })
        })
        .collect();
    Clock::system().sleep(duration).await;
    attackers.iter().for_each(tokio::task::JoinHandle::abort);
    closed.load(Ordering::Relaxed)
}

/// Sends requests of a paid caller until stopped, and returns their number and the longest duration.
async fn paid_caller(
    client: ProgramClient,
    key: String,
    over: Arc<AtomicUsize>,
) -> (usize, Duration) {
    let clock = Clock::system();
    let mut count = 0;
    let mut slowest = Duration::ZERO;
    while over.load(Ordering::Relaxed) == 0 {
        let asked_at = clock.mono();
        assert_eq!(client.get("/api/v1/models", &key).send().await.status, 200);
        slowest = slowest.max(clock.mono().since(asked_at));
        count += 1;
        clock.sleep(SECOND / 20).await;
    }
    (count, slowest)
}

/// Checks the memory of a program in an attack of this many connections, with or without a key: at most `allowed`, once
/// the gateway has closed connections.
async fn check_attack(with_key: bool, connections: u32, allowed: u64) {
    let directory = TempDir::new().unwrap();
    let (program, target) = program(directory.path(), 10_000, false);
    let state = directory.path().join("state");
    let [(_, free), (_, paid)] = ["free", "enterprise"].map(|tier| Keys(&state).create(tier));
    let over = Arc::new(AtomicUsize::new(0));
    let client = ProgramClient::to(target.address).await;
    let caller = tokio::spawn(paid_caller(client, paid, Arc::clone(&over)));
    let before = program.resident();
    let flight = if with_key {
        requests(100, "/api/v1/models", &free)
    } else {
        requests(8, "/openapi.json", "")
    };
    let opening = [
        PREFACE,
        &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]),
        &flight,
    ]
    .concat();
    let settling = if is_full_size() {
        15 * SECOND
    } else {
        5 * SECOND
    };
    let closed = attack(&target, connections, opening, settling).await;
    let [after, peak] =
        [program.resident(), program.most_resident()].map(|bytes| bytes.saturating_sub(before));
    over.store(1, Ordering::Relaxed);
    let shown = if with_key { "one Free key" } else { "none" };
    let [after_mb, peak_mb] = [after, peak].map(|bytes| bytes / MEGABYTE);
    let (count, slowest) = caller.await.unwrap();
    let row = format!(
        "| TCP | {shown} | {connections} | {closed} | {after_mb} MB | {peak_mb} MB | {count} | {slowest:?} |"
    );
    // The attack uses CPU time of this machine too.
    assert!(count > 10 && slowest < 10 * SECOND, "{row}");
    println!("{row}");
    slow_clients::record(Part::Keys, row);
    assert!(after <= allowed, "{after} bytes of {allowed}");
    if with_key {
        assert!(
            closed + 256 >= connections as usize,
            "{closed} of {connections} were closed"
        );
    }
    assert_eq!(program.stop().code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_one_free_key_on_ten_addresses_takes_little_memory_and_paid_callers_are_served() {
    let allowed = if is_full_size() { 100 } else { 64 };
    check_attack(true, connections(), allowed * MEGABYTE).await;
}

/// An idle connection of an unoptimized build.
const IDLE: u64 = 24 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_clients_without_a_key_take_64_megabytes_beyond_their_idle_connections() {
    let connections = connections();
    let allowed = 64 * MEGABYTE + u64::from(connections) * IDLE;
    check_attack(false, connections, allowed).await;
}

/// Memory of a TLS connection whose client reads nothing of a large page, in an unoptimized build.
const UNREAD_OVER_TLS: u64 = 100 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_read_nothing_over_tls_hold_one_record_of_a_large_page_each() {
    let directory = TempDir::new().unwrap();
    let (program, target) = program(directory.path(), 10_000, true);
    let tls = target.tls_of_http1().unwrap();
    let opening = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20);
    let mut held = Vec::new();
    let mut before = 0;
    for number in 0..250 {
        // The first connections warm up the program.
        if number == 50 {
            before = program.resident();
        }
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let stream = socket.connect(target.address).await.unwrap();
        let mut stream = tls
            .connect("localhost".try_into().unwrap(), stream)
            .await
            .unwrap();
        stream.write_all(&opening).await.unwrap();
        stream.flush().await.unwrap();
        held.push(stream);
    }
    Clock::system().sleep(2 * SECOND).await;
    let each = program.resident().saturating_sub(before) / 200;
    println!("{} kB for each of 200 connections", each >> 10);
    assert!(each <= UNREAD_OVER_TLS, "{each} bytes for each");
    drop(held);
    assert_eq!(program.stop().code, Some(0));
}
