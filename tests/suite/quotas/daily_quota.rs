//! The daily quota: start and end of a day, the day to which a request is charged, and the effect of changes of the
//! clock, the tier, the key or the process.

use std::time::Duration;

use scoregate_base::clock::Wall;

use crate::{
    backend::json,
    balances::own,
    world::{Customer, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
/// From noon to two seconds before midnight.
const ALMOST_MIDNIGHT: Duration = Duration::from_secs(43_198);

async fn used(world: &World, customer: &Customer, requests: u32) {
    for _ in 0..requests {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
}

#[tokio::test]
async fn the_day_resets_once_at_midnight_utc() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 3)).await;
    world.pass(ALMOST_MIDNIGHT);
    used(&world, &customer, 3).await;
    let spent = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (spent.code(), spent.header("retry-after")),
        ("quota_exceeded".into(), "2")
    );
    world.pass(Duration::from_millis(1_600));
    let spent = world.get_as(&customer, MODELS).await;
    let midnight = Wall::parse_rfc3339("2026-11-22T00:00:00Z")
        .unwrap()
        .seconds();
    assert_eq!(
        (
            spent.number("x-ratelimit-reset"),
            spent.header("retry-after")
        ),
        (midnight, "1")
    );
    world.pass(Duration::from_millis(400));
    let first = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (first.status, first.number("x-ratelimit-remaining")),
        (200, 2)
    );
    let next_midnight = Wall::parse_rfc3339("2026-11-23T00:00:00Z")
        .unwrap()
        .seconds();
    assert_eq!(first.number("x-ratelimit-reset"), next_midnight);
    used(&world, &customer, 2).await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    world.pass(Duration::from_hours(23));
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    assert_eq!(
        world
            .counted("scoregate_quota_units_total{use=\"delivered\"}")
            .await,
        6
    );
}

#[tokio::test]
async fn a_request_that_began_yesterday_is_charged_to_yesterday() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 3)).await;
    world.pass(ALMOST_MIDNIGHT);
    used(&world, &customer, 2).await;
    world.backend.hold();
    let late = world.get("/api/v1/index").key(&customer.key).send();
    let (late, ()) = tokio::join!(late, async {
        world.backend.has_received(2).await;
        assert_eq!(world.left(&customer).day, 0);
        world.pass(Duration::from_secs(4));
        world.backend.open();
    });
    assert_eq!(
        (late.status, late.number("x-ratelimit-remaining")),
        (200, 3)
    );
    assert_eq!(world.left(&customer).day, 3);
    used(&world, &customer, 3).await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
}

#[tokio::test]
async fn a_unit_returned_after_midnight_adds_nothing_to_the_new_day() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 3)).await;
    world.pass(ALMOST_MIDNIGHT);
    world.backend.hold();
    world.backend.next(json("nonsense"));
    let late = world.get("/api/v1/index").key(&customer.key).send();
    let (late, ()) = tokio::join!(late, async {
        world.backend.has_received(1).await;
        world.pass(Duration::from_secs(4));
        world.backend.release(1);
    });
    assert_eq!(
        (late.status, late.number("x-ratelimit-remaining")),
        (502, 3)
    );
    world.backend.open();
    used(&world, &customer, 3).await;
    assert_eq!(
        world.get_as(&customer, MODELS).await.code(),
        "quota_exceeded"
    );
    assert_eq!(world.refused("upstream_invalid").await, 1);
}

#[tokio::test]
async fn a_restart_keeps_the_day_exactly() {
    let world = World::new().await;
    let [free, paid] = [
        world.customer_with("free", own(1_000, 5)).await,
        world.customer("pro").await,
    ];
    used(&world, &free, 3).await;
    used(&world, &paid, 7).await;
    let world = world.restarted().await;
    assert_eq!((world.left(&free).day, world.left(&paid).day), (2, 9_993));
    used(&world, &free, 2).await;
    let world = world.restarted().await;
    assert_eq!((world.left(&free).day, world.left(&paid).day), (0, 9_993));
    assert_eq!(world.get_as(&free, MODELS).await.code(), "quota_exceeded");
    world.pass(Duration::from_hours(12));
    let world = world.restarted().await;
    assert_eq!((world.left(&free).day, world.left(&paid).day), (5, 10_000));
    assert_eq!(
        world
            .counted("scoregate_store_failures_total{operation=\"lease\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn a_restart_with_a_clock_that_stepped_back_reopens_no_day() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 2)).await;
    world.pass(Duration::from_hours(12));
    used(&world, &customer, 2).await;
    world
        .manual_clock
        .step_to(Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap());
    let world = world.restarted().await;
    assert_eq!(world.left(&customer).day, 0);
    assert_eq!(
        world.get_as(&customer, MODELS).await.code(),
        "quota_exceeded"
    );
}
