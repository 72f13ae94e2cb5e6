//! Changes while a request waits: of its key, of its tier, of the responses of the backend.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::limits::{LimitSetting, OwnLimits};

use crate::backend::{json, respond};
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

#[tokio::test]
async fn an_error_page_of_a_proxy_is_not_a_missing_model() {
    let world = World::new().await;
    let customer = world.customer("pro").await;
    assert_eq!(
        world.get(DETAIL).key(&customer.key).send().await.status,
        200
    );
    let page = Arc::new(respond(
        "404 Not Found",
        &[("content-type", "text/html")],
        "<h1>nothing here</h1>",
    ));
    world.backend.set_script(move |_| page.as_ref().clone());
    world.pass(Duration::from_secs(1));
    let response = world
        .get("/api/v1/models/other")
        .key(&customer.key)
        .send()
        .await;
    assert_eq!(
        (response.status, response.code()),
        (502, "upstream_invalid".into())
    );
    world.pass(Duration::from_hours(30));
    let stale = world.get(DETAIL).key(&customer.key).send().await;
    assert!(stale.status == 200 && stale.header("cache-status").ends_with("detail=stale"));
}

#[tokio::test]
async fn a_single_item_document_is_never_answered_with_two_items_or_none() {
    for data in ["[]", r#"[{"id":"a"},{"id":"b"}]"#] {
        let body = Arc::new(json(data));
        let world = World::with("", move |_| body.as_ref().clone()).await;
        let customer = world.customer("pro").await;
        let response = world.get(DETAIL).key(&customer.key).send().await;
        assert_eq!(
            (response.status, response.code()),
            (502, "upstream_invalid".into()),
            "{data}"
        );
    }
}
