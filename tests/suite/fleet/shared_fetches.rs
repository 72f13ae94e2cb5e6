//! Gateways that share fetches: the backend sends each document once per refresh, and no caller waits for a refresh.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Wall;
use tokio::runtime::Handle;

use crate::{
    backend::{Act, Backend, Received, json, respond},
    load_clients::Reply,
};

use super::*;

const GATEWAYS: usize = 5;
/// The interval between refreshes of the backend.
const PERIOD: Duration = Duration::from_secs(4);
/// The time that the backend takes for a response.
const LATENCY: Duration = Duration::from_millis(150);
/// More than the deadline of a claim with the shortest timeouts, with a reserve for a busy machine.
const LONGEST_CLAIM: Duration = Duration::from_secs(30);
/// The pause of a caller between two rounds of requests.
const PAUSE: Duration = Duration::from_millis(50);
/// The documents that callers request, by their paths under `/api/v1`.
const DOCUMENTS: [&str; 5] = [
    "/index",
    "/models",
    "/models/atlas",
    "/models/borea",
    "/models?period=7d",
];

/// A backend that refreshes by the clock and counts the bodies and confirmations that it sends.
struct CountingBackend {
    backend: Backend,
    sent: Arc<Sent>,
}

#[derive(Default)]
struct Sent {
    /// The refresh at the first request. Scores are counted from it, because they have a maximum.
    first: OnceLock<u64>,
    /// Bodies, by target and number of the refresh.
    bodies: Mutex<HashMap<(String, u64), u32>>,
    confirmations: AtomicU64,
}

impl CountingBackend {
    async fn start() -> Self {
        let clock = Clock::system();
        let sent = Arc::new(Sent::default());
        let counted = Arc::clone(&sent);
        let backend =
            Backend::start(move |received| counted.answer(received, clock.now().wall)).await;
        Self { backend, sent }
    }

    /// Bodies of each target that were sent more than once after one refresh, and the number of refreshes with a body.
    fn repeated(&self) -> (u32, u64) {
        let bodies = self.sent.bodies.lock().unwrap();
        for (document, count) in bodies.iter().filter(|(_, count)| **count > 1) {
            note(&format!("{document:?} was sent {count} times"));
        }
        let repeated = bodies.values().map(|count| count - 1).sum();
        let mut refreshes: Vec<u64> = bodies.keys().map(|(_, refresh)| *refresh).collect();
        refreshes.sort_unstable();
        refreshes.dedup();
        (repeated, refreshes.len() as u64)
    }

    /// The largest number of bodies of one document and refresh.
    fn most_bodies(&self) -> u32 {
        self.sent
            .bodies
            .lock()
            .unwrap()
            .values()
            .copied()
            .max()
            .unwrap()
    }
}

fn refresh_at(now: Wall) -> u64 {
    now.millis() / u64::try_from(PERIOD.as_millis()).unwrap()
}

impl Sent {
    fn answer(&self, received: &Received, now: Wall) -> Act {
        let refresh = refresh_at(now);
        let first = *self.first.get_or_init(|| refresh);
        let period = u64::try_from(PERIOD.as_millis()).unwrap();
        let left = (period - now.millis() % period).div_ceil(1_000);
        let tag = format!("\"{refresh}\"");
        let age = format!("max-age={left}");
        let headers = [
            ("content-type", "application/json"),
            ("etag", &*tag),
            ("cache-control", &*age),
        ];
        let known = received
            .headers
            .iter()
            .find(|(name, _)| name == "if-none-match");
        let response = if known.is_some_and(|(_, value)| *value == tag) {
            self.confirmations.fetch_add(1, Ordering::Relaxed);
            respond("304 Not Modified", &headers, "")
        } else {
            let target = received.target().to_owned();
            *self
                .bodies
                .lock()
                .unwrap()
                .entry((target, refresh))
                .or_default() += 1;
            respond(
                "200 OK",
                &headers,
                &body(received.target(), refresh, refresh - first),
            )
        };
        let Act::Raw(bytes) = response else {
            panic!("a complete response")
        };
        Act::Slow(LATENCY, bytes)
    }
}

