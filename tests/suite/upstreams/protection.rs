//! Protection of the backend: bounded concurrency, fetch priorities, the circuit breaker, and no immediate retry of a
//! failed document.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{
    backend::{Act, json, respond},
    client::Response,
    world::{Customer, LISTED, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";

fn model(number: u32) -> String {
    format!("/api/v1/models/m{number}")
}

fn broken(status: &str) -> Act {
    respond(status, &[], "")
}

/// Fails five fetches of different documents, which opens the circuit breaker.
async fn open_breaker(world: &World, customer: &Customer) {
    for number in 0..5 {
        // Unknown models are fetched once a second.
        world.pass(Duration::from_secs(1));
        world.backend.next(broken("500 Internal Server Error"));
        assert_eq!(world.get_as(customer, &model(number)).await.status, 503);
    }
}

/// Waits until this many fetches are queued.
pub async fn wait_for_queue_length(world: &World, length: u32) {
    loop {
        world.running.gateway().engine.sweep();
        if world.counted("scoregate_upstream_queue_length").await == length {
            return;
        }
        tokio::task::yield_now().await;
    }
}

fn wait_of(response: &Response) -> u64 {
    response.header("retry-after").parse().unwrap()
}

#[tokio::test]
async fn two_fetches_run_at_once_and_paid_requests_are_next() {
    let world = World::new().await;
    let free = world.free().await;
    let paid = world.paid().await;
    for customer in [&free, &paid] {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
    let before = world.backend.received().len();
    world.backend.hold();
    let request = async |customer: &Customer, number: u32| {
        assert_eq!(world.get_as(customer, &model(number)).await.status, 200);
    };
    let responses = async {
        for served in 3..=5 {
            assert_eq!(
                world.backend.received().len(),
                before + served - 1,
                "at most two at a time"
            );
            world.backend.release(1);
            world.backend.has_received(before + served).await;
        }
        world.backend.release(2);
    };
    let paid_ones = async {
        wait_for_queue_length(&world, 2).await;
        tokio::join!(request(&paid, 4), async {
            wait_for_queue_length(&world, 3).await;
            // A paid caller raises the priority of a free caller's fetch.
            tokio::join!(request(&paid, 3), async {
                world.has_waiters(6).await;
                responses.await;
            })
        })
    };
    tokio::join!(request(&free, 0), request(&free, 1), async {
        world.backend.has_received(before + 2).await;
        tokio::join!(request(&free, 2), request(&free, 3), paid_ones)
    });
    let order: Vec<String> = world.backend.received()[before + 2..]
        .iter()
        .map(|received| received.target().to_owned())
        .collect();
    assert!(
        order[2].ends_with("/m2"),
        "the free request is last: {order:?}"
    );
}

#[tokio::test]
async fn a_fetch_that_is_queued_past_its_deadline_is_not_sent() {
    let world = World::with("freshness.max_wait = \"5s\"", good).await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    world.backend.hold();
    let targets: Vec<String> = (0..3).map(model).collect();
    let all = join_all(targets.iter().map(|target| world.get_as(&customer, target)));
    let (responses, ()) = tokio::join!(all, async {
        wait_for_queue_length(&world, 1).await;
        world.backend.has_received(3).await;
        world.pass(Duration::from_secs(5));
    });
    assert!(responses.iter().all(|response| response.status >= 503));
    world
        .reaches(
            "scoregate_upstream_requests_total{result=\"queue_full\"}",
            1,
        )
        .await;
    world.backend.open();
    world.settled().await;
    assert_eq!(
        world.backend.received().len(),
        3,
        "two requests were sent, and the third was not"
    );
}

#[tokio::test]
async fn when_everything_is_overdue_at_once_stale_documents_are_served_and_two_fetches_run_at_a_time()
 {
    const DOCUMENTS: u32 = LISTED;
    let world = World::new().await;
    let customer = world.paid().await;
    let targets: Vec<String> = (0..DOCUMENTS).map(model).collect();
    let round = async || {
        let responses =
            join_all(targets.iter().map(|target| world.get_as(&customer, target))).await;
        assert!(responses.iter().all(|response| response.status == 200));
        responses
            .iter()
            .filter(|response| response.header("cache-status").ends_with("detail=stale"))
            .count()
    };
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    assert_eq!(round().await, 0);
    let before = world.backend.received().len();
    world.pass(Duration::from_hours(1));
    world.backend.set_script(|received| {
        let id = received.target().rsplit('/').next().unwrap();
        json(&format!(
            r#"{{"generated_at":"2026-11-21T13:00:00Z","data":[{{"id":"{id}","currentScore":81}}]}}"#
        ))
    });
    world.backend.hold();
    // The backend does not respond meanwhile, and every request is answered immediately.
    for _ in 0..3 {
        assert_eq!(round().await, DOCUMENTS as usize);
    }
    wait_for_queue_length(&world, DOCUMENTS - 2).await;
    for answered in 1..=DOCUMENTS as usize {
        assert_eq!(
            world.backend.received().len() - before,
            (answered + 1).min(DOCUMENTS as usize)
        );
        world.backend.release(1);
        world
            .backend
            .has_received(before + (answered + 2).min(DOCUMENTS as usize))
            .await;
    }
    world.settled().await;
    assert_eq!(round().await, 0);
    assert_eq!(
        world.backend.received().len() - before,
        DOCUMENTS as usize,
        "each once"
    );
}

#[tokio::test]
async fn five_failures_open_the_circuit_breaker_and_one_half_open_request_closes_it() {
    let world = World::new().await;
    let customer = world.paid().await;
    open_breaker(&world, &customer).await;
    let refused = world.get_as(&customer, &model(5)).await;
    assert_eq!(
        (refused.status, refused.code(), wait_of(&refused)),
        (503, "upstream_unavailable".into(), 1)
    );
    assert_eq!(
        world.backend.received().len(),
        5,
        "no upstream request was sent"
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"circuit_open\"}")
            .await,
        1
    );
    world.running.gateway().sweep();
    assert_eq!(world.counted("scoregate_upstream_breaker_state").await, 2);

    world.pass(Duration::from_secs(1));
    world.backend.hold();
    let probed = model(6);
    let (half_open, ()) = tokio::join!(world.get_as(&customer, &probed), async {
        world.backend.has_received(6).await;
        assert_eq!(
            world.get_as(&customer, &model(7)).await.status,
            503,
            "only one upstream request"
        );
        world.backend.open();
    });
    assert_eq!(half_open.status, 200);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.get_as(&customer, &model(7)).await.status, 200);
    assert_eq!(world.backend.received().len(), 7);
    world.running.gateway().sweep();
    assert_eq!(world.counted("scoregate_upstream_breaker_state").await, 0);
}

