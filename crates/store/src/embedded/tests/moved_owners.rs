//! Owners across a replacement of the store.

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;
use crate::{MailKind, OwnerChangeKind, OwnerQuery, OwnerStore as _, StoredOwner};

fn owners(directory: &TempDir) -> Vec<StoredOwner> {
    let store = Embedded::open(directory.path()).unwrap();
    wait(store.owners(OwnerQuery {
        limit: 9,
        ..OwnerQuery::default()
    }))
    .unwrap()
}

#[test]
fn owners_of_a_backup_keep_their_applications_and_later_suspensions_and_choices() {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, "Ann@example.org")).id;
    wait(store.change(conformance::owned(owner, 1))).unwrap();
    wait(conformance::signed_up(&store, "bob@example.org"));
    let backup = directory.path().join("older.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    wait(conformance::changed(
        &store,
        owner,
        OwnerChangeKind::Suspend,
    ));
    wait(conformance::changed(
        &store,
        owner,
        OwnerChangeKind::SetNotices(vec![MailKind::Quota80]),
    ));
    drop(store);
    let before = owners(&directory);
    maintenance::import(directory.path(), &backup, &RESTORE, NOW).unwrap();
    assert_eq!(owners(&directory), before);
    let suspended = before.iter().find(|found| found.id == owner).unwrap();
    assert_eq!(
        (
            suspended.suspended_at.is_some(),
            suspended.applications.len()
        ),
        (true, 1)
    );
}

#[test]
fn sessions_links_and_queued_mail_of_a_backup_are_not_restored() {
    let (directory, store) = fresh();
    wait(conformance::signed_up(&store, "ann@example.org"));
    assert!(wait(conformance::send(&store, "unused", "bob@example.org")));
    drop(store);
    let backup = directory.path().join("backup.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    let counts = || -> [u32; 4] {
        let store = Connection::open(file(&directory)).unwrap();
        let counts =
            "SELECT (SELECT count(*) FROM owner_sessions), (SELECT count(*) FROM mail_queue),
                             count(*), count(used_at) FROM sign_in_links";
        store
            .query_row(counts, [], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })
            .unwrap()
    };
    assert_eq!(counts(), [1, 2, 2, 1]);
    maintenance::import(directory.path(), &backup, &RESTORE, NOW).unwrap();
    assert_eq!(counts(), [0, 0, 2, 2]);
}
