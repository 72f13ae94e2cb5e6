//! Restores: what is transferred from the previous store, and what happens if there is none.

use std::path::PathBuf;

use crate::{
    StoreChange,
    maintenance::{self, ImportedDay, MaintenanceError},
};
use scoregate_base::{clock::Wall, limits::GraceClaim};

use super::*;

/// Options for restoring a backup or an export without accepting any loss.
fn strict(previous: Option<&TempDir>) -> ImportOptions {
    ImportOptions {
        restores: true,
        previous: previous.map(|directory| directory.path().to_owned()),
        ..ImportOptions::default()
    }
}

/// Options to restore a backup without reopening the day.
fn closing() -> ImportOptions {
    ImportOptions {
        reopen_day: false,
        ..RESTORE.clone()
    }
}

#[test]
fn grants_of_an_application_survive_a_backup_without_it() {
    let (directory, store) = fresh();
    wait(created(&store));
    let backup = backed_up(&directory, "older.db");
    let id = wait(created(&store));
    leased(&store, id, 10, 10);
    drop(store);
    import(&directory, &backup, &RESTORE).unwrap();
    let report = checked(&directory);
    assert!(
        report.faults.is_empty() && report.unreadable.is_empty(),
        "{report:?}"
    );
    let store = opened(&directory);
    // Adds the application again, as an import of keys would.
    assert_eq!(wait(store.change(creating(id))).unwrap().granted, 10);
    let lease = leased(&store, id, 1, 10);
    assert_eq!(lease, given(0, 10));
}

#[test]
fn older_backup_grants_nothing_twice_and_keeps_keys_revoked_or_expired() {
    let (directory, store) = fresh();
    let id = wait(created(&store));
    let revoked = wait(created(&store));
    let backup = backed_up(&directory, "backup.db");
    leased(&store, id, 10, 10);
    let tomorrow = TODAY.next();
    let newer = wait(created(&store));
    wait(store.lease(asking(newer, tomorrow, 1, 10))).unwrap();
    wait(make(&store, revoked, ChangeKind::RevokeAll));
    let end = NOW.plus(std::time::Duration::from_hours(1));
    wait(make(&store, id, rotation(a_key("newer"), end)));
    drop(store);
    let lines = exported(&directory);
    assert!(matches!(
        import(&directory, &lines, &ImportOptions::default()),
        Err(MaintenanceError::InUse {
            applications: 3,
            ..
        })
    ));
    let imported = import(&directory, &backup, &RESTORE).unwrap();
    let carried = &imported.carried;
    assert_eq!(
        (carried.revoked, carried.ended, carried.gaps.len()),
        (1, 1, 0),
        "{imported:?}"
    );
    assert_eq!(carried.lost, 2, "an application and a key");
    let store = opened(&directory);
    assert_eq!(
        wait(store.day()).unwrap(),
        Some(tomorrow),
        "a day that was closed stays closed"
    );
    assert!(wait(found(&store, revoked)).keys[0].revoked_at.is_some());
    let found = wait(found(&store, id));
    assert_eq!((found.granted, found.keys.len()), (10, 1));
    assert_eq!(found.keys[0].expires_at, Some(end));
}

#[test]
fn a_restore_keeps_the_end_of_limits_as_the_previous_store_knew_it() {
    let (directory, store) = fresh();
    let id = wait(created(&store));
    let limits = |minute, until| {
        let own = OwnLimits::NONE.with(LimitSetting::Minute, minute);
        changing(id, limits_set(own, until))
    };
    let [before, during] = ["before.db", "during.db"].map(|name| directory.path().join(name));
    wait(store.change(limits(60, None))).unwrap();
    maintenance::back_up(directory.path(), &before, false).unwrap();
    wait(store.change(limits(10, Some(NOW)))).unwrap();
    maintenance::back_up(directory.path(), &during, false).unwrap();
    drop(store);
    let mut now = NOW;
    let mut store = |backup: &Path| {
        // The name of the replaced store contains the time.
        now = now.plus(std::time::Duration::from_secs(1));
        maintenance::import(directory.path(), backup, &RESTORE, now).unwrap();
        opened(&directory)
    };
    for backup in [&before, &during] {
        assert_eq!(
            wait(store(backup).due_limits(NOW)).unwrap(),
            [id],
            "{}",
            backup.display()
        );
    }
    let elsewhere = TempDir::new().unwrap();
    import(&elsewhere, &during, &RESTORE).unwrap();
    let restored = Store::open(elsewhere.path()).unwrap();
    let due = StoreChange {
        at: NOW,
        ..changing(id, ChangeKind::RestoreLimits)
    };
    assert_eq!(
        wait(restored.change(due))
            .unwrap()
            .own
            .get(LimitSetting::Minute),
        Some(60),
        "in the backup itself"
    );

    let without_end = store(&during);
    wait(without_end.change(limits(30, None))).unwrap();
    drop(without_end);
    let restored = store(&during);
    assert_eq!(wait(restored.due_limits(NOW)).unwrap(), []);
    assert_eq!(
        wait(found(&restored, id)).own.get(LimitSetting::Minute),
        Some(30)
    );
}