fn body(target: &str, refresh: u64, score: u64) -> String {
    let model = |id: &str| format!(r#"{{"id":"{id}","name":"{id}","currentScore":{score}}}"#);
    let data = match target.split('?').next().unwrap() {
        "/api/v1/models" => format!("{},{}", model("atlas"), model("borea")),
        path => model(path.rsplit('/').next().unwrap()),
    };
    let at = Wall::from_millis(refresh * u64::try_from(PERIOD.as_millis()).unwrap()).rfc3339();
    format!(r#"{{"success":true,"generated_at":"{at}","data":[{data}]}}"#)
}

/// Requests all documents from a gateway repeatedly, and returns the number of 200s and of other responses.
fn keep_requesting(
    runtime: &Handle,
    gateway: SocketAddr,
    key: &str,
    stop: &AtomicBool,
) -> (u64, u64) {
    let mut served = 0;
    let mut failed = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some(mut connection) = Wire::open(gateway) else {
            break;
        };
        for document in DOCUMENTS {
            match connection.get(&format!("/api/v1{document}"), key) {
                Reply::Response { status: 200, .. } => served += 1,
                Reply::Response { .. } => failed += 1,
                Reply::NoResponse | Reply::Partial => break,
            }
        }
        runtime.block_on(Clock::system().sleep(PAUSE));
    }
    (served, failed)
}

/// A counter of a gateway.
fn counter(gateway: &SiteGateway, series: &str) -> u64 {
    let Reply::Response { body, .. } = Wire::open(gateway.side).unwrap().get("/metrics", "") else {
        panic!("no metrics")
    };
    let line = body.lines().find_map(|line| {
        line.strip_prefix(series)?
            .strip_prefix(' ')
            .map(str::to_owned)
    });
    line.map_or(0, |value| value.parse().unwrap())
}

/// Number of requests that waited for the backend.
fn waited(gateway: &SiteGateway) -> u64 {
    let outcome = |word| {
        counter(
            gateway,
            &format!("scoregate_documents_served_total{{outcome=\"{word}\"}}"),
        )
    };
    outcome("miss") + outcome("shared") + outcome("refreshed")
}

fn gateways(site: &Site, backend: &CountingBackend) -> Vec<SiteGateway> {
    let url = backend.backend.url();
    let more = [
        ("SCOREGATE_UPSTREAM_URL", &*url),
        ("SCOREGATE_FRESHNESS_REFRESH_INTERVAL", "10s"),
    ];
    (0..GATEWAYS).map(|_| site.gateway_before(&more)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_gateways_fetch_each_document_once_per_refresh_and_no_caller_waits() {
    needs!("postgresql");
    let refreshes = if is_full_size() { 24 } else { 5 };
    let backend = CountingBackend::start().await;
    tokio::task::block_in_place(|| {
        let runtime = Handle::current();
        let site = Site::new();
        let (_, key) = site.create("100000000");
        let gateways = gateways(&site, &backend);
        for document in DOCUMENTS {
            for gateway in &gateways {
                let mut connection = Wire::open(gateway.public).unwrap();
                let (status, code) = connection
                    .get(&format!("/api/v1{document}"), &key)
                    .status_and_code();
                assert_eq!((status, &*code), (200, ""), "{document}");
            }
        }
        let waited_before: Vec<u64> = gateways.iter().map(waited).collect();
        let stop = AtomicBool::new(false);
        let clock = Clock::system();
        let start = refresh_at(clock.now().wall);
        let last = refresh_at(clock.now().wall) + refreshes;
        let served = std::thread::scope(|threads| {
            let clients: Vec<_> = gateways
                .iter()
                .map(|gateway| gateway.public)
                .map(|public| {
                    threads.spawn({
                        let runtime = &runtime;
                        let key = &key;
                        let stop = &stop;
                        move || keep_requesting(runtime, public, key, stop)
                    })
                })
                .collect();
            while refresh_at(clock.now().wall) <= last {
                runtime.block_on(clock.sleep(PAUSE));
            }
            stop.store(true, Ordering::Relaxed);
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect::<Vec<_>>()
        });
        let (repeated, with_body) = backend.repeated();
        let confirmations = backend.sent.confirmations.load(Ordering::Relaxed);
        note(&format!(
            "{served:?}; {with_body} refreshes since {start}, {confirmations} confirmations"
        ));
        let waited_after: Vec<u64> = gateways.iter().map(waited).collect();
        for gateway in &gateways {
            let end = |word| {
                counter(
                    gateway,
                    &format!("scoregate_shared_fetches_total{{result=\"{word}\"}}"),
                )
            };
            note(&format!(
                "{:?}",
                ["taken", "claimed", "rejected", "failed", "alone"].map(end)
            ));
        }
        assert_eq!(repeated, 0, "bodies that were sent again");
        assert!(with_body >= refreshes, "{with_body}");
        assert_eq!(
            waited_after, waited_before,
            "requests that waited for the backend"
        );
        assert!(
            served
                .iter()
                .all(|(served, failed)| *served > 0 && *failed == 0),
            "{served:?}"
        );
    });
}

/// Sends a request, and returns the document's score, which identifies its refresh.
fn score(gateway: &SiteGateway, key: &str) -> u64 {
    let reply = Wire::open(gateway.public)
        .unwrap()
        .get("/api/v1/index", key);
    let Reply::Response {
        status: 200, body, ..
    } = reply
    else {
        panic!("{reply:?}")
    };
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    body["data"][0]["currentScore"].as_u64().unwrap()
}

fn claimed(gateway: &SiteGateway) -> u64 {
    counter(
        gateway,
        "scoregate_shared_fetches_total{result=\"claimed\"}",
    )
}

/// Two gateways with a stored document. The first one has just claimed the refresh and waits for the backend. Returns
/// both gateways and the score of the stored document.
fn with_a_claim(
    site: &Site,
    key: &str,
    backend: &CountingBackend,
) -> (SiteGateway, SiteGateway, u64) {
    let url = backend.backend.url();
    let more = [
        ("SCOREGATE_UPSTREAM_URL", &*url),
        ("SCOREGATE_UPSTREAM_TIMEOUT", "1s"),
        ("SCOREGATE_UPSTREAM_FIRST_BYTE_TIMEOUT", "1s"),
        ("SCOREGATE_FRESHNESS_MAX_WAIT", "1s"),
        ("SCOREGATE_FRESHNESS_REFRESH_INTERVAL", "10s"),
        // No polls: only requests refresh the document.
        ("SCOREGATE_FRESHNESS_PROBE", "false"),
    ];
    let [one, other] = [(); 2].map(|()| site.gateway_before(&more));
    let stored = score(&one, key);
    assert_eq!(score(&other, key), stored);
    let before = [&one, &other].map(claimed);
    backend.backend.hold();
    loop {
        for gateway in [&one, &other] {
            assert_eq!(
                score(gateway, key),
                stored,
                "served immediately, although the backend does not answer"
            );
        }
        let [by_one, by_other] = [claimed(&one) - before[0], claimed(&other) - before[1]];
        match (by_one, by_other) {
            (0, 0) => {}
            (1, 0) => return (one, other, stored),
            (0, 1) => return (other, one, stored),
            both => panic!("two concurrent claims: {both:?}"),
        }
    }
}

/// Requests from a gateway until it has a newer document. No request waits for it.
fn refreshes(gateway: &SiteGateway, key: &str, stored: u64) {
    let clock = Clock::system();
    let start = Clock::system().mono();
    while score(gateway, key) == stored {
        assert!(
            clock.mono().since(start) < LONGEST_CLAIM,
            "the claim of the other gateway still delays the refresh"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_owner_of_a_claim_delays_a_document_until_its_deadline_and_no_caller() {
    needs!("postgresql");
    let backend = CountingBackend::start().await;
    tokio::task::block_in_place(|| {
        let site = Site::new();
        let (_, key) = site.create("100000000");
        let (owner, other, stored) = with_a_claim(&site, &key, &backend);
        owner.program.signal("KILL");
        backend.backend.open();
        refreshes(&other, &key, stored);
        assert!(
            backend.most_bodies() <= 2,
            "one more for an owner that was killed"
        );
    });
}

/// A definition of the endpoint, with a score for everyone or for paid callers only.
fn definition(score_is_paid: bool) -> TempDir {
    let directory = TempDir::new().unwrap();
    let paid = if score_is_paid { ", paid = true" } else { "" };
    let settings = format!(
        "[endpoints.regions]\npath = \"/regions\"\nsummary = \"Regions.\"\n\
         parameters = [{{ name = \"unit\", values = [\"hour\", \"day\"], default = \"day\", meaning = \"Unit.\" }}]\n\
         fields = [{{ name = \"id\", type = \"string\", meaning = \"Region.\" }},\n\
         {{ name = \"currentScore\", type = \"number\", meaning = \"Score.\"{paid} }}]"
    );
    std::fs::write(directory.path().join("scoregate.toml"), settings).unwrap();
    directory
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_take_documents_of_configured_endpoints_from_each_other_only_with_the_same_definition()
 {
    needs!("postgresql");
    let backend = Backend::start(|_| json(r#"{"data":[{"id":"atlas","currentScore":7}]}"#)).await;
    tokio::task::block_in_place(|| {
        let site = Site::new();
        let (_, key) = site.create_with(&[
            "--tier",
            "free",
            "--minute",
            "1000000",
            "--day",
            "100000000",
        ]);
        let definitions = [false, true].map(definition);
        let url = backend.url();
        let gateway = |definition: &TempDir| {
            let file = definition.path().join("scoregate.toml");
            let more = [
                ("SCOREGATE_CONFIG", file.to_str().unwrap()),
                ("SCOREGATE_UPSTREAM_URL", &*url),
                ("SCOREGATE_FRESHNESS_REFRESH_INTERVAL", "1h"),
                // No polls: only requests fetch documents.
                ("SCOREGATE_FRESHNESS_PROBE", "false"),
            ];
            site.gateway_before(&more)
        };
        let [before, same, after] = [0, 0, 1].map(|index: usize| gateway(&definitions[index]));
        let data = |gateway: &SiteGateway, query: &str| {
            let target = format!("/api/v1/regions{query}");
            let reply = Wire::open(gateway.public).unwrap().get(&target, &key);
            let Reply::Response {
                status: 200, body, ..
            } = reply
            else {
                panic!("{reply:?}")
            };
            serde_json::from_str::<serde_json::Value>(&body).unwrap()["data"][0].clone()
        };
        let taken = |gateway: &SiteGateway| {
            counter(gateway, "scoregate_shared_fetches_total{result=\"taken\"}")
        };
        for (number, query) in (1..).zip(["", "?unit=hour"]) {
            let fetched = data(&before, query);
            assert_eq!(
                fetched,
                serde_json::json!({ "id": "atlas", "currentScore": 7 }),
                "{query}"
            );
            assert_eq!(
                (data(&same, query), taken(&same)),
                (fetched, number),
                "{query}"
            );
            assert_eq!(
                data(&after, query),
                serde_json::json!({ "id": "atlas" }),
                "{query}"
            );
        }
        assert_eq!((taken(&before), taken(&after)), (0, 0));
        assert_eq!(
            backend.received().len(),
            4,
            "two documents for each definition"
        );
    });
}
