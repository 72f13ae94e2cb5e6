//! The list of gateways, and the sum of their usage.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
};

use serde_json::Value;

use crate::program::{BUILT_IN, run};

use super::*;

/// More than the ten seconds between reports, and more than the time after which a gateway without reports is not live.
const REPORT_SECONDS: u64 = 60;

/// The list of gateways, by a command on the database.
fn nodes(site: &Site) -> Value {
    run_with(&["nodes", "--json"], &site.environment())
        .with(0)
        .json()
}

/// A field of every listed gateway.
fn each(nodes: &Value, field: &str) -> Vec<Value> {
    nodes["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node[field].clone())
        .collect()
}

/// Waits until the list of gateways is as expected.
fn nodes_until(site: &Site, is_expected: impl Fn(&Value) -> bool) -> Value {
    let clock = Clock::system();
    let start = Clock::system().mono();
    loop {
        let found = nodes(site);
        if is_expected(&found) {
            return found;
        }
        assert!(
            clock.mono().since(start).as_secs() < REPORT_SECONDS,
            "{found:#}"
        );
    }
}

/// The response of the side port to a request over its socket.
pub fn side(data_dir: &Path, target: &str) -> Value {
    let mut socket = UnixStream::connect(data_dir.join("scoregate.sock")).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    socket.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{response}");
    serde_json::from_str(body).unwrap()
}

fn delivered(gateway: &SiteGateway, key: &str, count: u32) -> u64 {
    let mut connection = Wire::open(gateway.public).unwrap();
    (0..count)
        .map(|_| u64::from(connection.get(TARGET, key).status_and_code().0 == 200))
        .sum()
}

fn named(site: &Site, name: &str) -> SiteGateway {
    site.gateway_with(&[("SCOREGATE_STORE_NODE_NAME", name)])
}

#[test]
fn gateways_are_listed_with_the_units_that_they_hold_and_not_once_they_stopped() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        assert_eq!(nodes(&site)["live"], 0);
        let (_, key) = site.create("5000");
        let gateways = ["one", "two", "three"].map(|name| named(&site, name));
        for gateway in &gateways {
            assert_eq!(delivered(gateway, &key, 60), 60);
        }
        let holds_units = |found: &Value| {
            each(found, "units_held")
                .iter()
                .filter(|units| **units != 0)
                .count()
                == 3
        };
        let found = nodes_until(&site, holds_units);
        let mut names = each(&found, "name");
        names.sort_by_key(Value::to_string);
        assert_eq!(names, ["one", "three", "two"]);
        assert_eq!(
            (&found["live"], each(&found, "live")),
            (&3.into(), vec![true.into(); 3])
        );
        assert!(
            each(&found, "version")
                .iter()
                .all(|version| version == env!("CARGO_PKG_VERSION")),
            "{found:#}"
        );
        let held: u64 = each(&found, "units_held")
            .iter()
            .map(|units| units.as_u64().unwrap())
            .sum();
        assert_eq!(found["units_held"], held);

        let [stopped, killed, last] = gateways;
        stopped.program.stop().with(0);
        let mut names = each(&nodes(&site), "name");
        names.sort_by_key(Value::to_string);
        assert_eq!(names, ["three", "two"]);
        killed.program.signal("KILL");
        let found = nodes_until(&site, |found| found["live"] == 1);
        assert_eq!(
            each(&found, "name").len(),
            2,
            "a killed gateway is listed for a day"
        );
        let shown = run(&[
            "nodes",
            "--data-dir",
            last.data_dir.path().to_str().unwrap(),
        ])
        .with(0)
        .out;
        let words = |name: &str| {
            let line = shown
                .lines()
                .find(|line| line.trim_end().ends_with(name))
                .unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let live = |name| words(name)[4].clone();
        assert_eq!(
            (live("two"), live("three")),
            ("false".into(), "true".into()),
            "{shown}"
        );
    });
}

#[test]
fn usage_adds_up_over_gateways_to_the_delivered_requests() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let many = site.create("5000");
        let few = site.create("5000");
        let gateways = [site.gateway(), site.gateway(), site.gateway()];
        let counts = |key: &str, of: [u32; 3]| -> u64 {
            gateways
                .iter()
                .zip(of)
                .map(|(gateway, count)| delivered(gateway, key, count))
                .sum()
        };
        let expected = [counts(&many.1, [130, 1, 70]), counts(&few.1, [0, 33, 2])];
        assert_eq!(expected, [201, 35]);
        for gateway in gateways {
            gateway.program.stop().with(0);
        }
        let reader = site.gateway();
        let usage = side(reader.data_dir.path(), "/v1/usage/top?fleet=true");
        assert_eq!(
            (&usage["used"], &usage["used_by"]),
            (&236.into(), &2.into()),
            "{usage:#}"
        );
        let list: Vec<(&str, u64)> = usage["applications"]
            .as_array()
            .unwrap()
            .iter()
            .map(|used| {
                (
                    used["application"].as_str().unwrap(),
                    used["used"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(list, [(many.0.as_str(), 201), (few.0.as_str(), 35)]);
        let yesterday = side(
            reader.data_dir.path(),
            "/v1/usage/top?fleet=true&day=2026-01-01",
        );
        assert_eq!(
            (&yesterday["used"], &yesterday["day"]),
            (&0.into(), &"2026-01-01".into())
        );
    });
}

#[test]
fn without_a_database_the_running_process_is_listed() {
    needs!("postgresql");
    within_one_day(|| {
        let data_dir = TempDir::new().unwrap();
        let command = [
            "nodes",
            "--json",
            "--data-dir",
            data_dir.path().to_str().unwrap(),
        ];
        let program = Program::serve(data_dir.path(), &BUILT_IN);
        let public = program.public();
        let (id, key) = Keys(data_dir.path()).create("pro");
        assert_eq!(
            Wire::open(public)
                .unwrap()
                .get(TARGET, &key)
                .status_and_code()
                .0,
            200
        );
        let found = run(&command).with(0).json();
        assert_eq!(
            (&found["live"], each(&found, "live")),
            (&1.into(), vec![true.into()]),
            "{found:#}"
        );
        program.stop().with(0);
        assert_eq!(run(&command).with(0).json()["nodes"], serde_json::json!([]));

        let restarted = Program::serve(data_dir.path(), &BUILT_IN);
        restarted.public();
        let usage = side(data_dir.path(), "/v1/usage/top?fleet=true");
        assert_eq!(
            (&usage["used"], &usage["applications"][0]["application"]),
            (&1.into(), &id.into())
        );
        restarted.stop().with(0);
    });
}
