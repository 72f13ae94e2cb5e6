//! A site moves from a file to a database and back.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::*;
use crate::{MessageSubject, RowCounts, TransferError, conformance, maintenance};

/// A directory with a store file.
async fn file_store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    conformance::fill(&Store::open(directory.path()).unwrap()).await;
    directory
}

fn exported_file(directory: &Path) -> (PathBuf, RowCounts) {
    let path = directory.join("export.jsonl");
    let store = maintenance::file_in(directory);
    let mut out = std::fs::File::create(&path).unwrap();
    (path, maintenance::export(&store, &mut out, NOON).unwrap())
}

/// Commands that run at noon.
fn at_noon(config: &DatabaseConfig) -> DatabaseCommand {
    DatabaseCommand {
        config: config.clone(),
        clock: Clock::manual(NOON).0,
    }
}

async fn exported(config: &DatabaseConfig, closes: bool) -> StoreResult<(String, DatabaseExport)> {
    let mut out = Vec::new();
    let mut is_kept = false;
    let mut keep = || {
        is_kept = true;
        Ok(())
    };
    let done = at_noon(config).export(&mut out, &mut keep, closes).await?;
    assert!(is_kept);
    Ok((String::from_utf8(out).unwrap(), done))
}

/// The lines of an export, except the first and the last one.
fn records(export: &str) -> Vec<&str> {
    let lines: Vec<&str> = export.lines().collect();
    lines[1..lines.len() - 1].to_vec()
}

/// The records that an export contains in addition to an earlier export. All other records must be identical, byte by byte.
fn added<'e>(before: &str, after: &'e str) -> Vec<&'e str> {
    let before = records(before);
    let (same, added): (Vec<_>, Vec<_>) = records(after)
        .into_iter()
        .partition(|line| before.contains(line));
    assert_eq!(same, before);
    added
}

#[tokio::test]
async fn a_site_moves_from_a_file_to_a_database_and_back_without_loss() {
    needs!("postgresql");
    let directory = file_store().await;
    let (path, counts) = exported_file(directory.path());
    let config = prepared().await;
    let imported = command(&config).import(&path, "a test").await.unwrap();
    assert_eq!(imported, counts);
    let before = std::fs::read_to_string(&path).unwrap();
    let (after, _) = exported(&config, false).await.unwrap();
    let [last] = added(&before, &after)[..] else {
        panic!("{after}")
    };
    assert!(
        last.contains("import_store") && last.contains("export.jsonl"),
        "{last}"
    );

    // The imported database can be used, with the same day and units.
    let store = open(&config).await;
    assert_eq!(store.day().await.unwrap(), Some(NOON.day()));
    let mut found = conformance::applications(&store).await;
    found.sort_by_key(|application| application.granted);
    let units: Vec<u64> = found.iter().map(|found| found.granted).collect();
    assert_eq!(units, [0, 0, 20, 21, 22]);
    let id = found[2].id;
    let more = granted(&store, report(id, 9, NodeTotals::default(), 5)).await;
    assert_eq!(more.1, 25);
    created(&store).await;
    let posted = conformance::posted(&store, MessageSubject::Known(1)).await;
    assert_eq!(posted.id, 2);
    let requests = conformance::answered(id, 0);
    store.record_requests(9, requests).await.unwrap();

    let back = tempfile::tempdir().unwrap();
    let file = back.path().join("back.jsonl");
    let (here, _) = exported(&config, true).await.unwrap();
    std::fs::write(&file, &here).unwrap();
    let options = maintenance::ImportOptions::default();
    maintenance::import(back.path(), &file, &options, NOON).unwrap();
    let (path, _) = exported_file(back.path());
    let returned = std::fs::read_to_string(path).unwrap();
    let [last] = added(&here, &returned)[..] else {
        panic!("{returned}")
    };
    assert!(last.contains("back.jsonl"), "{last}");
}

#[tokio::test]
async fn an_export_that_closes_the_store_is_its_last_state() {
    needs!("postgresql");
    let config = prepared().await;
    let store = open_by_clock(&config).await;
    let id = created(&store).await;
    let mut out = Vec::new();
    let mut keep = || Err(io::Error::other("the disk is full"));
    let failed = at_noon(&config).export(&mut out, &mut keep, true).await;
    assert!(
        matches!(failed, Err(StoreError::Transfer(TransferError::File(_)))),
        "{failed:?}"
    );
    created(&store).await;

    let (_, done) = exported(&config, true).await.unwrap();
    assert_eq!(
        done.counts.of_table("applications"),
        2,
        "the failed attempt closed nothing"
    );
    assert!(done.closed.unwrap().ends_with("_closed_20251121t120000z"));
    assert!(store.change(creating(an_id())).await.is_err());
    assert!(store.exchange(asks(id, 5)).await.is_err());
    let reopened = refusal(&config).await;
    assert!(reopened.contains("it has no tables"), "{reopened}");
}

#[tokio::test]
async fn an_import_changes_nothing_unless_the_tables_are_empty_and_the_file_is_complete() {
    needs!("postgresql");
    let directory = file_store().await;
    let (path, _) = exported_file(directory.path());
    let whole = std::fs::read_to_string(&path).unwrap();
    let config = prepared().await;
    let import = || command(&config).import(&path, "a test");
    let wrong_id = whole.replacen("\"id\":\"app_", "\"id\":\"App_", 1);
    let changed = whole.replacen("Station 1", "Station 7", 1);
    for (text, reason) in [(wrong_id, "line 2: id"), (changed, "does not match")] {
        assert_ne!(text, whole);
        std::fs::write(&path, text).unwrap();
        let error = import().await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let empty = inspected(&config).await;
    assert_eq!((empty.applications, empty.audit), (0, 0));
    std::fs::write(&path, &whole).unwrap();
    import().await.unwrap();
    let again = import().await.unwrap_err().to_string();
    assert!(again.contains("holds 5 applications"), "{again}");
}

#[tokio::test]
async fn tables_of_a_later_release_are_not_exported_since_columns_would_be_lost() {
    needs!("postgresql");
    let config = prepared().await;
    prepare(&config, "UPDATE {schema}.site SET format = format + 1").await;
    let refused = exported(&config, true).await.unwrap_err();
    let format = i32::try_from(STEPS.len()).unwrap() + 1;
    assert!(
        matches!(refused, StoreError::Transfer(TransferError::Newer(found)) if found == format),
        "{refused:?}"
    );
    open_by_clock(&config).await;
}
