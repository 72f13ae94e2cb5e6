//! Last uses of many keys, written between leases.

use std::path::Path;

use futures_util::future::join_all;
use tempfile::TempDir;

use crate::registry::test_gateway::{ChangingGateway, NOON};
use scoregate_base::keys::{ApplicationId, Digest};
use scoregate_store::{Store, StoreChange, StoredKey, sample};

const KEYS: usize = 2_000;

fn digest(number: usize) -> Digest {
    Digest::of(&number.to_string())
}

fn creating(number: usize) -> StoreChange {
    let key = StoredKey {
        created_at: NOON,
        ..sample::key(&number.to_string())
    };
    let what = sample::creation("free", key);
    StoreChange {
        at: NOON,
        who: "test".into(),
        owner: None,
        application: ApplicationId::mint().unwrap(),
        what,
        notice: None,
    }
}

/// Number of pages written since the log was empty.
fn written_pages(directory: &Path) -> u64 {
    let log = directory.join(format!("{}-wal", Store::FILE_NAME));
    let header = 32;
    let frame = 24 + 4_096;
    (std::fs::metadata(log)
        .map_or(0, |found| found.len())
        .max(header)
        - header)
        / frame
}

#[tokio::test]
async fn last_uses_are_written_a_few_at_a_time_and_each_page_a_few_times() {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let created = join_all((0..KEYS).map(|number| store.change(creating(number)))).await;
    assert!(created.iter().all(Result::is_ok));
    drop(store); // empties the log
    let gateway = ChangingGateway::loaded(&directory).await;
    let store = &gateway.store;
    let keys = &gateway.keys;
    for number in 0..KEYS {
        let digest = digest(number);
        keys.mark_used(&digest, &keys.find(&digest).unwrap(), NOON);
    }
    let commits = store.commits();
    let pages = written_pages(directory.path());
    gateway.keeper.store_uses(0).await;
    let commits = store.commits() - commits;
    let pages = written_pages(directory.path()) - pages;
    // A lease waits for at most one of these transactions.
    assert_eq!(commits, KEYS as u64 / 100);
    assert!(pages < 2 * KEYS as u64 / 10, "{pages} pages");
    let used = gateway.registrar.list(None, KEYS).await.unwrap();
    assert!(
        used.applications
            .iter()
            .all(|one| one.keys[0].last_used_at == Some(NOON))
    );
}