#[tokio::test]
async fn stored_documents_are_served_without_fetches_while_the_circuit_breaker_is_open() {
    let world = World::new().await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    open_breaker(&world, &customer).await;
    for age in [1, 25] {
        world.pass(Duration::from_hours(age));
        // The breaker is half-open by then: another test request fails.
        world
            .backend
            .set_script(|_| broken("503 Service Unavailable"));
        let stale = world.get_as(&customer, MODELS).await;
        assert_eq!(stale.status, 200);
        assert!(
            stale.header("cache-status").ends_with("detail=stale"),
            "{}",
            stale.header("cache-status")
        );
        world.settled().await;
        let served = world.backend.received().len();
        for _ in 0..20 {
            assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
        }
        world.settled().await;
        assert_eq!(world.backend.received().len(), served);
    }
}

#[tokio::test]
async fn retry_after_of_the_backend_is_honoured_to_the_second() {
    for status in [
        "429 Too Many Requests",
        "503 Service Unavailable",
        "500 Internal Server Error",
    ] {
        let world = World::new().await;
        let customer = world.paid().await;
        assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
        world
            .backend
            .next(respond(status, &[("retry-after", "70")], ""));
        let refused = world.get_as(&customer, MODELS).await;
        assert_eq!((refused.status, wait_of(&refused)), (503, 70), "{status}");
        world.pass(Duration::from_millis(69_500));
        let refused = world.get_as(&customer, &model(1)).await;
        assert_eq!((refused.status, wait_of(&refused)), (503, 1), "{status}");
        assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
        assert_eq!(world.backend.received().len(), 2, "{status}");
        world.pass(Duration::from_millis(500));
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
        assert_eq!(world.backend.received().len(), 3);
    }
}