/// A store with an application that was granted 4 units before a backup and 6 after it, and whose tier was changed
/// after the backup.
fn changed_since_backup(quota: u32) -> (TempDir, PathBuf, ApplicationId) {
    let (directory, store) = fresh();
    let id = wait(created(&store));
    leased(&store, id, 4, quota);
    let backup = backed_up(&directory, "backup.db");
    leased(&store, id, 6, quota);
    let own = OwnLimits::NONE.with(LimitSetting::Day, 12);
    wait(make(&store, id, to_tier("pro")));
    wait(make(&store, id, limits_set(own, None)));
    (directory, backup, id)
}

#[test]
fn a_restore_without_the_previous_store_closes_the_day_and_needs_consent_to_lost_revocations() {
    let (_directory, backup, id) = changed_since_backup(250_000);
    let other = TempDir::new().unwrap();
    let refused = import(&other, &backup, &strict(None)).unwrap_err();
    let MaintenanceError::LostRevocations {
        after: Some(at), ..
    } = &refused
    else {
        panic!("{refused}")
    };
    assert!(
        refused.is_input() && refused.to_string().contains(&at.rfc3339()),
        "{refused}"
    );
    assert_eq!(files_in(&other), 0, "nothing is left");

    let imported = import(&other, &backup, &closing()).unwrap();
    assert_eq!(
        (imported.day, imported.last_change),
        (ImportedDay::Closed(TODAY), Some(*at))
    );
    let store = opened(&other);
    let lease = leased(&store, id, 5, 250_000);
    assert_eq!(lease, given(0, u64::from(u32::MAX)));
    let mut owed = asking(id, TODAY, 0, 250_000).exchange();
    owed.reports[0].totals.known.granted = 7;
    for _ in 0..2 {
        wait(store.exchange(owed.clone())).unwrap();
        assert_eq!(
            wait(store.page(None, 9, TODAY)).unwrap().skipped,
            [] as [&str; 0]
        );
        assert!(checked(&other).is_sound());
    }
    let tomorrow = TODAY.next();
    let lease = wait(store.lease(asking(id, tomorrow, 5, 10))).unwrap();
    assert_eq!(lease, given(5, 5));
}

#[test]
fn a_reopened_day_has_the_bound_of_units_that_may_be_granted_twice() {
    let (_directory, backup, id) = changed_since_backup(10);
    let other = TempDir::new().unwrap();
    let unknown = ImportOptions {
        tiers: Vec::new(),
        ..RESTORE.clone()
    };
    let refused = import(&other, &backup, &unknown).unwrap_err();
    assert!(
        refused.is_input() && refused.to_string().contains("--config"),
        "{refused}"
    );
    let imported = import(&other, &backup, &RESTORE).unwrap();
    let bound = ImportedDay::Reopened(TODAY, Some(10 - 4));
    assert_eq!(
        imported.day, bound,
        "the Free quota minus the units in the backup"
    );
    assert_eq!(granted(&other, id), 4);
}

#[test]
fn a_clock_that_is_behind_the_backup_closes_no_day() {
    let (directory, backup, id) = changed_since_backup(10);
    let options = closing();
    let tomorrow = TODAY.next();
    let newer = directory.path().join("newer.db");
    let store = opened(&directory);
    wait(store.lease(asking(id, tomorrow, 1, 10))).unwrap();
    maintenance::back_up(directory.path(), &newer, false).unwrap();
    drop(store);
    let before = Wall::from_seconds(NOW.seconds() - 1);
    for (from, now) in [(&backup, before), (&newer, NOW)] {
        let other = TempDir::new().unwrap();
        let refused = maintenance::import(other.path(), from, &options, now).unwrap_err();
        assert!(
            refused.is_input() && refused.to_string().contains("clock"),
            "{refused}"
        );
        let previous = Some(directory.path().to_owned());
        let complete = ImportOptions {
            previous,
            ..options.clone()
        };
        let imported = maintenance::import(other.path(), from, &complete, now).unwrap();
        assert_eq!(imported.day, ImportedDay::Complete);
    }
}

