//! The client address behind proxies: the guard uses the addresses that trusted proxies report, and no others.

use std::net::IpAddr;

use crate::{
    client::Connection,
    world::{World, good},
};

/// Loopback addresses of trusted proxies.
const LISTED: &str = "proxies.trusted = [\"127.1.0.0/16\", \"2001:db8:aaaa::/48\"]\n";
const PROXY: &str = "127.1.0.1";
/// A loopback address of an untrusted peer.
const UNTRUSTED: &str = "127.2.0.1";

type Lines<'l> = &'l [(&'l str, &'l str)];

async fn world(settings: &str) -> World {
    World::with(&format!("{settings}\n{LISTED}"), good).await
}

async fn from(world: &World, peer: &str) -> Connection {
    Connection::open_from(peer.parse().unwrap(), world.address()).await
}

/// The remaining allowance of the sender's guard after one refused request.
async fn left_over(connection: &mut Connection, world: &World, lines: Lines<'_>) -> u64 {
    let request = world.get("/api/v1/models");
    let request = lines.iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    let response = connection.send(request).await;
    assert_eq!(
        (response.status, response.header("x-ratelimit-resource")),
        (401, "guard"),
        "{lines:?}"
    );
    assert_eq!(response.number("x-ratelimit-limit"), 60);
    response.number("x-ratelimit-remaining")
}

/// Like `left_over`, on a new connection.
async fn left(world: &World, peer: &str, lines: Lines<'_>) -> u64 {
    left_over(&mut from(world, peer).await, world, lines).await
}

fn guard_of(world: &World, address: &str) -> u32 {
    world.guard_of(address.parse::<IpAddr>().unwrap())
}

#[tokio::test]
async fn two_clients_behind_one_proxy_have_separate_guards() {
    let world = world("").await;
    // A proxy sends the requests of many clients over one connection.
    let mut proxy = from(&world, PROXY).await;
    for expected in [59, 58, 57] {
        for client in ["192.0.2.1", "198.51.100.7"] {
            assert_eq!(
                left_over(&mut proxy, &world, &[("X-Forwarded-For", client)]).await,
                expected
            );
        }
    }
    // The same client through another proxy and with a port.
    assert_eq!(
        left(
            &world,
            "127.1.2.3",
            &[("X-Forwarded-For", "192.0.2.1:4711")]
        )
        .await,
        56
    );
    assert_eq!(
        (guard_of(&world, "198.51.100.7"), guard_of(&world, PROXY)),
        (57, 60)
    );
}

#[tokio::test]
async fn a_header_from_a_peer_that_is_not_listed_changes_nothing() {
    for header in ["x-forwarded-for", "none"] {
        let world = world(&format!("proxies.header = \"{header}\"")).await;
        for (spoofed, expected) in [
            ("192.0.2.1", 59),
            ("192.0.2.2", 58),
            (PROXY, 57),
            ("127.0.0.1", 56),
        ] {
            let forwarded = format!("for={spoofed}");
            let lines = [
                ("X-Forwarded-For", spoofed),
                ("Forwarded", &forwarded),
                ("X-Real-IP", spoofed),
            ];
            assert_eq!(left(&world, UNTRUSTED, &lines).await, expected);
            assert_eq!(guard_of(&world, spoofed), 60);
        }
    }
}

#[tokio::test]
async fn forwarding_headers_reach_no_backend_and_change_no_response() {
    let world = world("").await;
    let customer = world.customer("pro").await;
    let plain = world.get_as(&customer, "/api/v1/models").await;
    let request = world
        .get("/api/v1/index")
        .key(&customer.key)
        .header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(from(&world, PROXY).await.send(request).await.status, 200);
    let request = world
        .get("/api/v1/models")
        .key(&customer.key)
        .header("X-Forwarded-For", "192.0.2.1");
    let response = from(&world, PROXY).await.send(request).await;
    assert_eq!(
        (
            response.status,
            response.body == plain.body,
            response.header("etag")
        ),
        (200, true, plain.header("etag"))
    );
    for received in world.backend.received() {
        assert!(
            !format!("{received:?}").to_lowercase().contains("forwarded"),
            "{received:?}"
        );
    }
}
