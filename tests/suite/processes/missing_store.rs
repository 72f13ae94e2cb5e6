//! A missing store file: at a start, and under a running server.

use std::{fs, path::Path, time::Duration};

use scoregate::registry::NewApplication;
use scoregate_store::Store;
use tempfile::TempDir;

use crate::{
    balances::own,
    program::{BUILT_IN, Keys, Program, run},
    world::World,
};

const MODELS: &str = "/api/v1/models?period=24h";
/// The lock file of a data directory.
const LOCK: &str = "scoregate.lock";
/// Time limit until a loss is detected.
const DETECTION_LIMIT: Duration = Duration::from_secs(5);

fn store(directory: &Path) -> std::path::PathBuf {
    directory.join(Store::FILE_NAME)
}

/// A start that fails.
fn failing_start(directory: &Path) -> crate::program::CommandOutput {
    let program = Program::serve(directory, &BUILT_IN);
    assert_eq!(program.ports_if_any(), None, "it serves");
    program.end().0.with(2)
}

#[test]
fn a_missing_store_fails_the_start_and_a_new_one_needs_a_command() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let data_dir = ["--data-dir", directory.path().to_str().unwrap()];
    Keys(path).create("pro");
    let running = Program::serve(path, &BUILT_IN);
    running.public();
    running.stop().with(0);
    fs::remove_file(store(path)).unwrap();
    let failing_start = failing_start(path);
    assert!(
        failing_start.err.contains("the file is missing"),
        "{}",
        failing_start.err
    );
    assert!(
        failing_start
            .err
            .contains("scoregate store init --data-dir"),
        "{}",
        failing_start.err
    );
    assert!(!store(path).exists());
    // Other commands do not create a store either.
    let created = Keys(path)
        .run(&["create", "--name", "One", "--tier", "pro"])
        .with(2);
    assert!(
        created.err.contains("the file is missing"),
        "{}",
        created.err
    );
    assert!(!store(path).exists());
    let new = || run(&[&["store", "init"][..], &data_dir].concat());
    new().with(0);
    assert!(new().with(1).err.contains("move it away first"));
    let running = Program::serve(path, &BUILT_IN);
    running.public();
    running.stop().with(0);
    assert_eq!(
        Keys(path).json(&["list"])["applications"],
        serde_json::json!([])
    );
}

#[test]
fn a_first_start_that_fails_before_creating_a_store_leaves_no_trace() {
    let directory = TempDir::new().unwrap();
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = used.local_addr().unwrap().to_string();
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
    ];
    let failed = Program::start(
        &[&arguments[..], &[directory.path().to_str().unwrap()]].concat(),
        &BUILT_IN,
    );
    assert_eq!(failed.ports_if_any(), None);
    let (failed, _) = failed.end();
    assert!(failed.err.contains("cannot be opened"), "{}", failed.err);
    assert!(directory.path().join(LOCK).exists() && !store(directory.path()).exists());
    let running = Program::serve(directory.path(), &BUILT_IN);
    running.public();
    running.stop().with(0);
}

fn another() -> NewApplication {
    NewApplication {
        name: "another".into(),
        tier: "pro".into(),
        ..NewApplication::default()
    }
}

async fn wait_for_detection(world: &World, missing: u32) {
    world.pass(DETECTION_LIMIT);
    while world.counted("scoregate_store_file_invalid").await != missing {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_store_moved_under_a_running_server_rejects_changes_until_it_is_back() {
    let world = World::new().await;
    let pro = world.customer_with("pro", own(1_000, 300)).await;
    let free = world.customer_with("free", own(1_000, 300)).await;
    for customer in [&pro, &free] {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
    let file = store(world.directory.path());
    let away = world.directory.path().join("elsewhere");
    fs::rename(&file, &away).unwrap();
    wait_for_detection(&world, 1).await;
    let failing_start = world
        .running
        .registrar
        .create("test", another())
        .await
        .unwrap_err();
    assert!(
        failing_start
            .to_string()
            .contains("is missing while the server was running"),
        "{failing_start}"
    );
    let mut served = 0;
    while world.get_as(&pro, MODELS).await.status == 200 {
        served += 1;
    }
    assert!(
        (3..10).contains(&served),
        "leased units and grace: {served}"
    );
    while world.get_as(&free, MODELS).await.status == 200 {}
    assert_eq!(world.counted("scoregate_ledger_unreachable").await, 1);
    // A different store file with the same name is rejected too.
    fs::copy(&away, &file).unwrap();
    let failing_start = world
        .running
        .registrar
        .create("test", another())
        .await
        .unwrap_err();
    assert!(
        failing_start
            .to_string()
            .contains("was replaced by another file"),
        "{failing_start}"
    );
    fs::rename(&away, &file).unwrap();
    wait_for_detection(&world, 0).await;
    world
        .running
        .registrar
        .create("test", another())
        .await
        .unwrap();
    assert_eq!(world.get_as(&free, MODELS).await.status, 200);
    assert_eq!(
        world
            .running
            .registrar
            .list(None, 10)
            .await
            .unwrap()
            .applications
            .len(),
        3
    );
}
