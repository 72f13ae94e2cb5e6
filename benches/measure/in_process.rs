//! Time per response within the process, without a socket: from a parsed head to a finished response.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use http::Request;
use http::request::Parts;
use scoregate::app;
use scoregate::config::{read_file, resolve};
use scoregate::gateway::{ConnectionTrust, Gateway, Peer};
use scoregate_base::clock::Clock;
use scoregate_base::routes::{EndpointTable, Selection};

use crate::installation::Installation;

/// Measurements per kind; the median is reported.
const ROUNDS: usize = 9;

pub(crate) fn run() {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let installation = Installation::of(env!("CARGO_BIN_EXE_scoregate").into());
    let times = if is_full { 20_000 } else { 500 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = resolve(&read_file(&installation.settings())).unwrap();
        let running = app::start(config, Clock::system()).await.unwrap();
        let gateway = running.gateway();
        let hit = head(&installation.key, None);
        let first = gateway
            .handle(&hit, false, PEER, &ConnectionTrust::default())
            .await;
        assert_eq!(first.status(), 200);
        let tag = first.headers()["etag"].to_str().unwrap().to_owned();
        gateway
            .handle(
                &head(&installation.spent, None),
                false,
                PEER,
                &ConnectionTrust::default(),
            )
            .await;
        println!(
            "{:<34} {:>10} {:>9}",
            "within the process", "ns", "to a hit"
        );
        let mut of_a_hit = 0.0;
        for (name, head, status) in [
            ("a hit", hit, 200),
            ("304", head(&installation.key, Some(&tag)), 304),
            (
                "401, a key that nobody has",
                head("sg_live_nobody", None),
                401,
            ),
            (
                "429, the minute is over",
                head(&installation.spent, None),
                429,
            ),
        ] {
            let once = async || {
                gateway
                    .handle(&head, false, PEER, &ConnectionTrust::default())
                    .await
                    .status()
                    == status
            };
            let took = median(times, once).await;
            of_a_hit = if of_a_hit == 0.0 { took } else { of_a_hit };
            println!("{name:<34} {took:>10.0} {:>9.2}", took / of_a_hit);
        }
        let miss = misses(&gateway, &head(&installation.key, None), times / 50).await;
        println!(
            "{:<34} {miss:>10.0} {:>9.2}",
            "a miss, scored by the one inside",
            miss / of_a_hit
        );
        running.stop().await;
    });
}

const PEER: Peer = Peer {
    address: IpAddr::V4(Ipv4Addr::LOCALHOST),
    is_encrypted: false,
    is_tool_call: false,
};

fn head(key: &str, tag: Option<&str>) -> Parts {
    let request = Request::get("/api/v1/models?period=24h")
        .header("host", "localhost")
        .header("x-api-key", key);
    let request = match tag {
        Some(tag) => request.header("if-none-match", tag),
        None => request,
    };
    request.body(()).unwrap().into_parts().0
}

/// Nanoseconds per run, the median of several rounds.
async fn median(times: usize, once: impl AsyncFn() -> bool) -> f64 {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        for _ in 0..times {
            assert!(black_box(once().await));
        }
        rounds.push(began.elapsed().as_nanos() as f64 / times as f64);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Nanoseconds of a request that finds nothing stored.
async fn misses(gateway: &Gateway, head: &Parts, times: usize) -> f64 {
    let all = Selection::parse("all", &EndpointTable::default()).unwrap();
    let mut took = 0.0;
    for _ in 0..times {
        gateway.engine.purge(&all, true).await;
        let began = Instant::now();
        assert_eq!(
            gateway
                .handle(head, false, PEER, &ConnectionTrust::default())
                .await
                .status(),
            200
        );
        took += began.elapsed().as_nanos() as f64;
    }
    took / times as f64
}
