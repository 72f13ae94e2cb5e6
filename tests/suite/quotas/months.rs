//! The calendar month of a tier: its end, its headers, and the units that are returned to it.

use std::time::Duration;

use serde_json::json;

use crate::world::{Customer, World, good};

const MODELS: &str = "/api/v1/models?period=24h";
const DAY: Duration = Duration::from_hours(24);
const SMALL: &str = "[tiers.pro]\nminute = 1000\nday = 5\nmonth = 8\npaid = true\n";

async fn used(world: &World, customer: &Customer, requests: u32) {
    for _ in 0..requests {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
}

#[tokio::test]
async fn a_month_that_is_used_up_is_refused_until_it_ends() {
    let world = World::with(SMALL, good).await;
    let customer = world.customer("pro").await;
    used(&world, &customer, 5).await;
    let spent = world.get_as(&customer, MODELS).await;
    assert_eq!(spent.header("x-ratelimit-resource"), "day");
    world.pass(DAY);
    let first = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (first.status, first.header("x-ratelimit-resource")),
        (200, "day")
    );
    assert_eq!(
        first.header("ratelimit-policy"),
        "\"minute\";q=1000;w=60, \"day\";q=5;w=86400, \"month\";q=8;w=2592000"
    );
    // From noon of the 22nd to the end of the month.
    let standing = "\"day\";r=4;t=43200, \"month\";r=2;t=734400";
    assert!(first.header("ratelimit").ends_with(standing));
    used(&world, &customer, 2).await;

    let spent = world.get_as(&customer, MODELS).await;
    assert_eq!((spent.status, spent.code()), (429, "quota_exceeded".into()));
    assert_eq!(
        spent.json()["limit"],
        json!({
            "name": "month", "quota": 8, "remaining": 0, "window_seconds": 2_592_000,
            "reset_at": "2026-12-01T00:00:00Z", "retry_after": 734_400,
        })
    );
    assert_eq!(
        spent.json()["message"],
        "Wait until 2026-12-01T00:00:00Z. The monthly quota of 8 requests is spent."
    );
    assert_eq!(spent.header("x-ratelimit-resource"), "month");
    assert_eq!(spent.header("retry-after"), "734400");
    assert!(
        spent
            .header("ratelimit")
            .ends_with("\"day\";r=2;t=43200, \"month\";r=0;t=734400")
    );
    let same = world
        .get(MODELS)
        .key(&customer.key)
        .header("if-none-match", first.header("etag"));
    assert_eq!(same.send().await.status, 304);

    world.pass(Duration::from_secs(734_399));
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    world.pass(Duration::from_secs(1));
    used(&world, &customer, 5).await;
}

#[tokio::test]
async fn with_day_and_month_used_up_the_month_is_named() {
    let world = World::with(&SMALL.replace("month = 8", "month = 5"), good).await;
    let customer = world.customer("pro").await;
    used(&world, &customer, 5).await;
    let spent = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (spent.code(), spent.header("x-ratelimit-resource")),
        ("quota_exceeded".into(), "month")
    );
}

#[tokio::test]
async fn the_month_of_an_application_is_known_after_a_restart() {
    let world = World::with(SMALL, good).await;
    let customer = world.customer("pro").await;
    used(&world, &customer, 3).await;
    let world = world.restarted().await;
    let me = world.get_as(&customer, "/api/v1/me").await.json();
    assert_eq!(
        me["data"][0]["limits"][2],
        json!({
            "name": "month", "limit": 8, "window_seconds": 2_592_000, "used": 3, "remaining": 5,
            "reset_at": "2026-12-01T00:00:00Z",
        })
    );
}
