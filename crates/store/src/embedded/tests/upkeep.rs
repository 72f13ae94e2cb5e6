//! Checks, backups, exports, and the steps of an import.

use std::os::unix::fs::PermissionsExt as _;

use crate::{
    embedded::swap,
    maintenance::{self, MaintenanceError},
};

use super::*;

#[test]
fn a_future_day_is_reported_until_it_begins_or_is_closed_and_then_its_grants_count_today() {
    let (directory, store) = fresh();
    let one = wait(created(&store));
    let other = wait(created(&store));
    let day = |later: u32| Day::from_number(TODAY.number() + later);
    for (id, later, want) in [(one, 0, 4), (one, 1, 5), (other, 1, 7), (one, 3, 3)] {
        wait(store.lease(asking(id, day(later), want, 10))).unwrap();
    }
    drop(store);
    let found = checked(&directory);
    assert!(
        !found.is_sound() && found.faults.is_empty(),
        "the file is not damaged: {found:?}"
    );
    let begun = maintenance::check(directory.path(), day(3).start()).unwrap();
    assert!(begun.is_sound(), "{begun:?}");
    edit(
        &directory,
        "INSERT INTO ledger_days (day, application, granted) VALUES ('never', 'app_0123456789a', 9)",
    );
    let close = |today, now| maintenance::close_future_days(directory.path(), "anna", today, now);
    let refused = close(day(1), NOW).unwrap_err();
    assert!(
        matches!(refused, MaintenanceError::OtherDay { .. }) && refused.is_input(),
        "{refused}"
    );
    let report = checked(&directory);
    assert_eq!(report.future_day, Some(day(3)), "a refusal changed it");
    let closed = close(TODAY, NOW).unwrap();
    assert_eq!((closed.days, closed.granted), (vec![day(1), day(3)], 15));
    assert_eq!(close(TODAY, NOW).unwrap().days, []);
    let report = checked(&directory);
    assert_eq!(
        (report.newest_day, report.future_day, report.granted),
        (Some(TODAY), None, 4 + 15)
    );

    let store = opened(&directory);
    let granted = |id, day| wait(store.application(id, day)).unwrap().unwrap().granted;
    assert_eq!((granted(one, TODAY), granted(other, TODAY)), (12, 7));
    assert_eq!((granted(one, day(1)), granted(other, day(1))), (0, 0));
    let lease = |id, day, want| wait(store.lease(asking(id, day, want, 10))).unwrap();
    let again = lease(one, TODAY, 1);
    assert_eq!(again, given(0, 12), "today is not granted twice");
    assert_eq!(lease(other, TODAY, 9), given(3, 10));
    assert_eq!(lease(one, day(1), 99), given(10, 10));
    let trail = wait(conformance::trail(&store));
    let found: Vec<_> = trail
        .iter()
        .filter(|record| record.what == "close_future_days")
        .collect();
    assert!(
        found.len() == 1 && found[0].who == "anna" && found[0].detail.contains("15 units"),
        "{trail:?}"
    );
}

#[test]
fn check_counts_records_and_writes_nothing() {
    let (directory, store) = fresh();
    let id = wait(created(&store));
    wait(created(&store));
    wait(make(&store, id, ChangeKind::RevokeAll));
    leased(&store, id, 4, 10);
    let running = checked(&directory);
    assert!(running.is_sound() && running.log_bytes > 0, "{running:?}");
    drop(store);
    let before = fs::read(file(&directory)).unwrap();
    let report = checked(&directory);
    assert_eq!(
        (
            report.applications,
            report.keys,
            report.keys_in_force,
            report.audit
        ),
        (2, 2, 1, 3)
    );
    assert_eq!((report.newest_day, report.granted), (Some(TODAY), 4));
    assert_eq!(fs::read(file(&directory)).unwrap(), before);
    assert_eq!(files_in(&directory), 2);
    let empty = TempDir::new().unwrap();
    assert!(matches!(
        maintenance::check(empty.path(), NOW),
        Err(MaintenanceError::NoStore(_))
    ));
    assert_eq!(files_in(&empty), 0);
}

