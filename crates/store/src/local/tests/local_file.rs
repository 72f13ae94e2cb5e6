//! Grace is kept across restarts, kills and failed writes, and only the original file continues it.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use scoregate_base::{clock::Day, limits::GraceShare};
use tempfile::TempDir;

use super::{damage_each_byte, kill_again_and_again, place, report, run_on_full_disk, unusable};
use crate::{HeldGraceShare, LocalFile, OwedRecords, OwedUnits};

const DAY: Day = Day::from_number(20_000);

fn open(directory: &TempDir) -> LocalFile {
    LocalFile::open(directory.path()).unwrap()
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join(LocalFile::NAME)
}

fn owed(node: u64, granted: u32) -> OwedUnits {
    OwedUnits {
        node,
        application: "app_0123456789a".parse().unwrap(),
        day: DAY,
        granted,
        owed: 3,
        quota: 900,
    }
}

fn held() -> OwedRecords {
    let share = GraceShare {
        number: 1,
        shares: 3,
    };
    OwedRecords {
        shares: vec![HeldGraceShare {
            day: DAY,
            share,
            token: u64::MAX,
            life: 2,
        }],
        owed: vec![owed(1, 20), owed(u64::MAX, 20)],
    }
}

fn without_share() -> OwedRecords {
    OwedRecords {
        shares: Vec::new(),
        ..held()
    }
}

/// A closed file with grace records.
fn written() -> TempDir {
    let directory = TempDir::new().unwrap();
    open(&directory).replace_grace(&held()).unwrap();
    directory
}

#[test]
fn the_newest_entries_are_read_back_with_the_shares() {
    let directory = TempDir::new().unwrap();
    assert!(
        LocalFile::open_existing(directory.path())
            .unwrap()
            .is_none()
    );
    let file = open(&directory);
    assert_eq!(file.grace().unwrap(), OwedRecords::default());
    file.replace_grace(&held()).unwrap();
    drop(file);
    let file = open(&directory);
    assert_eq!(file.grace().unwrap(), held());
    file.add_owed(&[owed(1, 25), owed(2, 7)]).unwrap();
    let newest = OwedRecords {
        owed: vec![owed(1, 25), owed(2, 7), owed(u64::MAX, 20)],
        ..held()
    };
    drop(file);
    assert_eq!(open(&directory).grace().unwrap(), newest);
    open(&directory)
        .replace_grace(&OwedRecords::default())
        .unwrap();
    assert_eq!(open(&directory).grace().unwrap(), OwedRecords::default());
}

#[test]
fn a_copied_or_restored_file_has_its_units_and_no_share() {
    let directory = written();
    let path = path(&directory);
    let backup = directory.path().join("backup");
    fs::copy(&path, &backup).unwrap();
    for _ in 0..2 {
        assert_eq!(open(&directory).grace().unwrap(), held());
    }
    // Moves the original back to its name.
    fs::rename(&backup, &path).unwrap();
    assert_eq!(open(&directory).grace().unwrap(), without_share());
    // From now on, this file is the original.
    open(&directory).replace_grace(&held()).unwrap();
    assert_eq!(open(&directory).grace().unwrap(), held());
    // Overwrites the file in place, with and without the times of the backup.
    let whole = fs::read(&path).unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    for restored_at in [
        None,
        Some(modified),
        Some(modified - Duration::from_mins(1)),
    ] {
        open(&directory).replace_grace(&held()).unwrap();
        fs::write(&path, &whole).unwrap();
        if let Some(at) = restored_at.filter(|at| *at != modified) {
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(at).unwrap();
        }
        assert_eq!(open(&directory).grace().unwrap(), without_share());
    }
}

#[test]
fn a_command_reads_the_file_of_a_server_and_continues_no_share() {
    let directory = written();
    let server = open(&directory);
    let command = LocalFile::open_existing(directory.path()).unwrap().unwrap();
    assert_eq!(command.grace().unwrap(), without_share());
    drop(command);
    drop(server);
    assert_eq!(open(&directory).grace().unwrap(), held());
}

#[test]
fn no_changed_byte_changes_what_is_read_and_a_damaged_file_is_refused_unchanged() {
    let directory = written();
    let path = path(&directory);
    let refused = damage_each_byte(&path, |damaged, at| {
        match LocalFile::open(directory.path()).and_then(|file| file.grace()) {
            Ok(found) => {
                assert!(found == without_share(), "byte {at}: {found:?}");
                false
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at}: {error}");
                assert!(error.to_string().contains("move the file away"), "{error}");
                assert!(fs::read(&path).unwrap() == damaged, "byte {at}");
                true
            }
        }
    });
    assert!(refused > 100, "{refused}");
}

#[test]
fn an_empty_cut_foreign_or_newer_file_is_refused() {
    let directory = written();
    let path = path(&directory);
    for file in unusable(&path).into_iter().chain([Vec::new()]) {
        fs::write(&path, &file).unwrap();
        let error = LocalFile::open(directory.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(fs::read(&path).unwrap() == file);
    }
}

fn adds_without_end(directory: &Path) {
    let file = LocalFile::open(directory).unwrap();
    let before = file.grace().unwrap().owed[0].granted;
    for granted in before + 1.. {
        file.add_owed(&[owed(1, granted)]).unwrap();
        report(granted);
    }
}

#[test]
fn units_are_in_the_file_of_a_killed_process_before_they_are_spent() {
    if let Some(place) = place() {
        return adds_without_end(&place);
    }
    let directory = written();
    let test = "local_file::units_are_in_the_file_of_a_killed_process_before_they_are_spent";
    kill_again_and_again(test, directory.path(), |reported| {
        let left = open(&directory).grace().unwrap();
        assert!(left.owed[0].granted >= reported, "{reported}");
        assert_eq!(left.owed[1], owed(u64::MAX, 20));
    });
}

fn finds_no_room(directory: &Path) {
    let file = LocalFile::open(directory).unwrap();
    let many: Vec<OwedUnits> = (10..2_000).map(|node| owed(node, 1)).collect();
    file.add_owed(&many).unwrap_err();
    assert_eq!(file.grace().unwrap(), held());
    file.add_owed(&[owed(1, 21)]).unwrap();
}

#[test]
fn units_that_do_not_fit_on_a_full_disk_are_not_added() {
    if let Some(place) = place() {
        return finds_no_room(&place);
    }
    let directory = written();
    let test = "local_file::units_that_do_not_fit_on_a_full_disk_are_not_added";
    run_on_full_disk(test, directory.path());
    assert_eq!(open(&directory).grace().unwrap().owed[0], owed(1, 21));
}
