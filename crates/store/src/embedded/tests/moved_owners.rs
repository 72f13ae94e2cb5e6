//! Owners across a replacement of the store.

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;
use crate::{OwnerChangeKind, OwnerQuery, OwnerStore as _, StoredOwner};
use scoregate_base::clock::Wall;

const NOW: Wall = Wall::from_seconds(20_413 * 86_400 + 43_200);

fn owners(directory: &TempDir) -> Vec<StoredOwner> {
    let store = Embedded::open(directory.path()).unwrap();
    wait(store.owners(OwnerQuery { limit: 9, ..OwnerQuery::default() })).unwrap()
}

#[test]
fn owners_of_a_backup_keep_their_applications_and_later_suspensions() {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, "Ann@example.org")).id;
    wait(store.change(conformance::owned(owner, 1))).unwrap();
    wait(conformance::signed_up(&store, "bob@example.org"));
    let backup = directory.path().join("older.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    wait(conformance::changed(&store, owner, OwnerChangeKind::Suspend));
    drop(store);
    let before = owners(&directory);
    maintenance::import(directory.path(), &backup, &RESTORE, NOW).unwrap();
    assert_eq!(owners(&directory), before);
    let suspended = before.iter().find(|found| found.id == owner).unwrap();
    assert_eq!((suspended.suspended_at.is_some(), suspended.applications.len()), (true, 1));
}
