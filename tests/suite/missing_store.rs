//! A store whose file is missing: at a start, and under a server that runs.

use std::fs;
use std::path::Path;
use std::time::Duration;

use scoregate::accounts::NewApplication;
use scoregate::store::{Embedded, OwnLimits};
use tempfile::TempDir;

use crate::balances::own;
use crate::shell::{BUILT_IN, Keys, Program, run};
use crate::world::World;

const MODELS: &str = "/api/v1/models?period=24h";
/// So long a loss may go unnoticed.
const NOTICED: Duration = Duration::from_secs(5);

fn store(directory: &Path) -> std::path::PathBuf {
    directory.join(Embedded::FILE_NAME)
}

/// A start that is refused.
fn refused(directory: &Path) -> crate::shell::Ended {
    let program = Program::serve(directory, &BUILT_IN);
    assert_eq!(program.ports_if_any(), None, "it serves");
    program.end().0.with(2)
}

#[test]
fn a_missing_store_is_refused_at_the_start_and_a_new_one_needs_a_command() {
    let directory = TempDir::new().unwrap();
    let (path, place) = (directory.path(), ["--data-dir", directory.path().to_str().unwrap()]);
    Keys(path).create("pro");
    let running = Program::serve(path, &BUILT_IN);
    running.public();
    running.stop().with(0);
    fs::remove_file(store(path)).unwrap();
    let refused = refused(path);
    assert!(refused.err.contains("the file is missing"), "{}", refused.err);
    assert!(refused.err.contains("scoregate store new --data-dir"), "{}", refused.err);
    assert!(!store(path).exists());
    // Neither does a command make one by the way.
    let created = Keys(path).run(&["create", "--name", "One", "--tier", "pro"]).with(2);
    assert!(created.err.contains("the file is missing"), "{}", created.err);
    assert!(!store(path).exists());
    let new = || run(&[&["store", "new"][..], &place].concat());
    new().with(0);
    assert!(new().with(1).err.contains("a new one is made only where it is missing"));
    let running = Program::serve(path, &BUILT_IN);
    running.public();
    running.stop().with(0);
    assert_eq!(Keys(path).json(&["list"])["applications"], serde_json::json!([]));
}

#[test]
fn a_missing_store_is_refused_in_a_directory_that_an_older_version_wrote() {
    let directory = TempDir::new().unwrap();
    let documents = directory.path().join("documents");
    fs::create_dir(&documents).unwrap();
    fs::write(documents.join("one"), "a stored document").unwrap();
    let refused = refused(directory.path());
    assert!(refused.err.contains("`documents` shows that there was one"), "{}", refused.err);
}

fn another() -> NewApplication {
    let own = OwnLimits::default();
    NewApplication {
        name: "another".into(),
        tier: "pro".into(),
        own,
        contact: None,
        note: None,
        expires_at: None,
    }
}

async fn notices(world: &World, misplaced: u32) {
    world.pass(NOTICED);
    while world.counted("scoregate_store_misplaced").await != misplaced {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_store_moved_under_a_running_server_is_noticed_refuses_changes_and_is_used_again_when_it_is_back() {
    let world = World::new().await;
    let pro = world.customer_with("pro", own(1_000, 300)).await;
    let free = world.customer_with("free", own(1_000, 300)).await;
    for customer in [&pro, &free] {
        assert_eq!(world.asks(customer, MODELS).await.status, 200);
    }
    let (file, away) = (store(world.directory.path()), world.directory.path().join("elsewhere"));
    fs::rename(&file, &away).unwrap();
    notices(&world, 1).await;
    let refused = world.running.registrar.create("test", another()).await.unwrap_err();
    assert!(refused.to_string().contains("is missing while the server was running"), "{refused}");
    let mut served = 0;
    while world.asks(&pro, MODELS).await.status == 200 {
        served += 1;
    }
    assert!((3..10).contains(&served), "what is leased and grace: {served}");
    while world.asks(&free, MODELS).await.status == 200 {}
    assert_eq!(world.counted("scoregate_ledger_away").await, 1);
    // Another store under the name is not ours either.
    fs::copy(&away, &file).unwrap();
    let refused = world.running.registrar.create("test", another()).await.unwrap_err();
    assert!(refused.to_string().contains("was replaced by another file"), "{refused}");
    fs::rename(&away, &file).unwrap();
    notices(&world, 0).await;
    world.running.registrar.create("test", another()).await.unwrap();
    assert_eq!(world.asks(&free, MODELS).await.status, 200);
    assert_eq!(world.running.registrar.list(None, 10).await.unwrap().applications.len(), 3);
}
