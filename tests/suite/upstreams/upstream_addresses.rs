//! A backend with several addresses: distribution, failover within its budget, health checks, slow start, a standby, and
//! validators that belong to one address. Faults of real processes are in `upstream_address_faults`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use scoregate_base::routes::{EndpointTable, Selection};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::backend::{Act, Backend, Received, respond};
use crate::ports::ReservedPort;
use crate::world::{Customer, World, good};

const TOKEN: &str = "a-token-of-the-side-port";
/// Health checks whose timeout the hand-driven clock does not reach.
const CHECKED: &str = "health_path = \"/healthz\"\nhealth_timeout = \"1h\"\n";
/// Interval between health checks.
const CHECK: Duration = Duration::from_secs(5);

/// Backends that run this script with their number.
async fn backends<const N: usize>(script: fn(usize, &Received) -> Act) -> [Backend; N] {
    let all =
        join_all((0..N).map(|number| Backend::start(move |received| script(number, received))))
            .await;
    all.try_into().unwrap_or_else(|_| panic!())
}

/// A gateway in front of these addresses, and a customer.
async fn world(addresses: &[Backend], standby: &[Backend], settings: &str) -> (World, Customer) {
    let urls = |backends: &[Backend]| {
        backends
            .iter()
            .map(|one| format!("\"{}\"", one.url()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let settings = format!(
        "admin.token = \"{TOKEN}\"\n[upstream]\nurls = [{}]\nstandby_urls = [{}]\n{settings}",
        urls(addresses),
        urls(standby)
    );
    let world = World::with_backend(
        &settings,
        addresses[0].clone(),
        Arc::new(TempDir::new().unwrap()),
    )
    .await;
    let customer = world.paid().await;
    (world, customer)
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
            "/v1/upstream",
            "",
            &[("Authorization", &format!("Bearer {TOKEN}"))],
        )
        .await;
    response.json()
}

fn failing(_: &Received) -> Act {
    respond("500 Internal Server Error", &[], "")
}

/// Passes intervals of health checks until the status of an address has this member.
async fn becomes(world: &World, address: usize, name: &str, value: &Value) {
    for _ in 0..6_000 {
        if &status(world).await["addresses"][address][name] == value {
            return;
        }
        world.pass(CHECK);
        // Checks take real time.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!(
        "{name} of address {address} does not become {value}: {}",
        status(world).await
    );
}

#[tokio::test]
async fn requests_go_to_all_addresses_and_concurrent_ones_to_the_less_busy() {
    let all: [Backend; 2] = backends(|_, received| good(received)).await;
    let (world, customer) = world(&all, &[], "max_concurrent_requests = 4").await;
    assert!(
        fetch(&world, &customer, 1..61)
            .await
            .iter()
            .all(|status| *status == 200)
    );
    let [one, two] = [documents(&all[0]), documents(&all[1])];
    assert_eq!(one + two, 60);
    assert!(one > 5 && two > 5, "{one} and {two}");

    all.iter().for_each(Backend::hold);
    let targets: Vec<String> = (61..65)
        .map(|limit| format!("/api/v1/incidents?limit={limit}"))
        .collect();
    let requests = join_all(targets.iter().map(|target| world.get_as(&customer, target)));
    let (responses, ()) = tokio::join!(requests, async {
        while documents(&all[0]) + documents(&all[1]) < 64 {
            tokio::task::yield_now().await;
        }
        all.iter().for_each(Backend::open);
    });
    assert!(responses.iter().all(|response| response.status == 200));
    assert_eq!([documents(&all[0]), documents(&all[1])], [one + 2, two + 2]);
    let shown = status(&world).await;
    let requests = |number: usize| shown["addresses"][number]["requests"].as_u64().unwrap();
    assert_eq!([requests(0), requests(1)], [one as u64 + 2, two as u64 + 2]);
    assert_eq!(
        shown["addresses"][1]["address"],
        json!(all[1].address.to_string())
    );
    let series = format!(
        "scoregate_upstream_address_requests_total{{address=\"{}\"}}",
        all[0].address
    );
    world.pass(CHECK);
    world
        .reaches(&series, u32::try_from(one).unwrap() + 2)
        .await;
}

#[tokio::test]
async fn a_failed_request_is_repeated_at_another_address_and_the_failed_one_is_avoided_for_a_while()
{
    let all: [Backend; 2] = backends(|number, received| {
        if number == 0 {
            failing(received)
        } else {
            good(received)
        }
    })
    .await;
    let (world, customer) = world(&all, &[], "").await;
    assert!(
        fetch(&world, &customer, 1..51)
            .await
            .iter()
            .all(|status| *status == 200)
    );
    assert_eq!(
        [documents(&all[0]), documents(&all[1])],
        [1, 50],
        "it has just failed"
    );
    for limit in 51..101 {
        world.pass(Duration::from_secs(10));
        assert_eq!(fetch(&world, &customer, limit..limit + 1).await, [200]);
    }
    let extra = documents(&all[0]);
    assert!(extra >= 5, "each failed request was repeated: {extra}");
    assert_eq!(documents(&all[1]), 100);
    let shown = status(&world).await;
    assert_eq!(
        (shown["failovers"].as_u64(), &shown["breaker"]),
        (Some(extra as u64), &json!("closed"))
    );
    assert_eq!(
        (
            &shown["failovers_denied"],
            shown["addresses"][0]["failures"].as_u64()
        ),
        (&json!(0), Some(extra as u64))
    );
    world.pass(CHECK);
    world
        .reaches(
            "scoregate_upstream_failovers_total",
            u32::try_from(extra).unwrap(),
        )
        .await;
    let series = format!(
        "scoregate_upstream_address_failures_total{{address=\"{}\"}}",
        all[0].address
    );
    assert_eq!(world.counted(&series).await, u32::try_from(extra).unwrap());
}

#[tokio::test]
async fn all_addresses_fail_before_a_caller_gets_an_error_and_open_breakers_cost_no_request() {
    let all: [Backend; 3] = backends(|_, received| failing(received)).await;
    let (world, customer) = world(&all, &[], "").await;
    assert_eq!(fetch(&world, &customer, 1..2).await, [503]);
    assert_eq!(all.iter().map(documents).collect::<Vec<_>>(), [1, 1, 1]);
    assert!(
        fetch(&world, &customer, 2..60)
            .await
            .iter()
            .all(|status| *status == 503)
    );
    assert_eq!(
        all.iter().map(documents).collect::<Vec<_>>(),
        [5, 5, 5],
        "then all circuit breakers are open"
    );
    let shown = status(&world).await;
    let [failovers, denied] =
        ["failovers", "failovers_denied"].map(|name| shown[name].as_u64().unwrap());
    assert!(
        (3..=4).contains(&failovers) && denied > 0,
        "{failovers} and {denied}: one for each address"
    );
    assert_eq!(status(&world).await["breaker"], "open");
    world.pass(Duration::from_secs(1));
    for one in &all {
        one.set_script(good);
    }
    assert_eq!(fetch(&world, &customer, 1..2).await, [200]);
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
    for is_shared in [false, true] {
        let all: [Backend; 2] = backends(tagged).await;
        let settings = if is_shared {
            "identical_replicas = true"
        } else {
            ""
        };
        let (world, customer) = world(&all, &[], settings).await;
        fetch(&world, &customer, 1..21).await;
        let stored_from: Vec<usize> = all.iter().map(documents).collect();
        refresh(&world, &customer, 1..21).await;
        let sent: Vec<Vec<String>> = all.iter().map(validators).collect();
        if is_shared {
            assert!(
                sent[0].contains(&"\"of-1\"".to_owned())
                    && sent[1].contains(&"\"of-0\"".to_owned())
            );
            continue;
        }
        assert_eq!(
            sent[0],
            vec!["\"of-0\""; stored_from[0]],
            "each document is asked for where it is from"
        );
        assert_eq!(sent[1], vec!["\"of-1\""; stored_from[1]]);
        // The address of its documents fails: the other one gets no validators of it.
        all[0].set_script(failing);
        refresh(&world, &customer, 1..21).await;
        assert!(validators(&all[1]).iter().all(|value| value == "\"of-1\""));
    }
}

#[tokio::test]
async fn a_standby_is_used_while_no_other_address_is_usable() {
    let all: [Backend; 3] = backends(|_, received| good(received)).await;
    let [one, two, standby] = &all;
    let settings = CHECKED;
    let (world, customer) = world(&all[..2], &all[2..], settings).await;
    fetch(&world, &customer, 1..31).await;
    assert_eq!(
        (documents(one) + documents(two), documents(standby)),
        (30, 0)
    );
    for backend in [one, two] {
        backend.set_script(failing);
    }
    becomes(&world, 0, "is_healthy", &json!(false)).await;
    becomes(&world, 1, "is_healthy", &json!(false)).await;
    assert_eq!(
        status(&world).await["addresses"][0]["failed_check"],
        "status 500"
    );
    let before = documents(one) + documents(two);
    assert!(
        fetch(&world, &customer, 31..61)
            .await
            .iter()
            .all(|status| *status == 200)
    );
    assert_eq!(
        (documents(one) + documents(two), documents(standby)),
        (before, 30)
    );
    one.set_script(good);
    becomes(&world, 0, "is_healthy", &json!(true)).await;
    fetch(&world, &customer, 61..91).await;
    assert_eq!(
        (documents(one) + documents(two), documents(standby)),
        (before + 30, 30)
    );
}

#[tokio::test]
async fn a_recovered_address_gets_a_growing_share() {
    let all: [Backend; 2] = backends(|_, received| good(received)).await;
    let (world, customer) = world(&all, &[], &format!("{CHECKED}slow_start = \"1000s\"")).await;
    all[0].set_script(failing);
    becomes(&world, 0, "is_healthy", &json!(false)).await;
    assert!(
        fetch(&world, &customer, 1..31)
            .await
            .iter()
            .all(|status| *status == 200)
    );
    assert_eq!(documents(&all[0]), 0);
    all[0].set_script(good);
    becomes(&world, 0, "is_healthy", &json!(true)).await;
    becomes(&world, 0, "weight_percent", &json!(10)).await;
    fetch(&world, &customer, 31..61).await;
    let early = documents(&all[0]);
    assert!(early < 13, "about a tenth of 30: {early}");
    becomes(&world, 0, "weight_percent", &json!(100)).await;
    fetch(&world, &customer, 61..101).await;
    assert!(
        documents(&all[0]) - early > 4,
        "about a half of 40: {}",
        documents(&all[0]) - early
    );
}

#[tokio::test]
async fn without_a_path_an_address_is_healthy_if_it_accepts_connections() {
    let all: [Backend; 1] = backends(|_, received| good(received)).await;
    let closed = ReservedPort::new();
    let settings = format!(
        "admin.token = \"{TOKEN}\"\n[upstream]\nurls = [\"http://{}\", \"{}\"]\nunhealthy_after = 1\nhealth_timeout = \"1h\"",
        closed.address(),
        all[0].url()
    );
    let world =
        World::with_backend(&settings, all[0].clone(), Arc::new(TempDir::new().unwrap())).await;
    let customer = world.paid().await;
    becomes(&world, 0, "is_healthy", &json!(false)).await;
    let reason = status(&world).await["addresses"][0]["failed_check"].to_string();
    assert!(reason.contains("refused"), "{reason}");
    assert_eq!(status(&world).await["addresses"][1]["is_healthy"], true);
    assert!(
        fetch(&world, &customer, 1..31)
            .await
            .iter()
            .all(|status| *status == 200)
    );
}
