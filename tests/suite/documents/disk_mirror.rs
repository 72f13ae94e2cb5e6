//! The disk mirror of documents: after a restart the same documents are served, with or without a backend.

use std::{path::Path, sync::Arc, time::Duration};

use scoregate_store::Mirror;
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, respond},
    load_clients::{Reply, Wire, prepare},
    program::{Program, sql_on},
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
const ATLAS: &str = "/api/v1/models/atlas";
const INDEX: &str = "/api/v1/index";
const ALL: [&str; 3] = [MODELS, ATLAS, INDEX];
const HOUR: Duration = Duration::from_hours(1);

/// A gateway that has stored everything in `ALL`, whose backend then never responds again.
async fn with_unresponsive_backend(settings: &str) -> (World, Customer, Customer) {
    let world = World::with(settings, good).await;
    let [paid, free] = [world.paid().await, world.free().await];
    for target in ALL {
        assert_eq!(world.get_as(&paid, target).await.status, 200, "{target}");
    }
    world.backend.set_script(|_| Act::Hang);
    (world, paid, free)
}

#[tokio::test]
async fn after_a_restart_every_response_has_the_same_bytes_without_upstream_requests() {
    let (world, paid, free) = with_unresponsive_backend("").await;
    let mut before = Vec::new();
    for customer in [&paid, &free] {
        for target in ALL {
            before.push(world.get_as(customer, target).await);
        }
    }
    let already_received = world.backend.received().len();
    let world = world.restarted().await;
    assert_eq!(world.documents(), 3);
    let mut old = before.into_iter();
    for customer in [&paid, &free] {
        for target in ALL {
            let old = old.next().unwrap();
            let new = world.get_as(customer, target).await;
            assert_eq!((new.status, &new.body), (200, &old.body), "{target}");
            for name in ["etag", "last-modified", "cache-status", "cache-control"] {
                assert_eq!(new.header(name), old.header(name), "{target} {name}");
            }
        }
    }
    assert_eq!(world.backend.received().len(), already_received);
    assert_eq!(
        world
            .counted("scoregate_documents_served_total{outcome=\"hit\"}")
            .await,
        6
    );
}

#[tokio::test]
async fn a_restart_during_an_outage_changes_nothing_and_afterwards_each_document_is_fetched_once() {
    let (world, paid, _) = with_unresponsive_backend("freshness.probe = true").await;
    world.pass(12 * HOUR);
    let world = world.restarted().await;
    for target in ALL {
        let response = world.get_as(&paid, target).await;
        assert_eq!(
            response.header("cache-status"),
            "scoregate; hit; ttl=-39600; detail=stale",
            "{target}"
        );
    }
    world.pass(12 * HOUR);
    for target in ALL {
        assert!(
            world
                .get_as(&paid, target)
                .await
                .header("cache-status")
                .ends_with("detail=stale"),
            "{target}"
        );
    }
    world.backend.set_script(|received| {
        let body =
            r#"{"generated_at":"2026-11-22T12:00:00Z","data":[{"id":"atlas","currentScore":1}]}"#;
        assert!(!received.headers.iter().any(|(name, _)| name == "x-api-key"));
        respond("200 OK", &[("content-type", "application/json")], body)
    });
    let already_received = world.backend.received().len();
    world.pass(Duration::from_mins(1));
    world.backend.has_received(already_received + 3).await;
    world.settled().await;
    for target in ALL {
        let response = world.get_as(&paid, target).await;
        assert_eq!(response.json()["data"][0]["currentScore"], 1, "{target}");
    }
    assert_eq!(world.backend.received().len(), already_received + 3);
}

#[tokio::test]
async fn a_refresh_detected_before_a_restart_is_not_detected_again() {
    let world = World::with("freshness.probe = true", good).await;
    let paid = world.paid().await;
    for target in [MODELS, MODELS, INDEX] {
        assert_eq!(world.get_as(&paid, target).await.status, 200);
    }
    // The list was refreshed early, and the backend stops before any other fetch.
    world.backend.next(respond(
        "200 OK",
        &[],
        r#"[{"id":"atlas","currentScore":1}]"#,
    ));
    world
        .backend
        .set_script(|_| respond("503 Service Unavailable", &[], ""));
    let already_received = world.backend.received().len();
    world.pass(Duration::from_mins(5));
    world.backend.has_received(already_received + 2).await;
    world.settled().await;
    for _ in 0..2 {
        let response = world.get_as(&paid, INDEX).await;
        assert!(
            response.header("cache-status").ends_with("detail=stale"),
            "{}",
            response.header("cache-status")
        );
    }
    let world = world.restarted().await;
    let response = world.get_as(&paid, INDEX).await;
    assert!(
        response.header("cache-status").ends_with("detail=stale"),
        "{}",
        response.header("cache-status")
    );
}

