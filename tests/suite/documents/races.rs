//! Concurrency: counts stay exact, each document is fetched once, and no request fails because of another.

use std::time::Duration;

use futures_util::future::join_all;

use crate::{
    backend::{json, respond},
    balances::own,
    client::Response,
    world::World,
};

const MODELS: &str = "/api/v1/models?period=24h";

fn ended(responses: &[Response], status: u16) -> usize {
    responses
        .iter()
        .filter(|response| response.status == status)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_five_hundred_concurrent_requests_exactly_the_remaining_ten_are_served() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 10)).await;
    let responses = join_all((0..500).map(|_| world.get_as(&customer, MODELS))).await;
    assert_eq!((ended(&responses, 200), ended(&responses, 429)), (10, 490));
    for refused in responses.iter().filter(|response| response.status == 429) {
        assert_eq!(refused.code(), "quota_exceeded");
        assert_eq!(refused.header("x-ratelimit-resource"), "day");
        assert_eq!(refused.number("x-ratelimit-remaining"), 0);
    }
    let left = world.left(&customer);
    assert_eq!((left.minute, left.day), (990, 0));
    assert_eq!(world.refused("quota_exceeded").await, 490);
    assert_eq!(
        world
            .counted("scoregate_quota_units_total{use=\"delivered\"}")
            .await,
        10
    );
}

#[tokio::test]
async fn a_thousand_concurrent_misses_of_one_document_cause_one_upstream_request() {
    let world = World::new().await;
    let mut customers = Vec::new();
    for _ in 0..10 {
        // Enough units are leased, so that none of the thousand requests waits for a lease.
        customers.push(world.busy().await);
    }
    world.backend.hold();
    let all = join_all((0..1_000).map(|number| world.get_as(&customers[number % 10], MODELS)));
    let (responses, ()) = tokio::join!(all, async {
        world.has_waiters(1_000).await;
        world.backend.open();
    });
    assert_eq!(ended(&responses, 200), 1_000);
    let marked = |word: &str| {
        responses
            .iter()
            .filter(|response| response.header("cache-status").ends_with(word))
            .count()
    };
    assert_eq!((marked("detail=miss"), marked("detail=shared")), (1, 999));
    assert!(
        responses
            .iter()
            .all(|response| response.body == responses[0].body)
    );
    assert_eq!(world.backend.count("/api/v1/models"), 1);
    assert_eq!(world.served("shared").await, 999);
}

#[tokio::test]
async fn a_failed_fetch_wakes_all_waiters_and_is_retried_shortly_after() {
    let moment = 500;
    let minute = 60_000;
    for (bad, code, milliseconds) in [
        (
            respond("500 Internal Server Error", &[], ""),
            "upstream_unavailable",
            moment,
        ),
        (json("nonsense"), "upstream_invalid", moment),
        (respond("404 Not Found", &[], ""), "model_not_found", minute),
    ] {
        let world = World::new().await;
        let customer = world.paid().await;
        assert_eq!(world.get_as(&customer, "/api/v1/index").await.status, 200);
        world.backend.next(bad);
        world.backend.hold();
        let waiting = join_all((0..50).map(|_| world.get_as(&customer, "/api/v1/models/atlas")));
        let (responses, ()) = tokio::join!(waiting, async {
            world.has_waiters(50).await;
            world.backend.open();
        });
        assert!(
            responses.iter().all(|response| response.code() == code),
            "{code}"
        );
        assert_eq!(world.backend.count("/api/v1/models/atlas"), 1);
        world.pass(Duration::from_millis(milliseconds - 1));
        assert_eq!(
            world.get_as(&customer, "/api/v1/models/atlas").await.code(),
            code
        );
        assert_eq!(world.backend.count("/api/v1/models/atlas"), 1);
        assert_eq!(world.refused(code).await, 51);
        world.pass(Duration::from_millis(1));
        let next = world.get_as(&customer, "/api/v1/models/atlas").await;
        assert_eq!(
            (next.status, next.header("cache-status")),
            (200, "scoregate; fwd=miss; stored; detail=miss")
        );
    }
}
