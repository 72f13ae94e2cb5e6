//! Closed applications in files of other formats, in backups and in exports.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;
use crate::{OwnerChangeKind, OwnerRefusal};
use scoregate_base::keys::OwnerId;

const MAILBOX: &str = "ann@example.org";

/// Whether the limit of one application is reached because of those that were closed today.
fn is_used_today(directory: &TempDir, owner: OwnerId) -> bool {
    let store = Embedded::open(directory.path()).unwrap();
    match wait(store.change(conformance::owned(owner, 1))) {
        Ok(_) => false,
        Err(StoreError::Owner(OwnerRefusal::QuotaUsedToday(of))) => of == owner,
        Err(error) => panic!("{error}"),
    }
}

/// A store with an owner who closed a used application.
fn closed_after_use() -> (TempDir, Embedded, OwnerId) {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, MAILBOX)).id;
    let id = wait(store.change(conformance::owned(owner, 1))).unwrap().id;
    wait(store.lease(asking(id, TODAY, 1, 10))).unwrap();
    wait(store.change(changing(id, ChangeKind::Close))).unwrap();
    (directory, store, owner)
}

#[test]
fn a_file_of_the_format_before_closed_applications_is_upgraded() {
    let directory = TempDir::new().unwrap();
    drop(file::open_steps(directory.path(), &file(&directory), &schema::STEPS[..8]).unwrap());
    let id = an_id();
    let owner = OwnerId::mint().unwrap();
    edit(
        &directory,
        &format!(
            "INSERT INTO applications VALUES ('{id}', 'old', 'pro', NULL, NULL, NULL, NULL, 0, NULL);
             INSERT INTO owners VALUES ('{owner}', '{MAILBOX}', '{MAILBOX}', 0, '1', 0, NULL, NULL);
             INSERT INTO owned_applications VALUES ('{id}', '{owner}');
             INSERT INTO ledger VALUES ('{TODAY}', '{id}', 7, 0)"
        ),
    );
    let store = Embedded::open(directory.path()).unwrap();
    assert!(directory.path().join("scoregate.db.v8.bak").exists());
    wait(store.change(changing(id, ChangeKind::Close))).unwrap();
    drop(store);
    assert!(is_used_today(&directory, owner));
    let report = maintenance::check(directory.path(), NOW).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.format, newer_format() - 1);
}

#[test]
fn a_backup_contains_closed_applications() {
    let (directory, store, owner) = closed_after_use();
    let backup = directory.path().join("backup.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    drop(store);
    let restored = TempDir::new().unwrap();
    maintenance::import(restored.path(), &backup, &RESTORE, NOW).unwrap();
    assert!(is_used_today(&restored, owner));
}

#[test]
fn an_export_contains_neither_address_nor_digest_of_a_deleted_account() {
    let (directory, store, owner) = closed_after_use();
    wait(conformance::changed(
        &store,
        owner,
        OwnerChangeKind::Delete { in_own_name: true },
    ));
    drop(store);
    let lines = directory.path().join("lines");
    maintenance::export(
        &file(&directory),
        false,
        &mut fs::File::create(&lines).unwrap(),
        NOW,
    )
    .unwrap();
    let text = fs::read_to_string(&lines).unwrap();
    assert!(
        text.contains(&owner.to_string()),
        "the audit trail is exported"
    );
    assert!(
        !text.contains(MAILBOX) && !text.contains(&Digest::of(MAILBOX).to_string()),
        "{text}"
    );
    let restored = TempDir::new().unwrap();
    maintenance::import(restored.path(), &lines, &RESTORE, NOW).unwrap();
    assert!(maintenance::check(restored.path(), NOW).unwrap().is_sound());
}