#[tokio::test]
async fn backup_during_writes_is_a_consistent_snapshot() {
    let (directory, store) = fresh();
    let one = created(&store).await;
    let other = created(&store).await;
    let writing = async {
        for _ in 0..200 {
            // Each change commits its audit record too. A torn copy would have one without the other.
            make(&store, one, to_tier("pro")).await;
            store.lease(asking(other, TODAY, 1, 1_000)).await.unwrap();
        }
    };
    let place = TempDir::new().unwrap();
    let path = directory.path().to_owned();
    let to = place.path().to_owned();
    let copying = tokio::task::spawn_blocking(move || {
        let copies = (0..10).map(|number| {
            maintenance::back_up(&path, &to.join(number.to_string()), false).unwrap()
        });
        copies.collect::<Vec<_>>()
    });
    let ((), copies) = tokio::join!(writing, copying);
    for report in copies.unwrap() {
        assert!(report.is_sound() && report.applications == 2, "{report:?}");
        // Changes and leases alternate, so their counts differ by at most one.
        let changes = report.audit - 2;
        assert!(changes.abs_diff(report.granted) <= 1, "{report:?}");
        assert_eq!(
            fs::metadata(&report.path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(files_in(&place), 10, "nothing half is left");
}

#[test]
fn a_backup_overwrites_files_only_with_an_option_and_never_the_store() {
    let (directory, store) = fresh();
    wait(created(&store));
    let to = directory.path().join("mine.db");
    fs::write(&to, "a letter").unwrap();
    for (to, overwrites) in [(&to, false), (&file(&directory), true)] {
        let before = fs::read(to).unwrap();
        let refused = maintenance::back_up(directory.path(), to, overwrites);
        assert!(matches!(refused, Err(MaintenanceError::Exists(_))));
        assert_eq!(fs::read(to).unwrap(), before);
    }
    let report = maintenance::back_up(directory.path(), &to, true).unwrap();
    assert_eq!(report.applications, 1);
}

#[test]
fn a_truncated_or_changed_export_is_rejected_and_nothing_changes() {
    let (directory, store) = fresh();
    wait(created(&store));
    drop(store);
    let from = exported(&directory);
    let whole = fs::read(&from).unwrap();
    let other = TempDir::new().unwrap();
    let text = fs::read_to_string(&from).unwrap();
    let changed = text.replace("\"free\"", "\"teams\"").into_bytes();
    let more = [&whole[..], b"{}\n"].concat();
    let cuts = (0..whole.len())
        .step_by(7)
        .map(|length| whole[..length].to_vec());
    for bytes in cuts.chain([changed, more]) {
        fs::write(&from, &bytes).unwrap();
        let refused = import(&other, &from, &ImportOptions::default()).unwrap_err();
        assert!(
            matches!(refused, MaintenanceError::Unfit { .. }),
            "{refused}"
        );
        assert_eq!(files_in(&other), 0, "{refused}");
    }
    fs::write(&from, &whole).unwrap();
    import(&other, &from, &ImportOptions::default()).unwrap();
}

#[test]
fn dated_backups_are_removed_except_the_newest_and_other_files_remain() {
    let (directory, store) = fresh();
    wait(created(&store));
    let place = TempDir::new().unwrap();
    let others = [
        "scoregate-.db",
        "scoregate-2025-01-01.db",
        "scoregate-old.db",
    ];
    for name in others
        .iter()
        .chain(&["scoregate-2025-11-21T120000Z.db.half"])
    {
        fs::write(place.path().join(name), "").unwrap();
    }
    let keep = std::num::NonZeroUsize::new(2).unwrap();
    // For the last backup the clock is set back, so this backup is not the newest by name.
    for hour in [1, 2, 3, 0] {
        let now = NOW.plus(std::time::Duration::from_hours(hour));
        let path = maintenance::dated(place.path(), now).unwrap();
        maintenance::back_up(directory.path(), &path, false).unwrap();
        maintenance::prune(&path, keep).unwrap();
    }
    let left = fs::read_dir(place.path()).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    let [named, date, old] = others;
    let kept = [
        "scoregate-2025-11-21T120000Z.db",
        "scoregate-2025-11-21T150000Z.db",
    ];
    assert_eq!(left, [named, date, kept[0], kept[1], old]);
    let unmounted = maintenance::dated(&place.path().join("unmounted"), NOW).unwrap_err();
    assert!(
        matches!(unmounted, MaintenanceError::Unwritable { .. }),
        "{unmounted}"
    );
}

#[test]
fn a_backup_and_an_export_are_verified_by_their_content() {
    let (directory, store) = fresh();
    let id = wait(created(&store));
    leased(&store, id, 7, 1_000);
    drop(store);
    let backup = backed_up(&directory, "backup");
    let lines = exported(&directory);
    let files = files_in(&directory);
    for from in [&backup, &lines] {
        let found = maintenance::verify(from).unwrap();
        let bytes = fs::read(from).unwrap();
        assert!(found.is_sound() && found.path == *from);
        assert_eq!(found.bytes, bytes.len() as u64);
        assert_eq!(
            (found.applications, found.newest_day, found.granted),
            (1, Some(TODAY), 7)
        );
        let half = bytes.len() / 2;
        let flipped = [&bytes[..half], &[bytes[half] ^ 0x40], &bytes[half + 1..]].concat();
        for damaged in [&bytes[..half], &flipped, b"", b"dear diary"] {
            fs::write(from, damaged).unwrap();
            let is_sound = maintenance::verify(from).is_ok_and(|found| found.is_sound());
            assert!(!is_sound, "{} bytes of {from:?}", damaged.len());
        }
    }
    let left = files_in(&directory);
    assert_eq!(left, files, "no other files are left");
}

#[test]
fn a_crash_between_any_two_steps_of_an_import_leaves_the_old_store_or_the_new_one() {
    for taken in 0..=4 {
        let (directory, store) = fresh();
        let old = wait(created(&store));
        let left = crashed(&directory); // with a write-ahead log
        drop(store);
        let new = {
            let (other, store) = fresh();
            let id = wait(created(&store));
            drop(store);
            fs::copy(file(&other), left.path().join("scoregate.db.next-X")).unwrap();
            id
        };
        let log = fs::read(left.path().join("scoregate.db-wal")).unwrap();
        for step in swap::steps(&file(&left), "X").iter().take(taken) {
            swap::rename_if_present(step).unwrap();
        }
        let met = wait(applications(&opened(&left)));
        let expected = if taken == 0 { old } else { new };
        assert_eq!((met.len(), met[0].id), (1, expected), "after {taken} steps");
        assert!(!left.path().join("scoregate.db.next-X").exists());
        if taken > 0 {
            assert_eq!(
                fs::read(left.path().join("scoregate.db.aside-X-wal")).unwrap(),
                log
            );
            // The old store is complete under its new name.
            let again = restored(&left.path().join("scoregate.db.aside-X"));
            wait(found(&opened(&again), old));
        }
    }
}

#[test]
fn only_stores_are_imported() {
    let (directory, store) = fresh();
    drop(store);
    edit(
        &directory,
        &format!("PRAGMA user_version = {}", newer_format()),
    );
    let newer = file(&directory);
    let other = TempDir::new().unwrap();
    let text = other.path().join("text");
    fs::write(&text, "dear diary").unwrap();
    let half = other.path().join("half");
    fs::write(&half, &fs::read(&newer).unwrap()[..8192]).unwrap();
    for from in [&text, &half, &newer, &other.path().join("nothing")] {
        let refused = import(&other, from, &RESTORE).unwrap_err();
        let is_clear = matches!(
            refused,
            MaintenanceError::Unfit { .. } | MaintenanceError::Store(StoreError::Newer { .. })
        );
        assert!(is_clear, "{refused}");
    }
    assert!(!file(&other).exists());
    // Only a restore replaces a newer store, and only a restore accepts a backup.
    let (older, store) = fresh();
    wait(created(&store));
    drop(store);
    let lines = exported(&older);
    let refused = import(&directory, &lines, &ImportOptions::default()).unwrap_err();
    assert!(
        matches!(refused, MaintenanceError::Store(StoreError::Newer { .. })),
        "{refused}"
    );
    let refused = import(&other, &file(&older), &ImportOptions::default()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("use `scoregate store restore`"),
        "{refused}"
    );
    import(&directory, &file(&older), &RESTORE).unwrap();
}
