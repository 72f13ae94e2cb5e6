//! Reused connections to the backend: a connection that was closed meanwhile loses no response, and every connection
//! uses the gateway's credential for all callers.
//!
//! Bad responses are in `bad_upstream_responses` and `faults`.

use futures_util::future::join_all;
use scoregate_base::routes::Selection;

use crate::backend::{Act, Received, json};
use crate::world::World;

const INDEX: &str = "/api/v1/index";
const ALERTS: &str = "/api/v1/alerts";
const PROVIDERS: &str = "/api/v1/providers";

fn bytes(act: Act) -> Vec<u8> {
    let Act::Raw(bytes) = act else { unreachable!() };
    bytes
}

/// The connection of each upstream request.
fn upstream_requests(world: &World) -> Vec<(String, usize)> {
    let received = world.backend.received().into_iter();
    received
        .map(|one| (one.target().to_owned(), one.connection))
        .collect()
}

fn each(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    expected
        .iter()
        .map(|(target, connection)| ((*target).to_owned(), *connection))
        .collect()
}

#[tokio::test]
async fn an_idle_connection_that_the_backend_closes_is_not_reused() {
    let world = World::new().await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    world
        .backend
        .next(Act::RawThenCloseLater(bytes(json(r#"[{"id":"atlas"}]"#))));
    world.backend.hold();
    world.backend.release(1);
    assert_eq!(world.get_as(&customer, ALERTS).await.status, 200);
    world.backend.release(1);
    // Both responses and the close of the connection.
    world.backend.has_sent(3).await;
    world.backend.open();
    assert_eq!(world.get_as(&customer, PROVIDERS).await.status, 200);
    assert_eq!(
        upstream_requests(&world),
        each(&[(INDEX, 0), (ALERTS, 0), (PROVIDERS, 1)])
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"success\"}")
            .await,
        3
    );
}

#[tokio::test]
async fn a_request_unread_on_a_closed_connection_is_retried_once_on_a_new_connection() {
    let world = World::new().await;
    let customer = world.paid().await;
    world
        .backend
        .next(Act::RawThenHangUp(bytes(json(r#"[{"id":"atlas"}]"#))));
    assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    assert_eq!(world.get_as(&customer, ALERTS).await.status, 200);
    assert_eq!(upstream_requests(&world), each(&[(INDEX, 0), (ALERTS, 1)]));
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"success\"}")
            .await,
        2
    );
}

#[tokio::test]
async fn a_request_is_retried_once_at_most_and_never_if_its_connection_was_new() {
    let world = World::new().await;
    let customer = world.paid().await;
    world.backend.next(Act::RawThenClose(Vec::new()));
    assert_eq!(
        world.get_as(&customer, ALERTS).await.code(),
        "upstream_unavailable"
    );
    assert_eq!(
        upstream_requests(&world),
        each(&[(ALERTS, 0)]),
        "no retry on a new connection"
    );
    world
        .backend
        .next(Act::RawThenHangUp(bytes(json(r#"[{"id":"atlas"}]"#))));
    assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    world.backend.next(Act::RawThenClose(Vec::new()));
    assert_eq!(
        world.get_as(&customer, PROVIDERS).await.code(),
        "upstream_unavailable"
    );
    assert_eq!(
        upstream_requests(&world),
        each(&[(ALERTS, 0), (INDEX, 1), (PROVIDERS, 2)])
    );
    world.running.gateway().sweep();
    assert_eq!(world.counted("scoregate_upstream_retries_total").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_thousand_requests_to_a_backend_that_closes_after_every_second_response_all_succeed() {
    let settings = "[upstream]\nurl = \"{backend}\"\nmax_concurrent_requests = 16";
    let world = World::with(settings, |received: &Received| {
        let act = json(r#"{"generated_at":"2026-11-21T12:00:00Z","data":[{"id":"atlas"}]}"#);
        let limit = received
            .target()
            .split("limit=")
            .nth(1)
            .map_or(0, |limit| limit.parse().unwrap());
        if limit % 2 == 0 {
            act
        } else {
            Act::RawThenClose(bytes(act))
        }
    });
    let world = world.await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    for _ in 0..5 {
        let loops = (1..=100).map(|limit| {
            let world = &world;
            let customer = &customer;
            async move {
                for period in ["latest", "24h", "7d", "1m"] {
                    let target = format!("/api/v1/incidents?period={period}&limit={limit}");
                    let response = world.get_as(customer, &target).await;
                    assert_eq!(
                        response.header("cache-status"),
                        "scoregate; fwd=miss; stored; detail=miss",
                        "{limit}"
                    );
                }
            }
        });
        join_all(loops).await;
        assert_eq!(
            world
                .running
                .gateway()
                .engine
                .purge(&Selection::All, true)
                .await,
            401
        );
        assert_eq!(world.get_as(&customer, INDEX).await.status, 200);
    }
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"success\"}")
            .await,
        2_006
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"unreachable\"}")
            .await,
        0
    );
    assert!(world.backend.max_concurrent() <= 16);
}
