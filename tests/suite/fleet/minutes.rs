//! One minute limit in total, however requests are spread over the gateways.

use std::sync::Barrier;

use super::without_database::{ObservedGateway, digest, restartable_site, revalidated};
use super::*;

/// Number of tokens that a limit per minute refills in this time, rounded up.
pub(super) fn refilled(limit: u32, seconds: f64) -> u32 {
    let tokens = (f64::from(limit) * seconds / 60.0).ceil();
    (0..=limit * 10)
        .find(|whole| f64::from(*whole) >= tokens)
        .unwrap()
}

pub(super) fn seconds_since(clock: &Clock, start: scoregate_base::clock::Mono) -> f64 {
    clock.mono().since(start).as_secs_f64()
}

/// Sends this many requests and returns the number of 200s.
pub(super) fn served(public: SocketAddr, key: &str, count: u32) -> u32 {
    let mut connection = Wire::open(public).unwrap();
    (0..count)
        .map(|_| u32::from(connection.get(TARGET, key).status_and_code().0 == 200))
        .sum()
}

#[test]
fn gateways_under_load_deliver_one_minute_limit_in_total() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create_with(&["--tier", "pro"]);
    let gateways = [site.gateway(), site.gateway(), site.gateway()];
    let clock = Clock::system();
    let barrier = Barrier::new(gateways.len());
    let start = clock.mono();
    let total: u32 = std::thread::scope(|scope| {
        let clients = gateways.each_ref().map(|gateway| {
            let public = gateway.public;
            let barrier = &barrier;
            let key = &key;
            scope.spawn(move || {
                barrier.wait();
                served(public, key, 300)
            })
        });
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    let most = 60 + refilled(60, seconds_since(&clock, start));
    assert!(
        (60..=most).contains(&total),
        "{total} were served, of at most {most}"
    );
}

#[test]
fn a_gateway_gets_the_tokens_that_another_one_does_not_use() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create_with(&["--tier", "pro"]);
    let first = site.gateway();
    let second = site.gateway();
    let clock = Clock::system();
    let before = Clock::system().mono();
    // It takes the whole limit, and leaves a third of it.
    assert_eq!(served(first.public, &key, 41), 41);
    second.reaches(&key, 200);
    let mut connection = Wire::open(second.public).unwrap();
    let mut total = 42;
    while connection.get(TARGET, &key).status_and_code().0 == 200 {
        total += 1;
    }
    let most = 60 + refilled(60, seconds_since(&clock, before));
    assert!(
        (50..=most).contains(&total),
        "{total} were served, of at most {most}"
    );
}

#[test]
fn a_stopped_gateway_returns_its_tokens_and_a_killed_one_none() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create_with(&["--tier", "pro"]);
    let stopped = site.gateway();
    let killed = site.gateway();
    let last = site.gateway();
    let clock = Clock::system();
    let start = clock.mono();
    assert_eq!(
        (
            served(stopped.public, &key, 1),
            served(killed.public, &key, 1)
        ),
        (1, 1)
    );
    killed.program.signal("KILL");
    stopped.program.stop().with(0);
    let total = served(last.public, &key, 100);
    let most = 40 + refilled(60, seconds_since(&clock, start));
    assert!(
        (38..=most).contains(&total),
        "{total} were served, of at most {most}"
    );
}

#[test]
fn a_free_caller_has_one_request_a_minute_on_all_gateways() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create_with(&["--tier", "free"]);
    let gateways = [site.gateway(), site.gateway(), site.gateway()];
    let statuses: Vec<u16> = gateways
        .iter()
        .map(|gateway| gateway.status(&key))
        .collect();
    assert_eq!(statuses, [200, 429, 429]);
    let reply = Wire::open(gateways[1].public).unwrap().get(TARGET, &key);
    assert_eq!(reply.status_and_code().1, "rate_limit_exceeded");
}

#[test]
fn without_the_database_gateways_above_the_setting_divide_the_minute_by_their_number() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    let (_, caller) = site.create("100000");
    let (_, key) = site.create_with(&["--tier", "pro", "--minute", "600", "--day", "100000"]);
    let setting = [("SCOREGATE_STORE_GATEWAYS", "1")];
    let environment = [&site.environment()[..], &setting].concat();
    let gateways =
        [(); 3].map(|()| ObservedGateway::start_with(&environment, TempDir::new().unwrap()));
    // A 304 takes a token and no unit.
    let tags = gateways.each_ref().map(|gateway| {
        gateway.copies(&digest(&key));
        until(|| gateway.metric("scoregate_fleet_gateways") == "3");
        gateway.gateway.reaches(&caller, 200);
        gateway.tag(&caller)
    });
    server.stop();
    let clock = Clock::system();
    let start = clock.mono();
    let total: u32 = std::thread::scope(|scope| {
        let clients: Vec<_> = gateways
            .iter()
            .zip(&tags)
            .map(|(gateway, tag)| {
                let public = gateway.gateway.public;
                let clock = &clock;
                let key = &key;
                scope.spawn(move || {
                    let mut admitted = 0;
                    while seconds_since(clock, start) < 6.0 {
                        let reply = revalidated(public, key, tag);
                        admitted += u32::from(reply.starts_with("HTTP/1.1 304"));
                        std::thread::sleep(std::time::Duration::from_millis(20));
                    }
                    admitted
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    let most = refilled(600, seconds_since(&clock, start)) + 3;
    assert!(
        (most / 2..=most).contains(&total),
        "{total} were admitted, of at most {most}"
    );
    for gateway in gateways {
        let log = gateway.gateway.program.stop().err;
        assert!(
            log.contains("more gateways are live than store.gateways"),
            "{log}"
        );
    }
}
