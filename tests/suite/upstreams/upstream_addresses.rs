//! A backend with several addresses: a request goes to the first one, and to the next ones while it fails. Attempts are
//! counted at each address.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use scoregate_base::routes::{EndpointTable, Selection};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, Received, respond},
    ports::ReservedPort,
    tls_backend::{BackendAuthority, Handshake, TlsBackend},
    world::{Customer, World, good},
};

const TOKEN: &str = "a-token-of-the-side-port";
const SECOND: Duration = Duration::from_secs(1);

/// Backends that run this script, each with its number.
async fn backends<const N: usize>(script: fn(usize, &Received) -> Act) -> [Backend; N] {
    let all =
        join_all((0..N).map(|number| Backend::start(move |received| script(number, received))))
            .await;
    all.try_into().unwrap_or_else(|_| panic!())
}

/// A gateway in front of these addresses, and a customer. The last address is a backend that always works.
async fn world_at(urls: &[&str], last: &Backend, settings: &str) -> (World, Customer) {
    let settings = format!("admin.token = \"{TOKEN}\"\n[upstream]\nurls = {urls:?}\n{settings}");
    let directory = Arc::new(TempDir::new().unwrap());
    let world = World::with_backend(&settings, last.clone(), directory).await;
    let customer = world.paid().await;
    (world, customer)
}

