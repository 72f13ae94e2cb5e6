//! Reused connections to the backend: a connection that was closed meanwhile loses no response, and every connection
//! uses the gateway's credential for all callers.
//!
//! Bad responses are in `bad_upstream_responses` and `faults`.

use crate::{
    backend::{Act, json},
    world::World,
};

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
