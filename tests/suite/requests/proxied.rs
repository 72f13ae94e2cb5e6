//! Behind a proxy that only forwards bytes, the client address comes from the PROXY header of a trusted proxy. Other
//! PROXY headers are rejected.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use crate::{
    client::{Connection, Response},
    world::{World, good},
};

const SETTINGS: &str = "proxies.proxy_protocol = [\"127.0.0.1\"]\nguard.per_minute = 3";
const ASK: &str = "GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A PROXY header of version 2 for this client.
fn binary(client: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend_from_slice(&client);
    header.extend_from_slice(&[127, 0, 0, 1, 0x30, 0x39, 0x1f, 0x90]);
    header
}

/// The response to a request after this header, from a loopback address; `None` if the connection is closed.
async fn request(world: &World, from: u8, header: &[u8]) -> Option<Response> {
    let local = IpAddr::V4(Ipv4Addr::new(127, 0, 0, from));
    let mut connection = Connection::open_from(local, world.address()).await;
    connection.write(&[header, ASK.as_bytes()].concat()).await;
    connection.read(false).await
}

async fn left(world: &World, from: u8, header: &[u8]) -> u64 {
    request(world, from, header)
        .await
        .unwrap()
        .number("x-ratelimit-remaining")
}

#[tokio::test]
async fn each_client_behind_a_trusted_proxy_has_its_own_guard_in_both_protocol_versions() {
    let world = World::with(SETTINGS, good).await;
    let text = b"PROXY TCP4 192.0.2.1 127.0.0.1 12345 8080\r\n";
    assert_eq!(left(&world, 1, text).await, 2);
    assert_eq!(
        left(&world, 1, &binary([192, 0, 2, 1])).await,
        1,
        "the same client, by the other protocol version"
    );
    assert_eq!(left(&world, 1, &binary([192, 0, 2, 2])).await, 2);
    assert_eq!(
        left(&world, 1, b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n").await,
        2
    );
    assert_eq!(
        left(&world, 1, b"PROXY TCP6 2001:db8::2 ::1 1 2\r\n").await,
        1,
        "its network is counted"
    );
    // The proxy's own connection, as for its health checks.
    assert_eq!(left(&world, 1, b"PROXY UNKNOWN\r\n").await, 2);
    assert_eq!(left(&world, 1, b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0").await, 1);
}

#[tokio::test]
async fn a_proxy_header_applies_to_all_requests_of_its_connection() {
    let world = World::with(SETTINGS, good).await;
    let mut connection = world.connect().await;
    connection.write(&binary([192, 0, 2, 9])).await;
    for left in [2, 1, 0] {
        connection.write(ASK.as_bytes()).await;
        assert_eq!(
            connection
                .read(false)
                .await
                .unwrap()
                .number("x-ratelimit-remaining"),
            left
        );
    }
}

#[tokio::test]
async fn a_trusted_proxy_must_send_a_proxy_header_and_others_must_not() {
    let world = World::with(SETTINGS, good).await;
    assert!(request(&world, 1, b"").await.is_none(), "no header");
    assert!(
        request(&world, 1, b"PROXY TCP4 192.0.2.1 127.0.0.1 99999 1\r\n")
            .await
            .is_none()
    );
    assert_eq!(world.ended("failed").await, 2);
    let direct = request(&world, 2, b"PROXY TCP4 192.0.2.1 127.0.0.1 1 1\r\n")
        .await
        .unwrap();
    assert_eq!((direct.status, direct.body.len()), (400, 0), "not HTTP");
    assert_eq!(
        left(&world, 2, b"").await,
        2,
        "an untrusted address without a header"
    );
    assert!(world.backend.received().is_empty());
}

#[tokio::test]
async fn an_incomplete_proxy_header_has_the_timeout_of_a_head() {
    let world = World::with(SETTINGS, good).await;
    let mut half = world.connect().await;
    half.write(b"PROXY TCP4 192.0.2.1 ").await;
    world.reaches("scoregate_connections", 1).await;
    world.pass(Duration::from_secs(9));
    assert!(half.is_closed().await);
    assert_eq!(world.ended("head_timeout").await, 1);
}

#[tokio::test]
async fn a_trusted_proxy_behind_a_proxy_has_as_many_connections_as_it_needs_and_other_clients_do_not()
 {
    let settings = "proxies.proxy_protocol = [\"127.0.0.1\"]\nproxies.trusted = [\"127.0.0.1\", \"192.0.2.7\"]\n\
        server.max_connections_per_address = 1";
    let world = World::with(settings, good).await;
    let mut held = Vec::new();
    let mut are_answered = async |client: u8| {
        let mut connection = world.connect().await;
        connection
            .write(&[&binary([192, 0, 2, client])[..], ASK.as_bytes()].concat())
            .await;
        let is_answered = connection.read(false).await.is_some();
        held.push(connection);
        is_answered
    };
    assert!(are_answered(7).await && are_answered(7).await && are_answered(7).await);
    assert!(are_answered(8).await);
    assert!(
        !are_answered(8).await,
        "its proxy is trusted, but the client is not"
    );
}

/// Opens a connection with this header and sends a request. Returns whether it is answered, and the connection.
async fn connect(world: &World, header: &[u8]) -> (bool, Connection) {
    let mut connection = world.connect().await;
    connection
        .write(&[header, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"].concat())
        .await;
    let is_answered = connection
        .read(false)
        .await
        .is_some_and(|response| response.status == 200);
    (is_answered, connection)
}

#[tokio::test]
async fn clients_behind_one_proxy_have_two_connections_each_and_a_third_is_refused() {
    // The proxy is also trusted for the HTTP header, as is common. This exempts the proxy itself, but none of its
    // clients.
    let settings = "proxies.proxy_protocol = [\"127.0.0.1\"]\nproxies.trusted = [\"127.0.0.1\"]\n\
        server.max_connections_per_address = 2";
    let world = World::with(settings, good).await;
    let text =
        |client: u8| format!("PROXY TCP4 192.0.2.{client} 127.0.0.1 4000 8080\r\n").into_bytes();
    let mut held = Vec::new();
    for client in 1..=20 {
        for header in [binary([192, 0, 2, client]), text(client)] {
            let (is_answered, connection) = connect(&world, &header).await;
            assert!(is_answered, "client {client}");
            held.push(connection);
        }
        assert!(
            !connect(&world, &binary([192, 0, 2, client])).await.0,
            "client {client} has two already"
        );
    }
    assert_eq!((held.len(), world.ended("address_limit").await), (40, 20));
    // An address with many connections gets two slots, and takes none from other addresses.
    let mut answered = 0;
    for _ in 0..100 {
        let (is_answered, connection) = connect(&world, &binary([198, 51, 100, 1])).await;
        answered += u32::from(is_answered);
        held.push(connection);
    }
    assert_eq!((answered, world.ended("address_limit").await), (2, 118));
    assert!(connect(&world, &binary([198, 51, 100, 2])).await.0);
    // Addresses of one IPv6 prefix share its slots.
    for (host, is_answered) in [(1, true), (2, true), (3, false)] {
        let (answered, connection) = connect(
            &world,
            format!("PROXY TCP6 2001:db8::{host} ::1 1 2\r\n").as_bytes(),
        )
        .await;
        assert_eq!(answered, is_answered, "2001:db8::{host}");
        held.push(connection);
    }
    // A slot is free again when its connection ends.
    let before = world.ended("done").await;
    drop(held.swap_remove(0));
    world
        .reaches("scoregate_connections_total{reason=\"done\"}", before + 1)
        .await;
    assert!(connect(&world, &binary([192, 0, 2, 1])).await.0);
}