#[test]
fn a_reopened_day_that_the_backup_does_not_know_has_no_grace() {
    let (_directory, backup, _) = changed_since_backup(10);
    let other = TempDir::new().unwrap();
    let later = NOW.plus(std::time::Duration::from_hours(24));
    maintenance::import(other.path(), &backup, &RESTORE, later).unwrap();
    let store = opened(&other);
    for day in [TODAY, later.day(), later.day().next()] {
        let claim = GraceClaim {
            day,
            gateways: 1,
            held: None,
            token: 1,
            life: 0,
            node: 1,
        };
        assert_eq!(wait(store.claim_grace(claim)).unwrap(), None, "{day}");
    }
}

#[test]
fn the_store_of_the_previous_server_is_named_for_a_restore_elsewhere() {
    let (directory, backup, id) = changed_since_backup(10);
    let other = TempDir::new().unwrap();
    let options = strict(Some(&directory));
    let imported = import(&other, &backup, &options).unwrap();
    assert_eq!(
        (imported.day, imported.carried.limits),
        (ImportedDay::Complete, 1)
    );
    let store = opened(&other);
    let found = wait(found(&store, id));
    assert_eq!(
        (
            found.tier.as_str(),
            found.own.get(LimitSetting::Day),
            found.granted
        ),
        ("pro", Some(12), 10)
    );
    let nowhere = ImportOptions {
        previous: Some(other.path().join("nowhere")),
        ..options
    };
    let refused = import(&TempDir::new().unwrap(), &backup, &nowhere).unwrap_err();
    assert!(matches!(refused, MaintenanceError::NoStore(_)), "{refused}");
}

#[test]
fn a_store_that_is_not_a_later_state_of_the_backup_is_no_previous_store() {
    let (directory, backup, id) = changed_since_backup(10);
    let (interim, store) = fresh();
    wait(created(&store));
    let (empty, _store) = fresh();
    drop(store);
    for previous in [None, Some(&empty)] {
        let refused = import(&interim, &backup, &strict(previous)).unwrap_err();
        assert!(
            matches!(refused, MaintenanceError::LostRevocations { .. }),
            "{refused}"
        );
        let reason = refused.to_string();
        assert!(
            reason.contains("is not a later state of this backup"),
            "{reason}"
        );
    }
    let imported = import(&interim, &backup, &strict(Some(&directory))).unwrap();
    assert_eq!(imported.day, ImportedDay::Complete);
    assert_eq!(granted(&interim, id), 10);
}

#[test]
fn without_an_audit_trail_a_previous_store_has_all_applications_of_the_backup() {
    let (directory, sealed, _) = changed_since_backup(10);
    // A copy that another program made has no checksum.
    let backup = directory.path().join("edited.db");
    let edited = Connection::open(&sealed).unwrap();
    edited.execute("DELETE FROM audit", []).unwrap();
    edited.execute("VACUUM INTO ?1", [backup.to_str()]).unwrap();
    let (interim, store) = fresh();
    wait(created(&store));
    drop(store);
    let refused = import(&interim, &backup, &strict(None)).unwrap_err();
    let reason = refused.to_string();
    assert!(
        reason.contains("is not a later state of this backup"),
        "{reason}"
    );
    let imported = import(&directory, &backup, &strict(None)).unwrap();
    assert_eq!(imported.day, ImportedDay::Complete);
}

#[test]
fn missing_file_is_reported_and_replaced_by_a_backup() {
    let (directory, store) = fresh();
    wait(created(&store));
    drop(store);
    let backup = backed_up(&directory, "scoregate.db.v1.bak");
    fs::remove_file(file(&directory)).unwrap();
    let checked = maintenance::check(directory.path(), NOW);
    let Err(MaintenanceError::Store(StoreError::Damaged { reason, .. })) = &checked else {
        panic!("{checked:?}")
    };
    assert!(reason.contains("scoregate.db.v1.bak"), "{reason}");
    let imported = import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(
        (
            imported.report.applications,
            imported.aside,
            imported.carried.gaps.len()
        ),
        (1, None, 1)
    );
}
