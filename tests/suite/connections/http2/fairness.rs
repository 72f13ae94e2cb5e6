//! One HTTP/2 connection with all its streams delays other clients no more than as many HTTP/1.1 connections do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use scoregate_base::clock::Clock;
use tokio::task::JoinSet;

use super::http2_client::Http2Client;
use crate::attempts::best_of_three;
use crate::balances::own;
use crate::client::Connection;
use crate::world::{World, good};

/// Number of concurrent requests.
const CONCURRENT: usize = 100;
/// Duration of each measurement.
const WHILE: Duration = Duration::from_millis(600);

/// Sends requests on an HTTP/1.1 connection until stopped; returns their durations.
async fn other_client(world: &World, hit: &[u8]) -> Duration {
    let clock = Clock::system();
    let mut connection = Connection::open(world.address()).await;
    let start = clock.now().mono;
    let mut times = Vec::new();
    loop {
        let asked_at = clock.now().mono;
        connection.write(hit).await;
        assert_eq!(connection.read(false).await.expect("an answer").status, 200);
        let now = clock.now().mono;
        times.push(now.since(asked_at));
        if now.since(start) > WHILE {
            times.sort();
            return times[times.len() / 2];
        }
    }
}

/// Compares the delays of another client beside streams and beside connections.
async fn compare(world: &World, key: &str) -> Result<(), String> {
    let hit = format!("GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n\r\n")
        .into_bytes();
    let alone = other_client(world, &hit).await;
    let over = Arc::new(AtomicBool::new(false));
    let client = Http2Client::to(world.address()).await;
    let answered = Arc::new(AtomicUsize::new(0));
    let mut streams = JoinSet::new();
    for _ in 0..CONCURRENT {
        let over = Arc::clone(&over);
        let client = client.clone();
        let key = key.to_owned();
        let answered = Arc::clone(&answered);
        streams.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let response = client
                    .request("GET", "/api/v1/models", &[("x-api-key", &key)])
                    .await;
                assert_eq!(response.expect("an answer").status, 200);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut beside_streams = other_client(world, &hit).await;
    for _ in 0..20 {
        // On a busy machine the streams need longer for enough requests.
        if answered.load(Ordering::Relaxed) <= 10 * CONCURRENT {
            beside_streams = other_client(world, &hit).await;
        }
    }
    over.store(true, Ordering::Relaxed);
    streams.join_all().await;
    if answered.load(Ordering::Relaxed) <= 10 * CONCURRENT {
        return Err(format!("the streams sent too few requests: {answered:?}"));
    }
    over.store(false, Ordering::Relaxed);
    let mut connections = JoinSet::new();
    for _ in 0..CONCURRENT {
        let over = Arc::clone(&over);
        let hit = hit.clone();
        let mut connection = Connection::open(world.address()).await;
        connections.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                connection.write(&hit).await;
                assert_eq!(connection.read(false).await.expect("an answer").status, 200);
            }
        });
    }
    let beside_connections = other_client(world, &hit).await;
    over.store(true, Ordering::Relaxed);
    connections.join_all().await;
    let measured = format!(
        "{alone:?} alone, {beside_streams:?} beside streams, {beside_connections:?} beside connections"
    );
    let bound = 2 * beside_connections + Duration::from_millis(5);
    if beside_streams <= bound {
        Ok(())
    } else {
        Err(measured)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_a_hundred_streams_delay_other_clients_no_more_than_a_hundred_connections() {
    let world = World::with("", good).await;
    let key = world
        .customer_with("enterprise", own(4_000_000, 4_000_000))
        .await
        .key;
    best_of_three(async || compare(&world, &key).await).await;
}
