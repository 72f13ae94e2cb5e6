//! Usage by caller, on the side port and by `scoregate keys show --usage`.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    client::Response,
    program::{BUILT_IN, Keys, Program, ProgramClient},
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const TOKEN: &str = "a-token-of-the-side-port";

async fn watched() -> World {
    World::with("admin.token = \"a-token-of-the-side-port\"", good).await
}

async fn request_side(world: &World, target: &str) -> Response {
    world
        .side(
            "GET",
            target,
            "",
            &[("Authorization", &format!("Bearer {TOKEN}"))],
        )
        .await
}

async fn usage(world: &World) -> Value {
    let response = request_side(world, "/v1/usage/top").await;
    assert_eq!(response.status, 200);
    response.json()
}

fn tally(requests: [u64; 7]) -> Value {
    let [
        requests,
        delivered,
        waited,
        unchanged,
        limited,
        client_errors,
        failed,
    ] = requests;
    json!({
        "requests": requests, "delivered": delivered, "waited": waited, "unchanged": unchanged,
        "limited": limited, "client_errors": client_errors, "failed": failed,
    })
}

/// A Free caller with a 200, a 304, an invalid request and a refusal by the minute limit.
async fn one_of_each(world: &World, customer: &Customer) {
    let first = world.get_as(customer, MODELS).await;
    assert_eq!(world.get_as(customer, "/api/v1/nothing").await.status, 404);
    assert_eq!(world.get_as(customer, "/api/v1/me").await.status, 200);
    world.pass(Duration::from_mins(1));
    let same = world
        .get(MODELS)
        .key(&customer.key)
        .header("if-none-match", first.header("etag"));
    assert_eq!(same.send().await.status, 304);
    assert_eq!(world.get_as(customer, MODELS).await.status, 429);
}

#[tokio::test]
async fn usage_of_an_application_is_reported_by_outcome() {
    let world = watched().await;
    let customer = world.customer("free").await;
    let idle = world.customer("pro").await;
    one_of_each(&world, &customer).await;
    let response = usage(&world).await;
    let [one] = response["applications"].as_array().unwrap().as_slice() else {
        panic!("{response}")
    };
    assert_eq!(
        (&one["application"], &one["tier"]),
        (&json!(customer.id.to_string()), &json!("free"))
    );
    let counted = json!({
        "today": tally([5, 1, 1, 1, 1, 1, 0]), "last_minute": tally([3, 1, 1, 0, 0, 1, 0]), "missed": 0
    });
    assert_eq!(one["requests"], counted);
    let whole = request_side(&world, &format!("/v1/usage/show?id={}", customer.id))
        .await
        .json();
    assert_eq!(&whole, one);
    // The remaining allowance equals the value in the caller's response headers.
    let me = world.get_as(&customer, "/api/v1/me").await.json();
    let left = |limits: &Value| -> Vec<(Value, Value)> {
        let limits = limits
            .as_array()
            .unwrap()
            .iter()
            .filter(|limit| limit["name"] != "guard");
        limits
            .map(|limit| (limit["name"].clone(), limit["remaining"].clone()))
            .collect()
    };
    assert_eq!(left(&one["limits"]), left(&me["data"][0]["limits"]));
    // Applications without requests are not in the list, but can be queried individually.
    let none = request_side(&world, &format!("/v1/usage/show?id={}", idle.id))
        .await
        .json();
    assert_eq!(
        (&none["requests"], &none["limits"][1]["remaining"]),
        (&Value::Null, &json!(10_000))
    );
}

#[tokio::test]
async fn unauthenticated_clients_are_listed_by_address_with_their_refused_requests_only() {
    let world = watched().await;
    assert_eq!(world.get("/docs").send().await.status, 200);
    for _ in 0..3 {
        assert_eq!(
            world.get(MODELS).key("sg_live_madeup").send().await.status,
            401
        );
    }
    let response = usage(&world).await;
    let expected =
        json!({ "today": tally([3, 0, 0, 0, 0, 3, 0]), "last_minute": tally([0; 7]), "missed": 0 });
    assert_eq!(
        response["unauthenticated"],
        json!([{ "address": "127.0.0.1", "requests": expected }])
    );
    assert_eq!(response["applications"], json!([]));
}

#[tokio::test]
async fn usage_covers_the_last_whole_minute_and_a_new_day_starts_empty() {
    let world = watched().await;
    let customer = world.customer("pro").await;
    world.get_as(&customer, MODELS).await;
    let last = |response: Value| {
        response["applications"][0]["requests"]["last_minute"]["requests"].clone()
    };
    assert_eq!(last(usage(&world).await), 0, "it is not over yet");
    world.pass(Duration::from_mins(1));
    assert_eq!(last(usage(&world).await), 1);
    world.pass(Duration::from_mins(1));
    assert_eq!(last(usage(&world).await), 0);
    world.pass(Duration::from_hours(24));
    let response = usage(&world).await;
    assert_eq!(response["applications"], json!([]));
    assert!(
        response["since"].as_str().unwrap().ends_with("T00:00:00Z"),
        "{response}"
    );
}

#[tokio::test]
async fn keys_show_prints_usage_on_a_running_server_and_a_remedy_on_a_stopped_one() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let keys = Keys(directory.path());
    let (application, key) = keys.create("pro");
    for _ in 0..3 {
        assert_eq!(client.get("/api/v1/models", &key).send().await.status, 200);
    }
    assert_eq!(client.get("/api/v1/nothing", &key).send().await.status, 404);
    let response = keys.run(&["show", &application, "--usage"]).with(0).out;
    let row = |name: &str| {
        let line = response
            .lines()
            .rfind(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{response}"));
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(row("today")[1..], ["4", "3", "1", "0", "0", "1", "0"]);
    assert_eq!(row("day")[1..4], ["10000", "3", "9997"]);
    let json = keys
        .run(&["show", &application, "--usage", "--json"])
        .with(0)
        .json();
    assert_eq!(json["usage"]["requests"]["today"]["delivered"], 3);
    assert_eq!(json["id"], json["usage"]["application"]);
    program.stop().with(0);
    let stopped = keys.run(&["show", &application, "--usage"]).with(1);
    assert!(
        stopped.err.contains("only by a running server"),
        "{}",
        stopped.err
    );
}