#[tokio::test]
async fn a_hard_purge_removes_records_from_disk_before_it_responds() {
    for (hard, left) in [(true, 2), (false, 3)] {
        let (world, paid, _) =
            with_unresponsive_backend("admin.token = \"a-token-of-the-side-port\"").await;
        let body = format!(r#"{{"documents":"{ATLAS}","hard":{hard}}}"#);
        let purged = world
            .side(
                "POST",
                "/v1/cache/purge",
                &body,
                &[("Authorization", "Bearer a-token-of-the-side-port")],
            )
            .await;
        assert_eq!((purged.status, &purged.json()["purged"]), (200, &1.into()));
        assert_eq!(on_disk(world.directory.path()), left);
        let world = world.restarted_with_losses().await;
        assert_eq!(world.documents(), left as u64);
        if !hard {
            let response = world.get_as(&paid, ATLAS).await;
            assert!(
                response.header("cache-status").ends_with("detail=stale"),
                "{}",
                response.header("cache-status")
            );
        }
    }
}

#[tokio::test]
async fn documents_of_another_backend_are_never_served() {
    let (world, paid, _) = with_unresponsive_backend("").await;
    let directory = Arc::clone(&world.directory);
    world.running.stop().await;
    let backend = Backend::start(|_| respond("503 Service Unavailable", &[], "")).await;
    let world = World::with_backend("", backend, directory).await;
    assert_eq!(world.documents(), 0);
    assert_eq!(world.get_as(&paid, MODELS).await.status, 503);
}

#[tokio::test]
async fn documents_of_a_damaged_file_are_fetched_again_and_the_file_is_counted() {
    let (world, paid, _) = with_unresponsive_backend("").await;
    let directory = Arc::clone(&world.directory);
    let World { backend, .. } = world;
    world.running.stop().await;
    let list = backend.count("/api/v1/models?");
    let file = directory.path().join(Mirror::NAME);
    let damage = "UPDATE contents SET content = CAST(replace(content, 'atlas', 'Atlas') AS BLOB)";
    sql_on(&file, damage).unwrap();
    backend.set_script(good);
    let world = World::with_backend("", backend, directory).await;
    assert_eq!(world.documents(), 0);
    for target in ALL {
        assert_eq!(world.get_as(&paid, target).await.status, 200, "{target}");
    }
    assert_eq!(world.backend.count("/api/v1/models?"), list + 1);
    let failures = world.counted("scoregate_disk_mirror_failures_total").await;
    assert_eq!(failures, 1);
    let world = world.restarted().await;
    assert_eq!(world.documents(), 3);
}

#[tokio::test]
async fn a_disk_mirror_that_cannot_be_opened_does_not_stop_the_server() {
    let world = World::with("", good).await;
    let directory = Arc::clone(&world.directory);
    let World { backend, .. } = world;
    world.running.stop().await;
    let file = directory.path().join(Mirror::NAME);
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let world = World::with_backend("", backend, directory).await;
    let paid = world.paid().await;
    for target in ALL {
        assert_eq!(world.get_as(&paid, target).await.status, 200, "{target}");
    }
    let world = world.restarted().await;
    assert_eq!(world.documents(), 0);
}

#[tokio::test]
async fn an_hour_with_a_restart_causes_at_most_twice_the_upstream_requests_of_one_without() {
    let hour = async |restarts: bool| {
        let mut world = World::with("freshness.probe = true", good).await;
        let paid = world.paid().await;
        for target in ALL {
            world.get_as(&paid, target).await;
        }
        let before = world.backend.received().len();
        for minute in 0..60 {
            world.pass(Duration::from_mins(1));
            world.settled().await;
            if restarts && minute % 20 == 10 {
                world = world.restarted().await;
            }
            for target in ALL {
                assert_eq!(world.get_as(&paid, target).await.status, 200);
            }
        }
        world.settled().await;
        world.backend.received().len() - before
    };
    let steady = hour(false).await;
    let restarted = hour(true).await;
    assert!(
        steady > 12 && restarted <= 2 * steady,
        "{steady} {restarted}"
    );
}

/// Number of records on disk.
fn on_disk(directory: &Path) -> usize {
    let count = sql_on(
        &directory.join(Mirror::NAME),
        "SELECT count(*) FROM documents",
    );
    count.map_or(0, |count| count.trim().parse().unwrap())
}

#[test]
fn documents_of_a_killed_process_are_served_by_the_next_without_a_backend() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = runtime.block_on(Backend::start(good));
    let directory = TempDir::new().unwrap();
    let url = backend.url();
    let environment = [("SCOREGATE_UPSTREAM_URL", url.as_str())];
    let load_clients = prepare(directory.path(), &[("pro", 1_000)]);
    let key = &load_clients[0].key;
    let program = Program::serve(directory.path(), &environment);
    let already_received = |public| {
        ALL.map(
            |target| match Wire::open(public).unwrap().get(target, key) {
                Reply::Response { status, body, .. } => (status, body),
                lost @ (Reply::NoResponse | Reply::Partial) => panic!("{target}: {lost:?}"),
            },
        )
    };
    let before = already_received(program.public());
    while on_disk(directory.path()) < ALL.len() {
        std::thread::yield_now();
    }
    program.signal("KILL");
    program.end();
    runtime.shutdown_background();
    let program = Program::serve(directory.path(), &environment);
    assert_eq!(already_received(program.public()), before);
    assert!(before.iter().all(|(status, _)| *status == 200));
    program.stop().with(0);
}
