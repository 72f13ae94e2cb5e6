//! Requests by day, endpoint and outcome: counted on the request path, recorded in the store, read over the side port and by
//! `scoregate keys requests`.

use std::{fs, sync::Arc, time::Duration};

use scoregate_base::limits::{LimitSetting, OwnLimits};
use scoregate_store::RequestOutcome;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, Received, respond},
    client::Response,
    program::{BUILT_IN, Keys, Program, ProgramClient, within_one_day},
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const INDEX: &str = "/api/v1/index";
const ALERTS: &str = "/api/v1/alerts";
const SETTINGS: &str = "admin.token = \"a-token-of-the-side-port\"\n";
const TODAY: &str = "2026-11-21";

/// A working backend without alerts.
fn without_alerts(received: &Received) -> Act {
    if received.target().contains("/alerts") {
        return respond("500 Internal Server Error", &[], "{}");
    }
    good(received)
}

async fn read(world: &World, customer: &Customer, query: &str) -> Response {
    let target = format!("/v1/keys/requests?id={}{query}", customer.id);
    world
        .side(
            "GET",
            &target,
            "",
            &[("Authorization", "Bearer a-token-of-the-side-port")],
        )
        .await
}

async fn totals(world: &World, customer: &Customer, query: &str) -> Value {
    let response = read(world, customer, query).await;
    assert_eq!(
        response.status,
        200,
        "{}",
        String::from_utf8_lossy(&response.body)
    );
    response.json()
}

/// Waits until all earlier requests are recorded. The clock advances second by second.
async fn recorded(world: &World, customer: &Customer) -> Value {
    let now = world.clock.now().wall.rfc3339();
    loop {
        world.pass(Duration::from_secs(10));
        let found = totals(world, customer, "").await;
        if found["recorded_at"]
            .as_str()
            .is_some_and(|at| at > now.as_str())
        {
            return found;
        }
    }
}

/// Counts by outcome; those that are not named are zero.
fn outcomes(named: &[(&str, u64)]) -> Value {
    let count = |word: &str| {
        named
            .iter()
            .find(|(name, _)| *name == word)
            .map_or(0, |(_, count)| *count)
    };
    RequestOutcome::ALL
        .map(|outcome| (outcome.word().to_owned(), json!(count(outcome.word()))))
        .into_iter()
        .collect()
}

/// The outcomes of requests to an endpoint.
fn to_endpoint(found: &Value, endpoint: &str) -> Value {
    let endpoints = found["endpoints"].as_array().unwrap();
    endpoints
        .iter()
        .find(|one| one["endpoint"] == endpoint)
        .map_or(Value::Null, |one| one["outcomes"].clone())
}

async fn status(world: &World, customer: &Customer, target: &str) -> u16 {
    world.get_as(customer, target).await.status
}

/// A request whose client disconnects before the response.
async fn disconnect(world: &World, customer: &Customer, target: &str) {
    let before = world.backend.received().len();
    let disconnected = "scoregate_client_disconnects_total";
    let counted = world.counted(disconnected).await;
    world.backend.hold();
    let connection = world.get(target).key(&customer.key).begin().await;
    world.backend.has_received(before + 1).await;
    connection.reset();
    world.reaches(disconnected, counted + 1).await;
    world.backend.open();
    world.settled().await;
}

#[tokio::test]
async fn requests_are_counted_by_endpoint_with_each_of_the_seven_outcomes() {
    let world = World::with(SETTINGS, without_alerts).await;
    let customer = world
        .customer_with(
            "pro",
            OwnLimits::NONE
                .with(LimitSetting::Minute, 7)
                .with(LimitSetting::Day, 2),
        )
        .await;
    let first = world.get_as(&customer, MODELS).await;
    assert_eq!(first.status, 200);
    let same = world
        .get(MODELS)
        .key(&customer.key)
        .header("if-none-match", first.header("etag"));
    assert_eq!(same.send().await.status, 304);
    assert_eq!(status(&world, &customer, ALERTS).await, 503);
    disconnect(&world, &customer, INDEX).await;
    assert_eq!(status(&world, &customer, "/api/v1/me").await, 200);
    assert_eq!(
        status(&world, &customer, "/api/v1/models?period=never").await,
        400
    );
    assert_eq!(status(&world, &customer, "/api/v1/nothing").await, 404);
    let limited = loop {
        let again = world
            .get(MODELS)
            .key(&customer.key)
            .header("if-none-match", first.header("etag"));
        let response = again.send().await;
        if response.status != 304 {
            break response;
        }
    };
    assert_eq!(
        (limited.status, limited.code()),
        (429, "rate_limit_exceeded".into())
    );
    world.pass(Duration::from_mins(1));
    assert_eq!(status(&world, &customer, MODELS).await, 200);
    let spent = world.get_as(&customer, MODELS).await;
    assert_eq!((spent.status, spent.code()), (429, "quota_exceeded".into()));
    assert_eq!(
        world.get(MODELS).key("sg_live_madeup").send().await.status,
        401
    );
    let found = recorded(&world, &customer).await;
    let models = to_endpoint(&found, "models");
    let unchanged = models["not_modified"].as_u64().unwrap();
    assert!(unchanged >= 1, "{found:#}");
    let expected = [
        ("ok", 2),
        ("not_modified", unchanged),
        ("client_error", 1),
        ("rate_limited", 1),
        ("quota_exceeded", 1),
    ];
    assert_eq!(models, outcomes(&expected));
    assert_eq!(
        to_endpoint(&found, "alerts"),
        outcomes(&[("server_error", 1)])
    );
    assert_eq!(
        to_endpoint(&found, "index"),
        outcomes(&[("disconnected", 1)])
    );
    assert_eq!(to_endpoint(&found, "me"), outcomes(&[("ok", 1)]));
    assert_eq!(
        to_endpoint(&found, "none"),
        outcomes(&[("client_error", 1)])
    );
    assert_eq!(found["endpoints"].as_array().unwrap().len(), 5, "{found:#}");
    let days = found["days"].as_array().unwrap();
    assert_eq!(
        (days.len(), &days[29]["day"], &days[0]["day"]),
        (30, &json!(TODAY), &json!("2026-10-23"))
    );
    assert_eq!(
        (&days[29]["outcomes"], &days[28]["requests"]),
        (&found["outcomes"], &json!(0))
    );
    assert_eq!(found["requests"], 9 + unchanged);
}

