//! A site moves from a file to a database and back.

use std::io;
use std::path::{Path, PathBuf};

use super::hidden_history::execute;
use super::*;
use crate::{
    Embedded, MessageSubject, OwnerQuery, OwnerStore as _, RequestQuery, RequestStore as _,
    RowCounts, StatusStore as _, TransferError, conformance, maintenance,
};

/// A directory with a store file.
async fn file_store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    conformance::fill(&Embedded::open(directory.path()).unwrap()).await;
    directory
}

fn exported_file(directory: &Path) -> (PathBuf, RowCounts) {
    let path = directory.join("export.jsonl");
    let store = maintenance::file_in(directory);
    let mut out = std::fs::File::create(&path).unwrap();
    (path, maintenance::export(&store, &mut out, NOON).unwrap())
}

async fn exported(
    config: &DatabaseConfig,
    closes: bool,
) -> Result<(String, DatabaseExport), TransferError> {
    let mut out = Vec::new();
    let mut is_kept = false;
    let mut keep = || {
        is_kept = true;
        Ok(())
    };
    let clock = Clock::manual(NOON).0;
    let done = PostgresStore::export(config.clone(), clock, &mut out, &mut keep, closes).await?;
    assert!(is_kept);
    Ok((String::from_utf8(out).unwrap(), done))
}

/// The lines of an export, without the first and the last one.
fn records(export: &str) -> Vec<&str> {
    let lines: Vec<&str> = export.lines().collect();
    lines[1..lines.len() - 1].to_vec()
}

#[tokio::test]
async fn a_site_moves_from_a_file_to_a_database_and_back_without_loss() {
    needs!("postgresql");
    let directory = file_store().await;
    let (path, counts) = exported_file(directory.path());
    let config = config();
    create_tables(config.clone()).await;
    let imported = PostgresStore::import(config.clone(), Clock::system(), &path, "a test")
        .await
        .unwrap();
    assert_eq!(imported, counts);
    for (table, rows) in [
        ("applications", 5),
        ("ledger_days", 3),
        ("request_nodes", 12),
        ("status_minutes", 6),
        ("status_messages", 1),
        ("owners", 2),
        ("owned_applications", 2),
    ] {
        assert_eq!(counts.of_table(table), rows, "{table}");
    }

    let before = std::fs::read_to_string(&path).unwrap();
    let (after, _) = exported(&config, false).await.unwrap();
    let (last, same): (Vec<_>, Vec<_>) = records(&after)
        .into_iter()
        .partition(|line| line.contains("import_store"));
    assert_eq!(same, records(&before), "byte by byte");
    let [last] = last[..] else { panic!("{last:?}") };
    assert!(last.contains("export.jsonl"), "{last}");

    // It can be used, with the same day and units.
    let store = PostgresStore::open_with(config.clone(), Clock::system(), true)
        .await
        .unwrap();
    assert_eq!(store.day().await.unwrap(), Some(NOON.day()));
    let mut page = store.page(None, 10, NOON.day()).await.unwrap();
    page.applications
        .sort_by_key(|application| application.granted);
    let units: Vec<u64> = page
        .applications
        .iter()
        .map(|application| application.granted)
        .collect();
    assert_eq!(units, [0, 0, 20, 21, 22]);
    let id = page.applications[2].id;
    let more = granted(&store, report(id, 9, NodeTotals::default(), 5)).await;
    assert_eq!(more.1, 25);
    let all_owners = OwnerQuery {
        limit: 9,
        ..OwnerQuery::default()
    };
    let owners = store.owners(all_owners.clone()).await.unwrap();
    assert_eq!(
        owners
            .iter()
            .map(|owner| owner.applications.len())
            .sum::<usize>(),
        2
    );
    store.change(creation()).await.unwrap();
    let posted = conformance::posted(&store, MessageSubject::Known(1)).await;
    assert_eq!(posted.id, 2);
    let all = RequestQuery {
        application: id,
        first: NOON.day(),
        last: NOON.day(),
    };
    let moved_here = store.requests(all).await.unwrap().sum();
    store
        .record_requests(9, conformance::answered(id, 0))
        .await
        .unwrap();

    let back = tempfile::tempdir().unwrap();
    let file = back.path().join("back.jsonl");
    std::fs::write(&file, exported(&config, true).await.unwrap().0).unwrap();
    maintenance::import(
        back.path(),
        &file,
        &maintenance::ImportOptions::default(),
        NOON,
    )
    .unwrap();
    let moved = Embedded::open(back.path()).unwrap();
    let page = moved.page(None, 10, NOON.day()).await.unwrap();
    assert_eq!(
        page.applications
            .iter()
            .map(|application| application.granted)
            .sum::<u64>(),
        63 + 5
    );
    assert_eq!(moved.status_messages(10).await.unwrap().len(), 2);
    assert_eq!(moved.owners(all_owners).await.unwrap(), owners);
    let requests = moved.requests(all).await.unwrap().sum();
    assert!(moved_here.ok >= 20, "{moved_here:?}");
    let more = (moved_here.ok + 10, moved_here.rate_limited + 1);
    assert_eq!((requests.ok, requests.rate_limited), more);
}

