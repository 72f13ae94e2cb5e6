//! Models that the backend has not listed: random identifiers neither reach the backend nor use memory, and requests
//! for existing models never wait because of them.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;

use crate::{
    backend::json,
    client::Response,
    world::{Customer, LISTED, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const SECOND: Duration = Duration::from_secs(1);

/// Customers, and unknown identifiers that each requests.
async fn request_unknown_models(world: &World, customer: &Customer, round: u32) -> Vec<Response> {
    let targets: Vec<String> = (0..200)
        .map(|number| format!("/api/v1/models/made-up-{round}-{number}"))
        .collect();
    join_all(
        targets
            .iter()
            .map(|target| world.get(target).key(&customer.key).send()),
    )
    .await
}

/// Upstream requests by outcome.
async fn calls(world: &World) -> BTreeSet<String> {
    let calls = world.scrape().await;
    let calls = calls
        .lines()
        .filter(|line| line.starts_with("scoregate_upstream_requests_total"));
    calls.map(str::to_owned).collect()
}

fn count(responses: &[Response], status: u16) -> usize {
    responses
        .iter()
        .filter(|response| response.status == status)
        .count()
}

#[tokio::test]
async fn one_unknown_model_a_second_is_fetched() {
    let world = World::new().await;
    let customer = world.paid().await;
    for round in 0..3 {
        let responses = request_unknown_models(&world, &customer, round).await;
        assert_eq!(
            (count(&responses, 200), count(&responses, 404)),
            (1, 199),
            "this backend has every model"
        );
        let refused = responses
            .iter()
            .find(|response| response.status == 404)
            .unwrap();
        assert_eq!(
            (refused.code().as_str(), refused.header("retry-after")),
            ("model_not_found", "1")
        );
        world.pass(SECOND);
    }
    assert_eq!(world.backend.count("/api/v1/models/made-up"), 3);
    assert_eq!(
        world.backend.count("/api/v1/models?"),
        1,
        "the list of models is fetched too"
    );
    assert_eq!(world.documents(), 4);
}

#[tokio::test]
async fn an_unknown_model_that_may_not_be_fetched_yet_is_a_free_404_with_retry_after() {
    let world = World::new().await;
    let customer = world.paid().await;
    // The list is stored, and a first lease exists.
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    world.pass(SECOND);
    assert_eq!(
        world
            .get_as(&customer, "/api/v1/models/nobody")
            .await
            .status,
        404
    );
    let failures = world.scrape().await;
    for id in ["made-up-1", "made-up-2", "made-up-3"] {
        world.pass(Duration::from_millis(300));
        let left = world.left(&customer);
        let calls = calls(&world).await;
        for method in ["GET", "HEAD"] {
            for path in [
                "/api/v1/models/ID",
                "/api/v1/models/ID/history",
                "/api/v1/drift/ID",
            ] {
                let target = path.replace("ID", id);
                let response = world
                    .request(method, &target)
                    .key(&customer.key)
                    .send()
                    .await;
                assert_eq!(
                    (response.status, response.header("retry-after")),
                    (404, "1"),
                    "{method} {target}"
                );
                assert_eq!(response.header("cache-control"), "no-store");
                if method == "GET" {
                    assert_eq!(response.code(), "model_not_found", "{target}");
                }
            }
        }
        assert_eq!(
            left.spent(world.left(&customer)),
            (0, 0, 0),
            "minute, day, guard"
        );
        assert_eq!(
            calls,
            self::calls(&world).await,
            "no upstream request was sent"
        );
    }
    // The metrics do not count it as a failure.
    let of_failures = |text: &str| -> BTreeSet<String> {
        let is_failure =
            |line: &&str| line.contains("class=\"5xx\"") || line.contains("upstream_unavailable");
        text.lines().filter(is_failure).map(str::to_owned).collect()
    };
    assert_eq!(of_failures(&failures), of_failures(&world.scrape().await));
    assert_eq!(world.refused("model_not_found").await, 1 + 18);
    // The response for a model that is known not to exist has no Retry-After, and costs a token.
    let known = world.get_as(&customer, "/api/v1/models/nobody").await;
    assert_eq!((known.status, known.header("retry-after")), (404, ""));
}

#[tokio::test]
async fn any_number_of_known_models_is_fetched_at_once() {
    let world = World::new().await;
    let customer = world.paid().await;
    let targets: Vec<String> = (0..LISTED)
        .map(|number| format!("/api/v1/models/m{number}"))
        .collect();
    let responses = join_all(targets.iter().map(|target| world.get_as(&customer, target))).await;
    assert_eq!(count(&responses, 200), LISTED as usize);
    assert_eq!(
        world.backend.received().len(),
        LISTED as usize + 1,
        "each once, and one list"
    );
}

#[tokio::test]
async fn unknown_models_are_answered_from_a_complete_list() {
    let world = World::built_in().await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    let before = calls(&world).await;
    let responses = request_unknown_models(&world, &customer, 0).await;
    assert_eq!(count(&responses, 404), 200);
    for path in ["/api/v1/models/made-up/history", "/api/v1/drift/made-up"] {
        assert_eq!(
            world.get_as(&customer, path).await.code(),
            "model_not_found",
            "{path}"
        );
    }
    assert_eq!(calls(&world).await, before, "no upstream request was sent");
    assert_eq!(world.documents(), 1);
}

#[tokio::test]
async fn a_model_that_is_new_at_the_backend_is_known_after_its_refresh() {
    let world = World::new().await;
    let customer = world.paid().await;
    world.get_as(&customer, MODELS).await;
    for (target, status) in [
        ("/api/v1/models/probe", 200),
        ("/api/v1/models/atlas-2", 404),
    ] {
        assert_eq!(
            world.get_as(&customer, target).await.status,
            status,
            "{target}"
        );
    }
    world.backend.set_script(|received| {
        if received.target().contains("/models?") {
            return json(r#"{"generated_at":"2026-11-21T13:00:00Z","data":[{"id":"atlas-2"}]}"#);
        }
        good(received)
    });
    world.pass(Duration::from_hours(1));
    for target in ["/api/v1/models/probe-2", "/api/v1/models/atlas-2"] {
        assert_eq!(
            world.get_as(&customer, target).await.status,
            200,
            "{target}"
        );
    }
    assert_eq!(world.backend.count("/api/v1/models?"), 2);
}
