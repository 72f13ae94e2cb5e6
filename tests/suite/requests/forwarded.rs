//! The client address behind proxies: the guard follows the addresses that trusted proxies report, and no others.

use std::net::IpAddr;

use crate::client::Connection;
use crate::world::{World, good};

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

/// The same on a new connection.
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
async fn a_client_with_an_exhausted_guard_does_not_affect_others_behind_its_proxy() {
    let world = world("guard.per_minute = 1").await;
    for (client, status) in [
        ("192.0.2.1", 401),
        ("192.0.2.1", 429),
        ("198.51.100.7", 401),
        ("192.0.2.1", 429),
        ("2001:db8::1", 401),
    ] {
        let request = world
            .get("/api/v1/models")
            .header("X-Forwarded-For", client);
        let response = from(&world, PROXY).await.send(request).await;
        assert_eq!(
            (response.status, response.header("x-ratelimit-resource")),
            (status, "guard"),
            "{client}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_limited_total{rule=\"guard\",tier=\"none\"}")
            .await,
        2
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
async fn no_proxy_is_trusted_by_default() {
    let world = World::new().await;
    for (spoofed, expected) in [("192.0.2.1", 59), ("192.0.2.2", 58)] {
        assert_eq!(
            left(&world, "127.0.0.1", &[("X-Forwarded-For", spoofed)]).await,
            expected
        );
    }
}

#[tokio::test]
async fn entries_that_the_client_prepends_are_ignored() {
    let x_forwarded_for = world("").await;
    for (spoofed, expected) in [
        ("203.0.113.1, 192.0.2.1", 59),
        ("203.0.113.2, 203.0.113.3,192.0.2.1", 58),
        ("127.1.0.9, 192.0.2.1", 57),
        ("\"; unknown,,, 192.0.2.1", 56),
        ("203.0.113.4, 192.0.2.1, 127.1.0.2", 55),
    ] {
        assert_eq!(
            left(&x_forwarded_for, PROXY, &[("X-Forwarded-For", spoofed)]).await,
            expected,
            "{spoofed}"
        );
    }
    let lines = [
        ("X-Forwarded-For", "203.0.113.5"),
        ("X-Forwarded-For", "192.0.2.1"),
    ];
    assert_eq!(left(&x_forwarded_for, PROXY, &lines).await, 54);
}

#[tokio::test]
async fn other_headers_than_the_configured_one_are_ignored() {
    for (header, expected) in [
        ("x-forwarded-for", ["192.0.2.1", "192.0.2.1", "192.0.2.1"]),
        ("none", [PROXY, PROXY, PROXY]),
    ] {
        let world = world(&format!("proxies.header = \"{header}\"")).await;
        for (turn, client) in expected.into_iter().enumerate() {
            let other = format!("For=\"203.0.113.{}:80\"", turn + 1);
            let before = u64::from(guard_of(&world, client));
            let lines = [("X-Forwarded-For", "192.0.2.1"), ("Forwarded", &other)];
            assert_eq!(
                left(&world, PROXY, &lines).await,
                before - 1,
                "{header} {client}"
            );
            assert_eq!(
                u64::from(guard_of(&world, client)),
                before - 1,
                "{header} {client}"
            );
        }
    }
}

#[tokio::test]
async fn an_unreadable_header_counts_against_the_proxy_that_sent_it() {
    let world = world("").await;
    let many = vec!["127.1.0.2"; 40].join(", ");
    for (response, client) in [
        ("", PROXY),
        ("unknown", PROXY),
        ("_hidden", PROXY),
        ("192.0.2.1,", PROXY),
        ("192.0.2.1 192.0.2.2", PROXY),
        ("192.0.2.01", PROXY),
        ("for=192.0.2.1", PROXY),
        ("192.0.2.1:http", PROXY),
        ("192.0.2.1, unknown, 127.1.0.9", "127.1.0.9"),
        (&format!("192.0.2.1, {many}"), "127.1.0.2"),
        ("127.1.0.3, 127.1.0.2", "127.1.0.3"),
    ] {
        let before = u64::from(guard_of(&world, client));
        assert_eq!(
            left(&world, PROXY, &[("X-Forwarded-For", response)]).await,
            before - 1,
            "{response}"
        );
        assert_eq!(
            u64::from(guard_of(&world, client)),
            before - 1,
            "{response}"
        );
    }
    assert_eq!(guard_of(&world, "192.0.2.1"), 60);
}

#[tokio::test]
async fn an_ipv6_client_is_identified_by_its_64_bit_prefix() {
    let world = world("").await;
    for (client, expected) in [
        ("2001:db8::1", 59),
        ("[2001:db8::ffff:ffff:ffff:ffff]:4711", 58),
        ("2001:db8:0:1::1", 59),
        ("2001:db8::2, 2001:db8:aaaa::1", 57),
        ("::ffff:192.0.2.1", 59),
        ("192.0.2.1", 58),
    ] {
        assert_eq!(
            left(&world, PROXY, &[("X-Forwarded-For", client)]).await,
            expected,
            "{client}"
        );
    }
}

#[tokio::test]
async fn forwarding_headers_reach_no_backend_and_change_no_response() {
    let world = world("").await;
    let customer = world.customer("pro").await;
    let plain = world.get("/api/v1/models").key(&customer.key).send().await;
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
