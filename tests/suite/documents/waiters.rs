//! Waiters of one document: they end together with its fetch or at their own timeout, and cause one upstream request;
//! when everything expires under traffic, no request waits.
//!
//! Disconnected leaders are in `client_disconnects`, the error of each bad response is in `faults`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use scoregate::{
    gateway::AccessLog,
    upstream::{Upstream, UpstreamFuture as Answered, UpstreamRequest},
};
use tokio::sync::Semaphore;

use crate::{
    backend::Act,
    client::Response,
    in_process_upstream::{behind, one_model},
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const MOMENT: Duration = Duration::from_millis(500);
const MAX_RESPONSES: Duration = Duration::from_secs(5);

fn assert_each(responses: &[Response], status: u16, code: &str) {
    let is = |response: &Response| (response.status, response.code());
    assert!(
        responses
            .iter()
            .all(|response| is(response) == (status, code.to_owned())),
        "{:?}",
        is(&responses[0])
    );
}

/// A customer with a lease, so that only the document is waited for.
async fn customer(world: &World) -> Customer {
    world.busy().await
}

async fn request_concurrently(world: &World, customer: &Customer, size: usize) -> Vec<Response> {
    join_all((0..size).map(|_| world.get_as(customer, MODELS))).await
}

#[tokio::test]
async fn waiters_of_a_hanging_fetch_time_out_individually_and_one_more_fetch_follows() {
    let world = World::with("freshness.max_wait = \"5s\"", good).await;
    let customer = customer(&world).await;
    world.backend.set_script(|_| Act::Hang);
    for timeout in 1..=3 {
        let (responses, ()) = tokio::join!(request_concurrently(&world, &customer, 50), async {
            world.backend.has_received(2).await;
            world.has_waiters(50).await;
            world.pass(MAX_RESPONSES);
        });
        assert_each(&responses, 504, "upstream_timeout");
        assert_eq!(world.backend.count("/api/v1/models"), 1, "{timeout}");
    }
    // The response timeout of the backend has passed: the fetch is over, and another one follows shortly.
    world.settled().await;
    world.backend.set_script(good);
    world.pass(MOMENT);
    assert!(
        request_concurrently(&world, &customer, 50)
            .await
            .iter()
            .all(|response| response.status == 200)
    );
    assert_eq!(world.backend.count("/api/v1/models"), 2);
}

#[tokio::test]
async fn waiters_of_a_hanging_refresh_get_the_stale_document_at_their_timeout() {
    // All of this happens on one day: on a new day the requests would wait for leases first.
    let settings = "freshness.max_wait = \"5s\"\nfreshness.stale_while_revalidate = \"1h\"";
    let world = World::with(settings, good).await;
    let customer = customer(&world).await;
    let first = world.get_as(&customer, MODELS).await;
    world.pass(Duration::from_hours(3));
    world.backend.set_script(|_| Act::Hang);
    for _ in 0..2 {
        let (responses, ()) = tokio::join!(request_concurrently(&world, &customer, 50), async {
            world.backend.has_received(3).await;
            world.has_waiters(50).await;
            world.pass(MAX_RESPONSES);
        });
        for response in responses {
            assert_eq!((response.status, &response.body), (200, &first.body));
            assert!(
                response.header("cache-status").ends_with("detail=stale"),
                "{}",
                response.header("cache-status")
            );
        }
    }
    assert_eq!(world.backend.count("/api/v1/models"), 2);
    assert_eq!(world.served("stale_on_error").await, 100);
}

/// An in-process backend that parses its first response with a panicking parser.
#[derive(Default)]
struct Panicking {
    calls: AtomicUsize,
    gate: Option<Semaphore>,
}

impl Upstream for Panicking {
    fn address(&self) -> String {
        "in a test".into()
    }

    fn fetch<'a>(&'a self, _: UpstreamRequest<'a>) -> Answered<'a> {
        Box::pin(async move {
            let calls = self.calls.fetch_add(1, Ordering::SeqCst);
            let held = self
                .gate
                .as_ref()
                .expect("the model has one")
                .acquire()
                .await;
            held.unwrap().forget();
            assert!(calls > 0, "an intended panic of a parser");
            Ok(one_model())
        })
    }

    fn lists_all_models(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_parser_panic_is_a_502_for_all_waiters_and_the_next_request_succeeds() {
    let mut world = World::new().await;
    let customer = customer(&world).await;
    let backend = Arc::new(Panicking {
        gate: Some(Semaphore::new(0)),
        ..Panicking::default()
    });
    let stop = behind(
        &mut world,
        Arc::clone(&backend) as Arc<dyn Upstream>,
        AccessLog::default(),
    )
    .await;
    let (responses, ()) = tokio::join!(request_concurrently(&world, &customer, 100), async {
        world.has_waiters(100).await;
        backend.gate.as_ref().unwrap().add_permits(1_000);
    });
    assert_each(&responses, 502, "upstream_invalid");
    assert_eq!(backend.calls.load(Ordering::SeqCst), 1);
    world.settled().await;
    assert_each(
        &request_concurrently(&world, &customer, 10).await,
        502,
        "upstream_invalid",
    );
    assert_eq!(
        backend.calls.load(Ordering::SeqCst),
        1,
        "the failure is cached for a moment"
    );
    world.pass(MOMENT);
    let next = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (next.status, next.header("cache-status")),
        (200, "scoregate; fwd=miss; stored; detail=miss")
    );
    // The panic leaked no concurrency slot and does not count for the circuit breaker.
    for sort_by in ["speed", "price", "coding"] {
        assert_eq!(
            world
                .get_as(&customer, &format!("{MODELS}&sortBy={sort_by}"))
                .await
                .status,
            200
        );
    }
    world.running.gateway().sweep();
    let after = [
        "scoregate_fetches_in_progress",
        "scoregate_upstream_queue_length",
        "scoregate_upstream_breaker_state",
    ];
    for series in after {
        assert_eq!(world.counted(series).await, 0, "{series}");
    }
    assert_eq!(
        world.counted("scoregate_panics_total").await,
        1,
        "the fetch, and no request"
    );
    stop.cancel();
}
