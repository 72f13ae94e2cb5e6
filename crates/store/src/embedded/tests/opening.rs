//! Opening a file: creation, rejection, migration, and files that are left unchanged.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn file_and_directory_are_private() {
    let above = TempDir::new().unwrap();
    let directory = above.path().join("new").join("data");
    let store = Store::open(&directory).unwrap();
    wait(created(&store));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn a_new_store_with_changes_left_in_its_log_is_an_error() {
    let directory = TempDir::new().unwrap();
    let store = file::make_at(&file(&directory), STEPS).unwrap();
    store.busy_timeout(std::time::Duration::ZERO).unwrap();
    let reader = Connection::open(file(&directory)).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM owners")
        .unwrap();
    store
        .execute("UPDATE calendar SET day = '2025-11-21'", [])
        .unwrap();
    let left = file::close_new(store, &file(&directory)).unwrap_err();
    assert!(format!("{left:?}").contains("write-ahead log"), "{left:?}");
}

#[test]
fn newer_file_is_refused_and_unchanged() {
    let (directory, store) = fresh();
    drop(store);
    // The newer format is in the log, as after a crash. It must not be checkpointed.
    let by_hand = Connection::open(file(&directory)).unwrap();
    by_hand
        .pragma_update(None, "user_version", newer_format())
        .unwrap();
    let left = crashed(&directory);
    let before = fs::read(file(&left)).unwrap();
    let refused = refusal(left.path());
    assert!(
        matches!(refused, StoreError::Newer { found, .. } if found == newer_format()),
        "{refused}"
    );
    assert_eq!(fs::read(file(&left)).unwrap(), before);
    assert!(
        fs::metadata(left.path().join("scoregate.db-wal"))
            .unwrap()
            .len()
            > 0
    );
}

#[test]
fn a_foreign_file_is_reported_and_unchanged() {
    let (other, store) = fresh();
    drop(store);
    fs::remove_file(file(&other)).unwrap();
    edit(&other, "CREATE TABLE recipes (name TEXT)");
    let recipes = fs::read(file(&other)).unwrap();
    for foreign in [b"dear diary, ".repeat(1_000), recipes] {
        let (directory, store) = fresh();
        drop(store);
        fs::write(file(&directory), &foreign).unwrap();
        let refused = refusal(directory.path());
        let StoreError::Damaged { path, .. } = &refused else {
            panic!("{refused}")
        };
        assert_eq!(*path, file(&directory).display().to_string());
        assert!(fs::read(file(&directory)).unwrap() == foreign);
    }
}

#[tokio::test]
async fn upgrade_keeps_the_content_and_a_complete_backup() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    drop(store);
    let next = [STEPS, &["ALTER TABLE applications ADD COLUMN colour TEXT"]].concat();
    let path = file(&directory);
    let (writer, _reader) = file::open_steps(directory.path(), &path, &next).unwrap();
    let colour: Option<String> = writer
        .query_row("SELECT colour FROM applications", [], |row| row.get(0))
        .unwrap();
    assert_eq!(colour, None);
    assert!(
        matches!(refusal(directory.path()), StoreError::Newer { found, .. } if found == newer_format())
    );

    let backup = directory
        .path()
        .join(format!("scoregate.db.v{}.bak", newer_format() - 1));
    assert_eq!(
        fs::metadata(&backup).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let restored = TempDir::new().unwrap();
    fs::copy(&backup, file(&restored)).unwrap();
    assert_eq!(found(&opened(&restored), id).await.id, id);
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let (directory, store) = fresh();
    drop(store);
    let next = [STEPS, &["CREATE TABLE half (a TEXT)"], &["CREATE TABEL"]].concat();
    file::open_steps(directory.path(), &file(&directory), &next)
        .map(drop)
        .unwrap_err();
    drop(Store::open(directory.path()).unwrap());
}

#[test]
fn a_statement_is_not_compiled_again_for_other_values() {
    let directory = TempDir::new().unwrap();
    let connection = file::make_at(&file(&directory), STEPS).unwrap();
    let mut outdated = connection
        .prepare("SELECT day FROM ledger_days ORDER BY day LIMIT ?1")
        .unwrap();
    for limit in [1, 8] {
        outdated.exists([limit]).unwrap();
    }
    assert_eq!(outdated.get_status(rusqlite::StatementStatus::RePrepare), 0);
}