#[tokio::test]
async fn an_export_that_closes_the_store_is_its_last_state() {
    needs!("postgresql");
    let config = config();
    create_tables(config.clone()).await;
    let store = PostgresStore::open(config.clone(), Clock::system())
        .await
        .unwrap();
    let id = created(&store).await;
    let mut out = Vec::new();
    let clock = Clock::manual(NOON).0;
    let mut keep = || Err(io::Error::other("the disk is full"));
    let failed = PostgresStore::export(config.clone(), clock, &mut out, &mut keep, true).await;
    assert!(matches!(failed, Err(TransferError::File(_))), "{failed:?}");
    created(&store).await;

    let (_, done) = exported(&config, true).await.unwrap();
    assert_eq!(
        done.counts.of_table("applications"),
        2,
        "the failed attempt closed nothing"
    );
    assert!(done.closed.unwrap().ends_with("_closed_20251121t120000z"));
    assert!(store.change(creation()).await.is_err());
    assert!(
        store
            .exchange(report(id, 1, NodeTotals::default(), 5))
            .await
            .is_err()
    );
    let reopened = PostgresStore::open(config, Clock::system())
        .await
        .err()
        .unwrap();
    assert!(
        reopened.to_string().contains("it has no tables"),
        "{reopened}"
    );
}

#[tokio::test]
async fn an_import_changes_nothing_unless_the_tables_are_empty_and_the_file_is_complete() {
    needs!("postgresql");
    let directory = file_store().await;
    let (path, _) = exported_file(directory.path());
    let whole = std::fs::read_to_string(&path).unwrap();
    let config = config();
    create_tables(config.clone()).await;
    let import = || PostgresStore::import(config.clone(), Clock::system(), &path, "a test");
    let without_end: String = whole.split_inclusive('\n').take(5).collect();
    let wrong_id = whole.replacen("\"id\":\"app_", "\"id\":\"App_", 1);
    let changed = whole.replacen("Station 1", "Station 7", 1);
    for (text, reason) in [
        (without_end, "line 6"),
        (wrong_id, "line 2: id"),
        (changed, "does not match"),
    ] {
        assert_ne!(text, whole);
        std::fs::write(&path, text).unwrap();
        let error = import().await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    let empty = PostgresStore::inspect(config.clone(), Clock::system())
        .await
        .unwrap();
    assert_eq!((empty.applications, empty.audit), (0, 0));
    std::fs::write(&path, &whole).unwrap();
    import().await.unwrap();
    let again = import().await.unwrap_err().to_string();
    assert!(again.contains("holds 5 applications"), "{again}");
}

#[tokio::test]
async fn tables_of_a_later_release_are_not_exported_since_columns_would_be_lost() {
    needs!("postgresql");
    let config = config();
    create_tables(config.clone()).await;
    execute(&config, "UPDATE {schema}.site SET format = format + 1").await;
    let refused = exported(&config, true).await.unwrap_err();
    let format = i32::try_from(STEPS.len()).unwrap() + 1;
    assert!(
        matches!(refused, TransferError::Newer(found) if found == format),
        "{refused:?}"
    );
    PostgresStore::open(config, Clock::system()).await.unwrap();
}