/// A gateway like `world_at`, for these backends.
async fn world(addresses: &[Backend], settings: &str) -> (World, Customer) {
    let urls: Vec<String> = addresses.iter().map(Backend::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    world_at(&urls, addresses.last().unwrap(), settings).await
}

/// Requests different documents one after another, and returns the statuses.
async fn fetch(world: &World, customer: &Customer, limits: std::ops::Range<usize>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for limit in limits {
        let target = format!("/api/v1/incidents?limit={limit}");
        statuses.push(world.get_as(customer, &target).await.status);
    }
    statuses
}

/// Requests documents, all of which must succeed.
async fn fetch_all(world: &World, customer: &Customer, limits: std::ops::Range<usize>) {
    let statuses = fetch(world, customer, limits).await;
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
}

/// Refreshes these documents one after another.
async fn refresh(world: &World, customer: &Customer, limits: std::ops::Range<usize>) {
    let all = Selection::parse("all", &EndpointTable::default()).unwrap();
    world.running.gateway().engine.purge(&all, false).await;
    for limit in limits {
        fetch(world, customer, limit..limit + 1).await;
        world.settled().await;
    }
}

/// Number of requests for documents.
fn documents(backend: &Backend) -> usize {
    backend.count("/api/v1/")
}

async fn status(world: &World) -> Value {
    let response = world
        .side(
            "GET",
            "/v1/upstream/show",
            "",
            &[("Authorization", &format!("Bearer {TOKEN}"))],
        )
        .await;
    response.json()
}

/// A number in the status of an address.
async fn figure(world: &World, address: usize, name: &str) -> u64 {
    status(world).await["addresses"][address][name]
        .as_u64()
        .unwrap()
}

fn failing(_: &Received) -> Act {
    respond("500 Internal Server Error", &[], "")
}

#[tokio::test]
async fn the_first_address_gets_all_requests_while_it_is_good() {
    let all: [Backend; 2] = backends(|_, received| good(received)).await;
    let (world, customer) = world(&all, "").await;
    fetch_all(&world, &customer, 1..31).await;
    assert_eq!(all.each_ref().map(documents), [30, 0]);
    let shown = status(&world).await;
    assert_eq!(shown["failovers"], 0);
    assert_eq!(
        shown["addresses"][0],
        json!({
            "address": all[0].address.to_string(), "breaker": "closed", "retry_in_seconds": 0, "consecutive_failures": 0,
            "in_flight": 0, "requests": 30, "failures": 0,
        })
    );
    assert_eq!(
        shown["addresses"][1]["address"],
        json!(all[1].address.to_string())
    );
    let series = format!(
        "scoregate_upstream_address_requests_total{{address=\"{}\"}}",
        all[0].address
    );
    world.pass(5 * SECOND);
    world.reaches(&series, 30).await;
}

/// Six periods of the circuit breaker of the first address, which fails each time.
async fn costs_one_attempt_a_period(fault: &str, world: &World, customer: &Customer) {
    let mut attempts = 0;
    let mut limit = 1;
    for period in [1, 2, 4, 8, 16, 30] {
        fetch_all(world, customer, limit..limit + 5).await;
        attempts += 1;
        assert_eq!(figure(world, 0, "failures").await, attempts, "{fault}");
        world.pass(Duration::from_millis(period * 1_000 - 1));
        fetch_all(world, customer, limit + 5..limit + 10).await;
        assert_eq!(figure(world, 0, "requests").await, attempts, "{fault}");
        world.pass(Duration::from_millis(1));
        limit += 10;
    }
    let shown = status(world).await;
    assert_eq!(
        (shown["failovers"].as_u64(), &shown["breaker"]),
        (Some(attempts), &json!("closed")),
        "{fault}"
    );
    assert_eq!(shown["addresses"][0]["breaker"], "half_open", "{fault}");
    assert_eq!(shown["addresses"][1]["requests"], 60, "{fault}");
    assert_eq!(shown["addresses"][1]["failures"], 0, "{fault}");
    assert_eq!(documents(&world.backend), 60, "{fault}");
}

#[tokio::test]
async fn a_dead_address_costs_one_failed_attempt_in_each_period_of_its_circuit_breaker() {
    let closed = ReservedPort::new();
    let errors = Backend::start(failing).await;
    let authority = BackendAuthority::new();
    authority.certify("backend", &["localhost"], 2040);
    let untrusted = TlsBackend::start(&errors, &authority, "backend", Handshake::usual()).await;
    let hanging_up = Backend::start(|_| Act::RawThenClose(Vec::new())).await;
    for (fault, url) in [
        ("dead", format!("http://{}/api/v1", closed.address())),
        ("untrusted certificate", untrusted.url("localhost")),
        ("error status", errors.url()),
        ("no response", hanging_up.url()),
    ] {
        let last = Backend::start(good).await;
        let (world, customer) = world_at(&[&url, &last.url()], &last, "").await;
        costs_one_attempt_a_period(fault, &world, &customer).await;
    }
}

#[tokio::test]
async fn an_address_that_does_not_respond_in_time_costs_one_attempt_and_the_caller_gets_the_document()
 {
    let all: [Backend; 2] = backends(|_, received| good(received)).await;
    all[0].set_script(|_| Act::Hang);
    let (world, customer) = world(&all, "first_byte_timeout = \"1s\"").await;
    let (statuses, ()) = tokio::join!(fetch(&world, &customer, 1..2), async {
        all[0].has_received(1).await;
        world.pass(SECOND);
    });
    assert_eq!(statuses, [200]);
    fetch_all(&world, &customer, 2..12).await;
    assert_eq!(all.each_ref().map(documents), [1, 11]);
    let series = format!(
        "scoregate_upstream_address_failures_total{{address=\"{}\"}}",
        all[0].address
    );
    world.pass(5 * SECOND);
    world.reaches(&series, 1).await;
    assert_eq!(world.counted("scoregate_upstream_failovers_total").await, 1);
}

#[tokio::test]
async fn a_half_open_address_gets_one_request_and_all_of_them_after_a_success() {
    let all: [Backend; 2] = backends(|_, received| good(received)).await;
    all[0].set_script(failing);
    let (world, customer) = world(&all, "max_concurrent_requests = 4").await;
    fetch_all(&world, &customer, 1..2).await;
    world.pass(SECOND);
    all[0].set_script(good);
    all[0].hold();
    let targets: Vec<String> = (2..6)
        .map(|limit| format!("/api/v1/incidents?limit={limit}"))
        .collect();
    let requests = join_all(targets.iter().map(|target| world.get_as(&customer, target)));
    let (responses, ()) = tokio::join!(requests, async {
        all[1].has_received(4).await;
        assert_eq!(documents(&all[0]), 2, "one of the four requests");
        all[0].open();
    });
    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!(all.each_ref().map(documents), [2, 4]);
    fetch_all(&world, &customer, 6..16).await;
    assert_eq!(all.each_ref().map(documents), [12, 4]);
    assert_eq!(status(&world).await["addresses"][0]["breaker"], "closed");
}

#[tokio::test]
async fn a_flapping_address_costs_no_response_and_a_failed_attempt_at_most_each_second() {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let all: [Backend; 2] = backends(|number, received| {
        if number == 0 && TURN.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            failing(received)
        } else {
            good(received)
        }
    })
    .await;
    let (world, customer) = world(&all, "").await;
    for limit in 1..41 {
        fetch_all(&world, &customer, limit..limit + 1).await;
        world.pass(SECOND / 2);
    }
    let failures = figure(&world, 0, "failures").await;
    assert!((10..=20).contains(&failures), "{failures} in 20 s");
    let [first, second] = all.each_ref().map(documents);
    assert_eq!(first + second, 40 + usize::try_from(failures).unwrap());
}

