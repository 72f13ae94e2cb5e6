//! The disk mirror keeps records across restarts, in order and within its limits. After a kill or with a full disk, it
//! contains either old or new records. Content of a damaged file is never served.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{damage_each_byte, kill_again_and_again, place, report, run_on_full_disk, unusable};
use crate::{Mirror, MirrorError, MirrorRecord};

const MOST: u64 = 1 << 20;

fn open(directory: &TempDir) -> Mirror {
    Mirror::new(directory.path(), MOST)
}

fn fresh() -> (TempDir, Mirror) {
    let directory = TempDir::new().unwrap();
    let mirror = open(&directory);
    (directory, mirror)
}

fn record(name: &str, content: &str) -> MirrorRecord {
    MirrorRecord {
        name: name.into(),
        label: format!("label of {name}"),
        content: content.to_owned().into(),
    }
}

/// Writes a record and returns it.
fn put(mirror: &Mirror, name: &str, content: &str) -> MirrorRecord {
    let record = record(name, content);
    assert!(write(mirror, &record).is_empty(), "{name}");
    record
}

fn write(mirror: &Mirror, record: &MirrorRecord) -> Vec<MirrorError> {
    mirror.write(std::slice::from_ref(record), &[])
}

fn names(mirror: &Mirror) -> String {
    let records = mirror.all().unwrap();
    let names: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    names.join(" ")
}

fn path(directory: &TempDir) -> PathBuf {
    directory.path().join(Mirror::NAME)
}

/// Closes the mirror, which copies the log into the file, and returns the size of the file.
fn closed_size(directory: &TempDir, mirror: Mirror) -> u64 {
    drop(mirror);
    fs::metadata(path(directory)).unwrap().len()
}

fn weight(record: &MirrorRecord) -> u64 {
    (record.name.len() + record.label.len() + record.content.len()) as u64
}

#[test]
fn a_new_label_does_not_rewrite_the_content() {
    let (directory, mirror) = fresh();
    let large = "x".repeat(200_000);
    put(&mirror, "a", &large);
    drop(mirror);
    let mirror = open(&directory);
    let confirmed = MirrorRecord {
        label: "confirmed".into(),
        ..record("a", &large)
    };
    assert!(write(&mirror, &confirmed).is_empty());
    let log = path(&directory).with_extension("db-wal");
    assert!(fs::metadata(log).unwrap().len() < 50_000);
    assert_eq!(mirror.all().unwrap(), [confirmed]);
}

#[test]
fn a_smaller_capacity_removes_the_oldest_records_and_gives_their_space_back() {
    let (directory, mirror) = fresh();
    for name in ["a", "b", "c", "d"] {
        put(&mirror, name, &"x".repeat(100_000));
    }
    let before = closed_size(&directory, mirror);
    let mirror = Mirror::new(directory.path(), 250_000);
    assert_eq!(names(&mirror), "d c");
    assert!(closed_size(&directory, mirror) < before * 6 / 10);
}

#[test]
fn the_number_of_records_is_limited() {
    let (_directory, mirror) = fresh();
    let most = 4_096;
    let all: Vec<MirrorRecord> = (0..most + 3)
        .map(|number| record(&number.to_string(), ""))
        .collect();
    assert!(mirror.write(&all, &[]).is_empty());
    put(&mirror, "3", "the oldest, by now the newest");
    let records = mirror.all().unwrap();
    let [first, last] = [&records[0], &records[most - 1]].map(|record| record.name.as_str());
    assert_eq!((records.len(), first, last), (most, "3", "4"));
}

#[test]
fn a_record_larger_than_a_quarter_is_refused_and_the_others_are_written() {
    let directory = TempDir::new().unwrap();
    let mirror = Mirror::new(directory.path(), 4_000);
    let old = put(&mirror, "a", "old");
    let other = record("b", "fits");
    let failed = mirror.write(&[record("a", &"x".repeat(1_000)), other.clone()], &[]);
    let [MirrorError::TooLarge { name, most, .. }] = failed.as_slice() else {
        panic!("{failed:?}")
    };
    assert_eq!((name.as_str(), *most), ("a", 1_000));
    assert_eq!(open(&directory).all().unwrap(), [other, old]);
}

