//! After a change, the copy of the keys is read back in its new or its previous state, never in between, and never with a damaged
//! application.

use std::{fs, io, time::Duration};

use tempfile::TempDir;

use super::damage_each_byte;
use crate::{CopiedReading, FeedPosition, LocalFile, StoredApplication, StoredKey, sample};
use scoregate_base::{
    clock::Wall,
    keys::Digest,
    limits::{LimitSetting, OwnLimits},
};

const NOON: Wall = Wall::from_seconds(1_763_726_400);

fn application(number: u64, keys: &[(&str, Option<Wall>, Option<Wall>)]) -> StoredApplication {
    let key = |(text, expires_at, revoked_at): &(&str, Option<Wall>, Option<Wall>)| StoredKey {
        shown: String::new(),
        expires_at: *expires_at,
        revoked_at: *revoked_at,
        ..sample::key(text)
    };
    StoredApplication {
        id: format!("app_{number:011}").parse().unwrap(),
        name: format!("Station {number} \"é\n\""),
        own: OwnLimits::NONE.with(LimitSetting::Minute, number.is_multiple_of(2).then_some(7)),
        keys: keys.iter().map(key).collect(),
        ..sample::application("pro", &[])
    }
}

fn reading(number: u64) -> CopiedReading {
    let position = FeedPosition {
        source: "0c1d/3".into(),
        number,
    };
    CopiedReading {
        position,
        at: NOON.plus(Duration::from_secs(number)),
    }
}

fn open(directory: &TempDir) -> LocalFile {
    LocalFile::open(directory.path()).unwrap()
}

/// The applications of the copy, and the point up to which it is complete.
fn read(file: &LocalFile) -> io::Result<(Vec<StoredApplication>, Option<CopiedReading>)> {
    file.check_copy()?;
    let mut all = Vec::new();
    file.read_copy(|page| all.extend(page.applications.iter().cloned()))?;
    Ok((all, file.copied()?))
}

/// Writes a copy with two applications and a change to the first. Returns the applications that are expected when it is
/// read back.
fn written(file: &LocalFile) -> Vec<StoredApplication> {
    let [first, second] = [1, 2].map(|number| application(number, &[("one", None, None)]));
    let copy = file.begin_copy().unwrap();
    for pushed in [&first, &second] {
        file.push_copy(copy, std::slice::from_ref(pushed)).unwrap();
    }
    file.finish_copy(copy, &reading(5)).unwrap();
    assert_eq!(
        read(file).unwrap(),
        (vec![first, second.clone()], Some(reading(5)))
    );
    // A revoked key is read back without its other times.
    let revoked = Some(Wall::default());
    let keys = [("one", revoked, revoked), ("two", Some(NOON), None)];
    let changed = application(1, &keys);
    file.append_copy(copy, std::slice::from_ref(&changed), &reading(6))
        .unwrap();
    file.append_copy(copy, &[], &reading(7)).unwrap();
    vec![changed, second]
}

#[test]
fn applications_are_read_back_as_changed_and_without_a_copy_there_is_nothing() {
    let directory = TempDir::new().unwrap();
    assert_eq!(read(&open(&directory)).unwrap(), (Vec::new(), None));
    let expected = written(&open(&directory));
    assert_eq!(
        read(&open(&directory)).unwrap(),
        (expected, Some(reading(7)))
    );
    let bytes = fs::read(directory.path().join(LocalFile::NAME)).unwrap();
    let has = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(!has("one") && has(&Digest::of("one").to_string()));
}

#[test]
fn a_copy_that_is_not_finished_leaves_the_old_one_in_place() {
    let directory = TempDir::new().unwrap();
    let expected = (written(&open(&directory)), Some(reading(7)));
    for _ in 0..2 {
        let file = open(&directory);
        let unfinished = file.begin_copy().unwrap();
        file.push_copy(unfinished, &[application(3, &[])]).unwrap();
        drop(file);
        assert_eq!(read(&open(&directory)).unwrap(), expected);
    }
    let file = open(&directory);
    let copy = file.begin_copy().unwrap();
    file.push_copy(copy, &[application(4, &[])]).unwrap();
    file.finish_copy(copy, &reading(8)).unwrap();
    assert_eq!(
        read(&file).unwrap(),
        (vec![application(4, &[])], Some(reading(8)))
    );
}

#[test]
fn no_changed_byte_changes_an_application() {
    let directory = TempDir::new().unwrap();
    let expected = (written(&open(&directory)), Some(reading(7)));
    let path = directory.path().join(LocalFile::NAME);
    let refused = damage_each_byte(&path, |_, at| {
        let found = LocalFile::open(directory.path()).and_then(|file| read(&file));
        assert!(
            found.as_ref().ok().is_none_or(|found| *found == expected),
            "byte {at}: {found:?}"
        );
        found.is_err()
    });
    assert!(refused > 100, "{refused}");
}