#[tokio::test]
async fn a_caller_gets_an_error_after_all_addresses_failed_and_open_breakers_cost_no_request() {
    let all: [Backend; 3] = backends(|_, received| failing(received)).await;
    let (world, customer) = world(&all, "").await;
    assert_eq!(fetch(&world, &customer, 1..2).await, [503]);
    assert_eq!(all.each_ref().map(documents), [1, 1, 1]);
    assert!(
        fetch(&world, &customer, 2..60)
            .await
            .iter()
            .all(|status| *status == 503)
    );
    assert_eq!(
        all.each_ref().map(documents),
        [5, 5, 5],
        "then all circuit breakers are open"
    );
    let shown = status(&world).await;
    assert_eq!(
        (&shown["failovers"], &shown["breaker"]),
        (&json!(10), &json!("open"))
    );
    world.pass(SECOND);
    for one in &all {
        one.set_script(good);
    }
    assert_eq!(fetch(&world, &customer, 1..2).await, [200]);
}

#[tokio::test]
async fn of_addresses_that_have_just_failed_the_one_with_fewer_failures_is_first() {
    let all: [Backend; 2] = backends(|_, received| failing(received)).await;
    let (world, customer) = world(&all, "").await;
    all[1].set_script(good);
    fetch_all(&world, &customer, 1..2).await;
    world.pass(SECOND);
    fetch_all(&world, &customer, 2..3).await;
    assert_eq!(all.each_ref().map(documents), [2, 2]);
    all[1].next(failing(&all[1].received()[0]));
    assert_eq!(fetch(&world, &customer, 3..4).await, [503]);
    assert_eq!(all.each_ref().map(documents), [3, 3]);
    fetch_all(&world, &customer, 4..14).await;
    assert_eq!(all.each_ref().map(documents), [3, 13]);
}

#[tokio::test]
async fn one_document_that_fails_everywhere_leaves_the_addresses_usable_for_others() {
    let all: [Backend; 2] = backends(|_, received| {
        if received.target().contains("limit=100") {
            failing(received)
        } else {
            good(received)
        }
    })
    .await;
    let (world, customer) = world(&all, "").await;
    for limit in 1..21 {
        assert_eq!(fetch(&world, &customer, 100..101).await, [503]);
        fetch_all(&world, &customer, limit..limit + 1).await;
        world.pass(SECOND / 2);
    }
    assert_eq!(status(&world).await["breaker"], "closed");
}

#[tokio::test]
async fn validators_are_sent_only_to_the_address_that_sent_them() {
    fn tagged(number: usize, received: &Received) -> Act {
        let tag = format!("\"of-{number}\"");
        let known = received
            .headers
            .iter()
            .find(|(name, _)| name == "if-none-match");
        if known.is_some_and(|(_, value)| *value == tag) {
            return Act::Raw(b"HTTP/1.1 304 Not Modified\r\n\r\n".into());
        }
        let body = r#"{"generated_at":"2026-11-21T12:00:00Z","data":[{"id":"atlas"}]}"#;
        respond(
            "200 OK",
            &[("etag", &tag), ("content-type", "application/json")],
            body,
        )
    }
    let validators = |backend: &Backend| {
        let received = backend
            .received()
            .into_iter()
            .flat_map(|received| received.headers);
        received
            .filter(|(name, _)| name == "if-none-match")
            .map(|(_, value)| value)
            .collect::<Vec<_>>()
    };
    let all: [Backend; 2] = backends(tagged).await;
    let (world, customer) = world(&all, "").await;
    fetch_all(&world, &customer, 1..21).await;
    refresh(&world, &customer, 1..21).await;
    assert_eq!(validators(&all[0]), vec!["\"of-0\""; 20]);
    // The address from which the documents came fails. The other address gets none of its validators.
    all[0].set_script(failing);
    refresh(&world, &customer, 1..21).await;
    assert_eq!(documents(&all[1]), 20);
    assert!(validators(&all[1]).is_empty());
    refresh(&world, &customer, 1..21).await;
    assert_eq!(validators(&all[1]), vec!["\"of-1\""; 20]);
}