#[test]
fn all_files_are_accessible_to_their_owner_only() {
    let (directory, mirror) = fresh();
    put(&mirror, "a", "1");
    for entry in fs::read_dir(directory.path()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_file_that_cannot_be_created_is_named_and_created_once_it_can_be() {
    let (directory, mirror) = fresh();
    fs::create_dir(path(&directory)).unwrap();
    let failed = write(&mirror, &record("a", "1"));
    assert!(failed[0].to_string().contains(Mirror::NAME), "{failed:?}");
    assert!(matches!(&failed[..], [MirrorError::Disk { .. }]));
    fs::remove_dir(path(&directory)).unwrap();
    let one = put(&mirror, "a", "1");
    assert_eq!(open(&directory).all().unwrap(), [one]);
}

#[test]
fn no_changed_byte_changes_a_record_and_a_damaged_file_is_replaced() {
    let (directory, mirror) = fresh();
    let one = put(&mirror, "one", "[1]");
    let two = put(&mirror, "two", &"2".repeat(5_000));
    let before = [two, one];
    drop(mirror);
    let refused = damage_each_byte(&path(&directory), |_, at| {
        let mirror = open(&directory);
        match mirror.all() {
            Ok(found) => {
                assert!(found == before, "byte {at}");
                false
            }
            Err(MirrorError::Damaged { .. }) => {
                assert_eq!(mirror.all().unwrap(), [], "byte {at}");
                put(&mirror, "again", "1");
                assert_eq!(names(&mirror), "again", "byte {at}");
                true
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    });
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_cut_foreign_or_newer_file_is_replaced() {
    let (directory, mirror) = fresh();
    put(&mirror, "one", &"1".repeat(20_000));
    drop(mirror);
    for file in unusable(&path(&directory)) {
        fs::write(path(&directory), file).unwrap();
        let mirror = open(&directory);
        let error = mirror.all().unwrap_err();
        assert!(matches!(error, MirrorError::Damaged { .. }), "{error}");
        put(&mirror, "again", "1");
        assert_eq!(names(&mirror), "again");
    }
}

#[derive(Clone, Debug)]
enum MirrorStep {
    Put { name: u8, size: usize, letter: char },
    Remove(u8),
    Restart,
}

fn step() -> impl Strategy<Value = MirrorStep> {
    let letter = prop_oneof![Just('x'), Just('y')];
    prop_oneof![
        4 => (0..8u8, 0..700usize, letter).prop_map(|(name, size, letter)| MirrorStep::Put { name, size, letter }),
        1 => (0..8u8).prop_map(MirrorStep::Remove),
        1 => Just(MirrorStep::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_sequence_of_calls_and_restarts_matches_a_list(steps in proptest::collection::vec(step(), 1..40)) {
        let room = 3_000;
        let directory = TempDir::new().unwrap();
        let mut mirror = Mirror::new(directory.path(), room);
        let named = |name: u8| format!("../{name}\0\n");
        // The newest record comes first.
        let mut expected: Vec<MirrorRecord> = Vec::new();
        for step in steps {
            match step {
                MirrorStep::Put { name, size, letter } => {
                    let record = record(&named(name), &letter.to_string().repeat(size));
                    let fits = weight(&record) <= room / 4;
                    prop_assert_eq!(write(&mirror, &record).is_empty(), fits);
                    if fits {
                        expected.retain(|other| other.name != record.name);
                        expected.insert(0, record);
                        while expected.iter().map(weight).sum::<u64>() > room {
                            expected.pop();
                        }
                    }
                }
                MirrorStep::Remove(name) => {
                    prop_assert!(mirror.write(&[], &[named(name)]).is_empty());
                    expected.retain(|record| record.name != named(name));
                }
                MirrorStep::Restart => mirror = Mirror::new(directory.path(), room),
            }
            prop_assert_eq!(mirror.all().unwrap(), &expected[..]);
            prop_assert_eq!(mirror.bytes().unwrap(), expected.iter().map(weight).sum::<u64>());
        }
    }
}

fn content(round: u32) -> String {
    format!("{round} ").repeat(5_000)
}

fn puts_without_end(mirror: &Mirror) {
    for round in 0.. {
        let both = ["a", "b"].map(|name| record(name, &content(round)));
        assert!(mirror.write(&both, &[]).is_empty());
        report(round);
    }
}

#[test]
fn a_killed_process_leaves_the_old_records_or_the_new_ones() {
    if let Some(place) = place() {
        return puts_without_end(&Mirror::new(&place, MOST));
    }
    let directory = TempDir::new().unwrap();
    let test = "documents::a_killed_process_leaves_the_old_records_or_the_new_ones";
    kill_again_and_again(test, directory.path(), |reported| {
        let there = open(&directory).all().unwrap();
        assert_eq!(there.len(), 2);
        let numbers = std::str::from_utf8(&there[0].content).unwrap();
        let round: u32 = numbers.split(' ').next().unwrap().parse().unwrap();
        assert!(round >= reported, "a finished round is lost: {reported}");
        for record in &there {
            assert_eq!(record.content, content(round));
        }
    });
}

fn finds_no_room(mirror: &Mirror) {
    let before = mirror.all().unwrap();
    for name in ["a", "new"] {
        let failed = write(mirror, &record(name, &"x".repeat(120_000)));
        assert!(
            matches!(&failed[..], [MirrorError::Disk { .. }]),
            "{failed:?}"
        );
        assert_eq!(mirror.all().unwrap(), before, "the old records remain");
    }
    put(mirror, "b", "what fits is written");
}

#[test]
fn a_full_disk_keeps_the_existing_records() {
    if let Some(place) = place() {
        return finds_no_room(&Mirror::new(&place, MOST));
    }
    let (directory, mirror) = fresh();
    let one = put(&mirror, "a", "old");
    put(&mirror, "b", "old");
    drop(mirror);
    let test = "documents::a_full_disk_keeps_the_existing_records";
    run_on_full_disk(test, directory.path());
    let all = open(&directory).all().unwrap();
    assert_eq!(all, [record("b", "what fits is written"), one]);
}
