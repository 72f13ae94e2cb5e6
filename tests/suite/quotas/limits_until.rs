//! Limits that an operator sets until a given time.

use std::time::Duration;

use scoregate_base::clock::Wall;
use serde_json::{Value, json};

use crate::{
    balances::own,
    client::Response,
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const TOKEN: (&str, &str) = ("Authorization", "Bearer a-token-of-the-side-port");
const HOUR: Duration = Duration::from_hours(1);

async fn world() -> World {
    World::with("admin.token = \"a-token-of-the-side-port\"\n", good).await
}

async fn set(world: &World, customer: &Customer, limits: &Value) -> Response {
    let mut body = limits.clone();
    body["id"] = json!(customer.id);
    world
        .side("POST", "/v1/keys/set-limits", &body.to_string(), &[TOKEN])
        .await
}

/// The limit of a minute, and when it ends, as the side port shows them.
async fn shown(world: &World, customer: &Customer) -> (Value, Value) {
    let target = format!("/v1/keys/show?id={}", customer.id);
    let shown = world.side("GET", &target, "", &[TOKEN]).await.json();
    (
        shown["own_limits"]["minute"].clone(),
        shown["limits_until"].clone(),
    )
}

async fn is_served(world: &World, customer: &Customer) -> bool {
    let response = world.get_as(customer, MODELS).await;
    assert!(response.status == 200 || response.code() == "rate_limit_exceeded");
    response.status == 200
}

/// Actor, action and details of the newest changes, newest first.
async fn changes(world: &World, customer: &Customer, most: usize) -> Vec<[String; 3]> {
    let target = format!("/v1/keys/audit?id={}&limit={most}", customer.id);
    let trail = world.side("GET", &target, "", &[TOKEN]).await.json();
    let text = |record: &Value| {
        ["actor", "action", "detail"].map(|field| record[field].as_str().unwrap().into())
    };
    trail["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect()
}

#[tokio::test]
async fn lower_limits_hold_across_a_restart_until_their_end_and_the_previous_ones_return() {
    let world = world().await;
    let customer = world.customer_with("pro", own(40, 10_000)).await;
    let end = world.clock.now().wall.plus(HOUR).rfc3339();
    let lowered = set(
        &world,
        &customer,
        &json!({"limits": {"minute": 2}, "until": end}),
    )
    .await;
    assert_eq!(
        (lowered.status, &lowered.json()["limits_until"]),
        (200, &json!(end))
    );
    for expected in [true, true, false] {
        assert_eq!(is_served(&world, &customer).await, expected);
    }
    let world = world.restarted().await;
    assert_eq!(shown(&world, &customer).await, (json!(2), json!(end)));
    world.pass(Duration::from_secs(3_539));
    for expected in [true, true, false] {
        assert_eq!(is_served(&world, &customer).await, expected);
    }
    for _ in 0..1_000 {
        if shown(&world, &customer).await == (json!(40), Value::Null) {
            break;
        }
        world.pass(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    assert_eq!(shown(&world, &customer).await, (json!(40), Value::Null));
    assert!(world.clock.now().wall >= Wall::parse_rfc3339(&end).unwrap());
    world.pass(2 * HOUR);
    for expected in [[true; 40].as_slice(), &[false]].concat() {
        assert_eq!(is_served(&world, &customer).await, expected);
    }
    let [restored, set] = &changes(&world, &customer, 2).await[..] else {
        panic!("two changes")
    };
    assert_eq!(
        restored,
        &[
            "end of limits",
            "restore_limits",
            "own limits, minute 40, day 10000"
        ]
    );
    let until = format!("own limits, minute 2, day 10000, until {end}");
    assert_eq!(set, &["admin-api", "set_limits", &until]);
}

#[tokio::test]
async fn an_end_must_be_in_the_future_and_within_a_year() {
    let world = world().await;
    let customer = world.customer("pro").await;
    let now = world.clock.now().wall;
    let year = now.plus(366 * 24 * HOUR);
    for (until, status) in [
        (now, 400),
        (year.plus(Duration::from_millis(1)), 400),
        (year, 200),
    ] {
        let response = set(
            &world,
            &customer,
            &json!({"limits": {"minute": 2}, "until": until.rfc3339()}),
        )
        .await;
        assert_eq!(response.status, status, "{}", until.rfc3339());
        let is_named = response
            .json()
            .to_string()
            .contains("in the future and within 366 days");
        assert_eq!(is_named, status == 400);
    }
    let response = set(
        &world,
        &customer,
        &json!({"limits": {"minute": 2}, "until": "tomorrow"}),
    )
    .await;
    assert!(
        response.status == 400
            && response
                .json()
                .to_string()
                .contains("until: write a timestamp")
    );
    assert_eq!(
        changes(&world, &customer, 9).await.len(),
        2,
        "a refused end changes nothing"
    );
}
