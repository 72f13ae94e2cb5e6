//! Connections of the standalone backend: silent, non-reading and malformed clients; and the shutdown.

use std::time::Duration;

use scoregate_base::clock::Clock;
use tempfile::TempDir;
use tokio::net::TcpSocket;

use super::{MODELS, StandaloneBackend, known_at_noon, noon, run_caller};
use crate::{
    client::Connection,
    program::{Program, run},
};

/// A client that requests more than the kernel buffers hold and does not read. It sends further requests, so that all
/// buffers are full.
async fn non_reading_client(alone: &StandaloneBackend) -> Connection {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut non_reading_client = Connection::over(socket.connect(alone.address).await.unwrap());
    let target = "/api/v1/models/atlas-4-large/history?period=1m";
    let length = alone.get(target).await.body.len();
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    non_reading_client
        .write(request.repeat(32_000_000 / length).as_bytes())
        .await;
    for _ in 0..200 {
        assert_eq!(alone.get(MODELS).await.status, 200);
    }
    non_reading_client
}

#[tokio::test]
async fn builtin_silent_and_non_reading_clients_do_not_delay_others() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    let silent = Connection::open(alone.address).await;
    let mut slow = Connection::open(alone.address).await;
    slow.write(b"GET /api/v1/models HTTP/1.1\r\nHost: loc")
        .await;
    let non_reading_client = non_reading_client(&alone).await;
    slow.write(b"alhost\r\n\r\n").await;
    assert_eq!(slow.read(false).await.unwrap().status, 200);
    drop((silent, non_reading_client));
}

#[tokio::test]
async fn builtin_with_all_connection_slots_in_use_clients_wait_for_a_free_one() {
    let (clock, _hand) = Clock::manual(noon());
    let alone = StandaloneBackend::with_slots(known_at_noon(), &clock, 2).await;
    let mut with_slot = [
        Connection::open(alone.address).await,
        Connection::open(alone.address).await,
    ];
    for one in &mut with_slot {
        assert_eq!(run_caller(one, "GET", "/healthz", &[]).await.status, 200);
    }
    let [leaving, mut staying] = with_slot;
    let mut waiting = Connection::open(alone.address).await;
    waiting
        .write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let mut response = std::pin::pin!(waiting.read(false));
    // Clients with a slot are answered while the third one is not.
    for _ in 0..50 {
        tokio::select! {
            biased;
            early = &mut response => panic!("no slot was free: {early:?}"),
            with_slot = run_caller(&mut staying, "GET", MODELS, &[]) => assert_eq!(with_slot.status, 200),
        }
    }
    drop(leaving);
    assert_eq!(response.await.unwrap().status, 200);
}

#[tokio::test]
async fn builtin_connections_have_a_maximum_age() {
    let (alone, manual_clock) = StandaloneBackend::at_noon().await;
    let mut connection = Connection::open(alone.address).await;
    assert_eq!(
        run_caller(&mut connection, "GET", MODELS, &[]).await.status,
        200
    );
    manual_clock.advance(Duration::from_mins(9));
    assert_eq!(
        run_caller(&mut connection, "GET", MODELS, &[]).await.status,
        200
    );
    manual_clock.advance(Duration::from_mins(1));
    assert!(connection.is_closed().await);
    assert_eq!(alone.get(MODELS).await.status, 200);
}

#[tokio::test]
async fn builtin_shutdown_closes_the_listener_and_idle_connections() {
    let (alone, _) = StandaloneBackend::at_noon().await;
    let mut connection = Connection::open(alone.address).await;
    assert_eq!(
        run_caller(&mut connection, "GET", MODELS, &[]).await.status,
        200
    );
    alone.stop.cancel();
    alone.serving.await.unwrap();
    assert!(connection.is_closed().await);
    assert!(tokio::net::TcpStream::connect(alone.address).await.is_err());
}

#[tokio::test]
async fn builtin_shutdown_does_not_wait_for_a_client_that_reads_nothing() {
    let (alone, manual_clock) = StandaloneBackend::at_noon().await;
    let _non_reading = non_reading_client(&alone).await;
    alone.stop.cancel();
    // The clock of the backend does not advance, so a wait would never end.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(
        !alone.serving.is_finished(),
        "the client has read all of it"
    );
    manual_clock.advance(Duration::from_secs(2));
    alone.serving.await.unwrap();
}

#[test]
fn builtin_the_program_serves_until_it_is_stopped() {
    let directory = TempDir::new().unwrap();
    let archive = directory.path().join("runs.db");
    let words = [
        "scoring",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--archive",
        archive.to_str().unwrap(),
    ];
    let program = Program::start(&words, &[]);
    let line = program.logs("serving on http://");
    let (_, address) = line.split_once("http://").unwrap();
    let (address, rest) = address.split_once('/').unwrap();
    assert_eq!(rest, "api/v1; stop with Ctrl-C");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let response = runtime.block_on(async {
        let mut connection = Connection::open(address.parse().unwrap()).await;
        run_caller(&mut connection, "GET", MODELS, &[]).await
    });
    assert_eq!(
        (
            response.status,
            response.json()["data"].as_array().map(Vec::len)
        ),
        (200, Some(0))
    );
    let ended = program.stop().with(0);
    assert!(
        ended.out.is_empty() && ended.err.contains("stopping") && ended.err.contains("stopped")
    );
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
}

#[test]
fn builtin_start_failures_are_reported_and_set_the_exit_code() {
    let missing = run(&[
        "scoring",
        "serve",
        "--archive",
        "no/such.db",
        "--listen",
        "127.0.0.1:0",
    ])
    .with(2);
    assert!(missing.err.contains("no/such.db"), "{}", missing.err);
    let directory = TempDir::new().unwrap();
    let archive = directory.path().join("runs.db");
    let with = |more: [&str; 2]| {
        run(&[
            &["scoring", "serve", "--archive", archive.to_str().unwrap()],
            &more[..],
        ]
        .concat())
    };
    assert!(with(["--log-level", "loud"]).with(1).err.contains("loud"));
    with(["--max-connections", "0"]).with(1);
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let used = used.local_addr().unwrap().to_string();
    assert!(with(["--listen", &used]).with(2).err.contains(&used));
}