#[tokio::test]
async fn requests_of_a_caller_with_too_many_refused_ones_are_client_errors() {
    let world = World::with(&format!("{SETTINGS}guard.per_minute = 1\n"), good).await;
    let customer = world.paid().await;
    assert_eq!(status(&world, &customer, "/api/v1/nothing").await, 404);
    let refused = world.get_as(&customer, "/api/v1/nothing").await;
    assert_eq!(
        (refused.status, refused.code()),
        (429, "too_many_refusals".into())
    );
    assert_eq!(
        recorded(&world, &customer).await["outcomes"],
        outcomes(&[("client_error", 2)])
    );
}

#[tokio::test]
async fn requests_with_a_revoked_key_are_not_counted() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.paid().await;
    assert_eq!(status(&world, &customer, MODELS).await, 200);
    world
        .running
        .registrar
        .revoke("test", customer.id, None)
        .await
        .unwrap();
    assert_eq!(status(&world, &customer, MODELS).await, 401);
    assert_eq!(
        recorded(&world, &customer).await["outcomes"],
        outcomes(&[("ok", 1)])
    );
}

#[tokio::test]
async fn a_restart_keeps_totals_of_requests_and_the_next_process_adds_to_them() {
    let mut world = World::with(SETTINGS, good).await;
    let customer = world.paid().await;
    for restarts in 1..=3 {
        assert_eq!(status(&world, &customer, MODELS).await, 200);
        world = world.restarted().await;
        assert_eq!(
            totals(&world, &customer, "").await["outcomes"],
            outcomes(&[("ok", restarts)])
        );
    }
}

#[tokio::test]
async fn a_crash_loses_the_requests_since_the_last_recording() {
    let world = World::with(SETTINGS, good).await;
    let customer = world.paid().await;
    assert_eq!(status(&world, &customer, MODELS).await, 200);
    assert_eq!(
        recorded(&world, &customer).await["outcomes"],
        outcomes(&[("ok", 1)])
    );
    assert_eq!(status(&world, &customer, MODELS).await, 200);
    // A copy of the directory in the state after a crash at this moment.
    let left = TempDir::new().unwrap();
    for entry in fs::read_dir(world.directory.path()).unwrap() {
        let entry = entry.unwrap();
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("scoregate.db")
        {
            fs::copy(entry.path(), left.path().join(entry.file_name())).unwrap();
        }
    }
    let again = World::with_backend(SETTINGS, Backend::start(good).await, Arc::new(left)).await;
    assert_eq!(
        totals(&again, &customer, "").await["outcomes"],
        outcomes(&[("ok", 1)])
    );
    let world = world.restarted().await;
    assert_eq!(
        totals(&world, &customer, "").await["outcomes"],
        outcomes(&[("ok", 2)])
    );
}

#[test]
fn keys_requests_prints_days_and_endpoints_of_a_running_and_a_stopped_server() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    within_one_day(|| runtime.block_on(prints_requests()));
}

async fn prints_requests() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let keys = Keys(directory.path());
    let (application, key) = keys.create("pro");
    let none = keys.run(&["requests", &application]).with(0);
    assert!(
        none.out.is_empty() && none.err.contains("no requests were recorded from"),
        "{}",
        none.err
    );
    for _ in 0..3 {
        assert_eq!(client.get("/api/v1/models", &key).send().await.status, 200);
    }
    assert_eq!(client.get("/api/v1/nothing", &key).send().await.status, 404);
    program.stop().with(0);
    let check = |output: &str| {
        let row = |name: &str| {
            let line = output
                .lines()
                .find(|line| line.starts_with(name))
                .unwrap_or_else(|| panic!("{output}"));
            line.trim_start_matches(name)
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let header = "DAY REQUESTS OK NOT_MODIFIED CLIENT_ERROR RATE_LIMITED QUOTA_EXCEEDED SERVER_ERROR DISCONNECTED";
        assert_eq!(row("DAY").join(" "), header.trim_start_matches("DAY "));
        assert_eq!(row("all days"), ["4", "3", "0", "1", "0", "0", "0", "0"]);
        assert_eq!(row("models"), ["3", "3", "0", "0", "0", "0", "0", "0"]);
        assert_eq!(row("none"), ["1", "0", "0", "1", "0", "0", "0", "0"]);
        assert_eq!(
            output.lines().filter(|line| line.starts_with("20")).count(),
            1,
            "{output}"
        );
    };
    check(&keys.run(&["requests", &application]).with(0).out);
    let running = Program::serve(directory.path(), &BUILT_IN);
    running.public();
    check(
        &keys
            .run(&["requests", &application, "--days", "1"])
            .with(0)
            .out,
    );
    let json = keys
        .run(&["requests", &application, "--days", "92", "--json"])
        .with(0)
        .json();
    assert_eq!(
        (&json["requests"], json["days"].as_array().unwrap().len()),
        (&4.into(), 92)
    );
    keys.run(&["requests", &application, "--days", "93"])
        .with(1);
    keys.run(&["requests", "app_00000000000"]).with(1);
    running.stop().with(0);
}
