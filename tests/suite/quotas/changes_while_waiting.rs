//! Changes while a request waits: of its key, of its tier, of the responses of the backend.

use scoregate_base::{
    clock::Wall,
    limits::{LimitSetting, OwnLimits},
};

use crate::world::World;

const DETAIL: &str = "/api/v1/models/atlas";

#[tokio::test]
async fn a_key_that_becomes_free_while_it_waits_gets_the_free_form() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    world.backend.hold();
    let waiting = tokio::spawn(world.get(DETAIL).key(&customer.key).send());
    world.backend.has_received(1).await;
    world
        .running
        .registrar
        .set_tier("test", customer.id, "free")
        .await
        .unwrap();
    world.backend.open();
    let response = waiting.await.unwrap();
    assert_eq!(response.status, 200);
    assert!(response.json()["data"][0].get("latestScore").is_none());
}

#[tokio::test]
async fn a_key_that_is_revoked_while_it_waits_is_refused_and_charged_as_a_refusal() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    let before = world.left(&customer);
    world.backend.hold();
    let waiting = tokio::spawn(world.get(DETAIL).key(&customer.key).send());
    world.backend.has_received(1).await;
    world
        .running
        .registrar
        .revoke("test", customer.id, None)
        .await
        .unwrap();
    world.backend.open();
    let response = waiting.await.unwrap();
    assert_eq!(
        (response.status, response.code()),
        (401, "invalid_api_key".into())
    );
    assert_eq!(before.spent(world.left(&customer)), (0, 0, 1));
}

#[tokio::test]
async fn a_key_stays_revoked_across_wall_clock_steps() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    world
        .running
        .registrar
        .revoke("test", customer.id, None)
        .await
        .unwrap();
    world
        .manual_clock
        .step_to(Wall::parse_rfc3339("2026-11-21T11:00:00Z").unwrap());
    let response = world.get("/api/v1/me").key(&customer.key).send().await;
    assert_eq!(
        (response.status, response.code()),
        (401, "invalid_api_key".into())
    );
}

#[tokio::test]
async fn every_request_of_a_burst_is_answered_during_a_tier_change() {
    let world = World::new().await;
    let own = OwnLimits::NONE.with(LimitSetting::Day, 800);
    let customer = world.customer_with("enterprise", own).await;
    world.get("/api/v1/index").key(&customer.key).send().await;
    let burst: Vec<_> = (0..300)
        .map(|_| tokio::spawn(world.get("/api/v1/index").key(&customer.key).send()))
        .collect();
    world
        .running
        .registrar
        .set_tier("test", customer.id, "free")
        .await
        .unwrap();
    for waiting in burst {
        let response = waiting.await.unwrap();
        assert!(matches!(response.status, 200 | 429), "{}", response.status);
    }
}
