//! Purging documents: the selected ones are fetched again, and a fetch already in flight does not count as new.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    backend::json as json_response,
    client::Response,
    program::{BUILT_IN, Keys, Program, ProgramClient, run},
    world::{Customer, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const SPEED: &str = "/api/v1/models?period=24h&sortBy=speed";
const ATLAS: &str = "/api/v1/models/atlas";
const TOKEN: &str = "a-token-of-the-side-port";

/// A gateway whose backend increments a number in every response.
async fn counting() -> (World, Customer) {
    let number = AtomicU64::new(0);
    let world = World::with("admin.token = \"a-token-of-the-side-port\"", move |_| {
        let score = number.fetch_add(1, Ordering::Relaxed) + 1;
        json_response(&format!(
            r#"{{"data":[{{"id":"atlas","currentScore":{score}}}]}}"#
        ))
    });
    let world = world.await;
    let customer = world.paid().await;
    (world, customer)
}

fn score(response: &Response) -> u64 {
    response.json()["data"][0]["currentScore"].as_u64().unwrap()
}

async fn purge(world: &World, body: &Value) -> Response {
    let bearer = format!("Bearer {TOKEN}");
    world
        .side(
            "POST",
            "/v1/cache/purge",
            &body.to_string(),
            &[("Authorization", &bearer)],
        )
        .await
}

async fn purged(world: &World, documents: &str, hard: bool) -> u64 {
    let response = purge(world, &json!({"documents": documents, "hard": hard})).await;
    assert_eq!(response.status, 200, "{documents}");
    response.json()["purged"].as_u64().unwrap()
}

#[tokio::test]
async fn a_soft_purge_serves_documents_as_stale_while_they_are_refreshed() {
    let (world, customer) = counting().await;
    world.get_as(&customer, MODELS).await;
    assert_eq!(purged(&world, MODELS, false).await, 1);
    let stale = world.get_as(&customer, MODELS).await;
    assert_eq!(
        (score(&stale), stale.header("cache-status")),
        (1, "scoregate; hit; ttl=0; detail=stale")
    );
    world.fetched(2).await;
    let fresh = world.get_as(&customer, MODELS).await;
    assert_eq!(score(&fresh), 2);
    assert!(
        fresh
            .header("cache-status")
            .starts_with("scoregate; hit; ttl=3600"),
        "{:?}",
        fresh.header("cache-status")
    );
}

#[tokio::test]
async fn a_hard_purge_removes_exactly_the_selected_documents() {
    let (world, customer) = counting().await;
    for (documents, removed) in [
        (SPEED, &[SPEED][..]),
        (MODELS, &[MODELS, SPEED]),
        ("/api/v1/models", &[MODELS, SPEED]),
        ("/api/v1/models/:id", &[ATLAS]),
        ("/api/v1/models/atlas", &[ATLAS]),
        ("/api/v1/models/other", &[]),
        ("all", &[MODELS, SPEED, ATLAS]),
    ] {
        for target in [MODELS, SPEED, ATLAS] {
            assert_eq!(world.get_as(&customer, target).await.status, 200);
        }
        assert_eq!(
            purged(&world, documents, true).await,
            removed.len() as u64,
            "{documents}"
        );
        for target in [MODELS, SPEED, ATLAS] {
            let response = world.get_as(&customer, target).await;
            let is_gone = response.header("cache-status").contains("fwd=miss");
            assert_eq!(is_gone, removed.contains(&target), "{documents}: {target}");
        }
    }
}

#[tokio::test]
async fn a_fetch_that_began_before_a_purge_is_not_stored() {
    for hard in [true, false] {
        let (world, customer) = counting().await;
        world.backend.hold();
        let (before, after) = tokio::join!(world.get_as(&customer, MODELS), async {
            world.backend.has_received(1).await;
            assert_eq!(purged(&world, "all", hard).await, 0);
            let (after, ()) = tokio::join!(world.get_as(&customer, MODELS), async {
                world.backend.has_received(2).await;
                world.backend.open();
            });
            after
        });
        assert_eq!(
            (score(&before), score(&after)),
            (1, 2),
            "each request gets the data of its own fetch"
        );
        world.settled().await;
        let stored = world.get_as(&customer, MODELS).await;
        assert_eq!((score(&stored), world.backend.received().len()), (2, 2));
    }
}

#[tokio::test]
async fn a_purge_clears_the_negative_cache() {
    let (world, customer) = counting().await;
    world
        .backend
        .next(crate::backend::respond("404 Not Found", &[], ""));
    for _ in 0..2 {
        assert_eq!(
            world.get_as(&customer, ATLAS).await.code(),
            "model_not_found"
        );
    }
    purged(&world, ATLAS, false).await;
    assert_eq!(world.get_as(&customer, ATLAS).await.status, 200);
}

#[tokio::test]
async fn every_document_that_the_command_line_lists_can_be_purged() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_str().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let (_, key) = Keys(directory.path()).create("pro");
    for target in [
        MODELS,
        "/api/v1/incidents?limit=7&period=7d",
        "/api/v1/alerts",
        "/api/v1/models?sortBy=7axis",
    ] {
        assert_eq!(client.get(target, &key).send().await.status, 200);
    }
    let cache =
        |arguments: &[&str]| run(&[&["cache"], arguments, &["--data-dir", path]].concat()).with(0);
    let table = cache(&["list"]).out;
    let documents: Vec<&str> = table
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(documents.len(), 4, "{table}");
    for (purged, document) in documents.iter().enumerate() {
        assert_eq!(
            cache(&["purge", document, "--hard"]).out,
            "purged: 1\n",
            "{document}"
        );
        let left = cache(&["list", "--json"]).json();
        assert_eq!(
            left["documents"].as_array().map(Vec::len),
            Some(3 - purged),
            "{document}"
        );
    }
    program.stop().with(0);
}

#[tokio::test]
async fn the_command_line_lists_and_purges_on_a_running_server_and_fails_on_a_stopped_one() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().to_str().unwrap();
    let (_, key) = Keys(directory.path()).create("pro");
    let cache = |arguments: &[&str]| run(&[&["cache"], arguments, &["--data-dir", path]].concat());
    assert!(cache(&["list"]).with(1).err.contains("running server"));
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    for target in [MODELS, "/api/v1/index"] {
        assert_eq!(client.get(target, &key).send().await.status, 200);
    }
    let listed = cache(&["list"]).with(0).out;
    assert!(
        listed.contains("/api/v1/models?period=24h&sortBy=combined")
            && listed.contains("/api/v1/index")
    );
    assert_eq!(
        cache(&["purge", "/api/v1/index", "--hard"]).with(0).out,
        "purged: 1\n"
    );
    let left = cache(&["list", "--json"]).with(0).json();
    assert_eq!(left["documents"].as_array().map(Vec::len), Some(1));
    assert!(
        cache(&["purge", "everything"])
            .with(1)
            .err
            .contains("write `all`")
    );
    program.stop().with(0);
}
