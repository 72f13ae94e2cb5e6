//! Calendar limits that an operator sets for one application, or for an account.

use serde_json::{Value, json};

use crate::world::{Customer, World, good};

const MODELS: &str = "/api/v1/models?period=24h";
const TOKEN: (&str, &str) = ("Authorization", "Bearer a-token-of-the-side-port");
const SETTINGS: &str = "admin.token = \"a-token-of-the-side-port\"\n";

async fn set(world: &World, customer: &Customer, limits: Value) -> Value {
    let body = json!({"id": customer.id, "limits": limits}).to_string();
    let path = "/v1/keys/set-limits";
    world.side("POST", path, &body, &[TOKEN]).await.json()
}

async fn used(world: &World, customer: &Customer, requests: u32) {
    for _ in 0..requests {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
}

#[tokio::test]
async fn a_month_of_an_application_is_in_force_at_once_and_can_be_taken_back() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.customer("pro").await;
    used(&world, &customer, 3).await;
    let shown = set(&world, &customer, json!({"month": 5, "month_anchor": 23})).await;
    assert_eq!(shown["own_limits"], json!({"month": 5, "month_anchor": 23}));
    let warning = shown["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("month: the quota is smaller"),
        "{warning}"
    );
    used(&world, &customer, 2).await;
    let spent = world.get_as(&customer, MODELS).await.json();
    assert_eq!(spent["limit"]["name"], "month");
    assert_eq!(spent["limit"]["reset_at"], "2026-11-23T00:00:00Z");
    set(&world, &customer, json!({"month": 6})).await;
    used(&world, &customer, 1).await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
    set(&world, &customer, json!({"month": null})).await;
    used(&world, &customer, 1).await;
    let world = world.restarted().await;
    let shown = set(&world, &customer, json!({"day": 9})).await;
    assert_eq!(shown["own_limits"], json!({"day": 9, "month_anchor": 23}));
}

#[tokio::test]
async fn near_two_limits_a_request_takes_a_unit_of_both_or_of_none() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.customer("pro").await;
    set(&world, &customer, json!({"day": 4, "month": 6})).await;
    used(&world, &customer, 4).await;
    for _ in 0..3 {
        let spent = world.get_as(&customer, MODELS).await;
        assert_eq!(spent.header("x-ratelimit-resource"), "day");
    }
    set(&world, &customer, json!({"day": 9})).await;
    used(&world, &customer, 2).await;
    for _ in 0..3 {
        let spent = world.get_as(&customer, MODELS).await;
        assert_eq!(spent.header("x-ratelimit-resource"), "month");
    }
    set(&world, &customer, json!({"month": 9})).await;
    used(&world, &customer, 3).await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 429);
}

#[tokio::test]
async fn an_explanation_states_what_is_granted_and_left_in_each_window() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.customer("pro").await;
    set(&world, &customer, json!({"day": 4, "month": 6})).await;
    used(&world, &customer, 2).await;
    let body = json!({"request": "GET /api/v1/models?period=24h", "app": customer.id});
    let explained = world
        .side("POST", "/v1/requests/explain", &body.to_string(), &[TOKEN])
        .await
        .json();
    let stages = explained["stages"].as_array().unwrap();
    let limits = stages
        .iter()
        .find(|stage| stage["stage"] == "limits before");
    let facts = limits.unwrap()["facts"].as_array().unwrap();
    let fact = |name: &str| {
        let found = facts.iter().find(|fact| fact[0] == name).unwrap();
        found[1].as_str().unwrap().to_owned()
    };
    assert!(fact("day").starts_with("2 of 4 left, "), "{facts:?}");
    assert!(fact("day").ends_with(" granted, all at 2026-11-22T00:00:00Z"));
    assert!(fact("month").starts_with("4 of 6 left, "), "{facts:?}");
    assert!(fact("month").ends_with(" granted, all at 2026-12-01T00:00:00Z"));
}
