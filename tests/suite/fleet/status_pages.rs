//! The status page of several gateways on one database.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use crate::program::run;

use super::*;
use crate::postgres::unprivileged;

/// More than the half minute after which a gateway reads the data that others have stored.
const READING_SECONDS: u64 = 90;

/// The status page of a gateway, as sent.
fn page(public: SocketAddr) -> String {
    let mut stream = TcpStream::connect(public).unwrap();
    stream
        .write_all(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    response
}

fn page_with(public: SocketAddr, words: &str) -> String {
    let clock = Clock::system();
    let start = Clock::system().mono();
    loop {
        let found = page(public);
        if found.contains(words) {
            return found;
        }
        assert!(
            clock.mono().since(start).as_secs() < READING_SECONDS,
            "{words}: {found}"
        );
        std::thread::yield_now();
    }
}

/// Whether every stored minute is ready.
fn is_ready_in_each_minute(site: &Site) -> bool {
    let query = format!(
        "SELECT count(*) > 0 AND bool_and(is_ready) FROM {}.status_minutes",
        site.schema
    );
    let output = unprivileged("psql")
        .args(["-q", "-t", "-A", "-c", &query, &site.url])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout.trim_ascii() == b"t"
}

#[test]
fn a_message_posted_at_one_gateway_appears_at_the_others_and_one_that_stops_takes_no_minute_away() {
    needs!("postgresql");
    let site = Site::new();
    let on = [
        ("SCOREGATE_SITE_STATUS_PAGE", "true"),
        ("SCOREGATE_SERVER_SHUTDOWN_DELAY", "1h"),
    ];
    let one = site.gateway_with(&on);
    let other = site.gateway_with(&on);
    // The gateway has read the store before the message is posted.
    page_with(other.public, "no history yet");
    let data_dir = one.data_dir.path().to_str().unwrap();
    let post = [
        "status",
        "post",
        "Late scores",
        "--message",
        "We are looking into it.",
        "--data-dir",
        data_dir,
    ];
    assert_eq!(run(&post).with(0).out, "incident 1: investigating\n");
    assert!(
        page(one.public).contains("Open incident: Late scores"),
        "immediately"
    );
    page_with(other.public, "Open incident: Late scores");

    one.program.signal("TERM");
    page_with(one.public, "Other gateways may serve requests.");
    let listed = run_with(&["status", "list", "--json"], &site.environment())
        .with(0)
        .json();
    assert_eq!(listed["messages"][0]["title"], "Late scores");
    assert!(!page(other.public).contains("Other gateways may serve requests."));
    let clock = Clock::system();
    let start = Clock::system().mono();
    while !is_ready_in_each_minute(&site) {
        assert!(
            clock.mono().since(start).as_secs() < READING_SECONDS,
            "the other gateway is ready"
        );
    }
    one.program.signal("KILL");
}
