//! Opening a file: creation, rejection, migration, and files left alone.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use scoregate_base::limits::GraceClaim;

#[test]
fn file_and_directory_are_private() {
    let above = TempDir::new().unwrap();
    let directory = above.path().join("new").join("data");
    let store = Embedded::open(&directory).unwrap();
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
    let store = file::make_at(&file(&directory), schema::STEPS).unwrap();
    store.busy_timeout(std::time::Duration::ZERO).unwrap();
    let reader = Connection::open(file(&directory)).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM owners")
        .unwrap();
    store
        .execute("INSERT INTO calendar VALUES ('2025-11-21')", [])
        .unwrap();
    let left = file::close_new(store, &file(&directory)).unwrap_err();
    assert!(format!("{left:?}").contains("write-ahead log"), "{left:?}");
}

#[test]
fn newer_file_is_refused_and_unchanged() {
    let (directory, store) = fresh();
    drop(store);
    edit(
        &directory,
        &format!("PRAGMA user_version = {}", newer_format()),
    );
    // The newer format is in the log, as after a crash: it must not be checkpointed either.
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
fn damaged_or_foreign_file_is_reported_and_unchanged() {
    let spoil: [fn(&TempDir); 4] = [
        |directory| fs::write(file(directory), "dear diary, ".repeat(1000)).unwrap(),
        |directory| {
            let mut bytes = fs::read(file(directory)).unwrap();
            bytes[5000..9000].fill(0xA5);
            fs::write(file(directory), bytes).unwrap();
        },
        |directory| {
            let bytes = fs::read(file(directory)).unwrap();
            fs::write(file(directory), &bytes[..bytes.len() / 2]).unwrap();
        },
        |directory| {
            fs::remove_file(file(directory)).unwrap();
            edit(directory, "CREATE TABLE recipes (name TEXT)");
        },
    ];
    for (number, spoil) in spoil.into_iter().enumerate() {
        let (directory, store) = fresh();
        drop(store);
        spoil(&directory);
        let before = fs::read(file(&directory)).unwrap();
        let refused = refusal(directory.path());
        let StoreError::Damaged { path, .. } = &refused else {
            panic!("{number}: {refused}")
        };
        assert_eq!(*path, file(&directory).display().to_string());
        assert_eq!(fs::read(file(&directory)).unwrap(), before, "{number}");
    }
}

#[tokio::test]
async fn upgrade_keeps_the_content_and_a_complete_backup() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    drop(store);
    let next = [
        schema::STEPS,
        &["ALTER TABLE applications ADD COLUMN colour TEXT"],
    ]
    .concat();
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
    let old = Embedded::open(restored.path()).unwrap();
    assert_eq!(old.application(id, TODAY).await.unwrap().unwrap().id, id);
}

#[tokio::test]
async fn first_format_is_upgraded_with_its_content() {
    let directory = TempDir::new().unwrap();
    let first = &schema::STEPS[..1];
    drop(file::open_steps(directory.path(), &file(&directory), first).unwrap());
    let id = an_id();
    let rows = format!(
        "INSERT INTO applications VALUES ('{id}', 'old', 'pro', NULL, NULL, NULL, NULL, 0);
         INSERT INTO keys VALUES ('{id}', zeroblob(32), 'sg_live_abcd', 0, NULL, NULL);
         INSERT INTO ledger VALUES ('{TODAY}', '{id}', 7)"
    );
    edit(&directory, &rows);
    let store = Embedded::open(directory.path()).unwrap();
    let application = store.application(id, TODAY).await.unwrap().unwrap();
    assert_eq!(
        (application.granted, application.keys[0].last_used_at),
        (7, None)
    );
    let lease = store.lease(asking(id, TODAY, 1, 1_000)).await.unwrap();
    assert_eq!(lease, LeaseReply::Granted { units: 1, total: 8 });
    assert!(directory.path().join("scoregate.db.v1.bak").exists());
}

#[test]
fn an_upgrade_that_fails_changes_nothing() {
    let (directory, store) = fresh();
    drop(store);
    let next = [
        schema::STEPS,
        &["CREATE TABLE half (a TEXT)"],
        &["CREATE TABEL"],
    ]
    .concat();
    file::open_steps(directory.path(), &file(&directory), &next)
        .map(drop)
        .unwrap_err();
    drop(Embedded::open(directory.path()).unwrap());
}

#[tokio::test]
async fn on_days_with_promised_grace_nobody_gets_a_share() {
    let directory = TempDir::new().unwrap();
    drop(file::open_steps(directory.path(), &file(&directory), &schema::STEPS[..9]).unwrap());
    edit(
        &directory,
        &format!("INSERT INTO ledger VALUES ('{TODAY}', '{}', 7, 3)", an_id()),
    );
    let store = Embedded::open(directory.path()).unwrap();
    for (day, is_free) in [(TODAY, false), (TODAY.next(), true)] {
        let claim = GraceClaim {
            day,
            gateways: 1,
            held: None,
            token: 1,
            life: 0,
            node: 1,
        };
        assert_eq!(
            store.claim_grace(claim).await.unwrap().is_some(),
            is_free,
            "{day}"
        );
    }
}

#[test]
fn a_statement_is_not_compiled_again_for_other_values() {
    let directory = TempDir::new().unwrap();
    let connection = file::make_at(&file(&directory), schema::STEPS).unwrap();
    let mut outdated = connection
        .prepare("SELECT day FROM ledger ORDER BY day LIMIT ?1")
        .unwrap();
    for limit in [1, 8] {
        outdated.exists([limit]).unwrap();
    }
    assert_eq!(outdated.get_status(rusqlite::StatementStatus::RePrepare), 0);
}
