//! Closed applications in backups and in exports.

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
