//! Connection slots: the limit per address, and the closing of an idle connection for a new one when all slots are in
//! use.

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::client::Connection;
use crate::world::{World, good};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

/// A connection from a loopback address.
async fn from(world: &World, last: u8) -> Connection {
    Connection::open_from(Ipv4Addr::new(127, 0, 0, last).into(), world.address()).await
}

/// Whether a request on this connection is answered.
async fn is_served(connection: &mut Connection) -> bool {
    connection.write(HEALTH).await;
    connection
        .read(false)
        .await
        .is_some_and(|response| response.status == 200)
}

#[tokio::test]
async fn trusted_proxies_have_no_connection_limit_per_address() {
    let settings = "server.max_connections_per_address = 1\nproxies.trusted = [\"127.0.0.1\"]";
    let world = World::with(settings, good).await;
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut connection = from(&world, 1).await;
        assert!(is_served(&mut connection).await);
        held.push(connection);
    }
    let mut other_client = from(&world, 2).await;
    assert!(is_served(&mut other_client).await);
    assert!(from(&world, 2).await.is_closed().await);
}

#[tokio::test]
async fn with_all_connection_slots_in_use_the_longest_idle_connection_is_closed_for_a_new_one() {
    let world = World::with("server.max_connections = 3", good).await;
    let mut held = Vec::new();
    for last in 1..=3 {
        let mut connection = from(&world, last).await;
        assert!(is_served(&mut connection).await);
        held.push(connection);
        world.pass(SECOND);
    }
    for connection in &mut held {
        assert!(
            is_served(connection).await,
            "no other client has connected yet"
        );
        world.pass(SECOND);
    }
    let mut next = from(&world, 4).await;
    assert!(is_served(&mut next).await);
    assert!(held.remove(0).is_closed().await);
    assert_eq!(world.ended("displaced").await, 1);
    for connection in &mut held {
        assert!(is_served(connection).await);
    }
}
