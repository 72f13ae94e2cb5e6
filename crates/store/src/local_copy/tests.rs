//! Round trips of the local copy, interrupted writes and damage.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::{FeedPosition, OwnLimits, StoredApplication, StoredKey, sample};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

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
        own: OwnLimits {
            minute: number.is_multiple_of(2).then_some(7),
            day: None,
        },
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
        at: NOON.plus(std::time::Duration::from_secs(number)),
    }
}

/// The applications of a copy, in the order of their lines, and its reading.
fn read(
    copy: &LocalCopy,
) -> Result<Option<(Vec<StoredApplication>, CopiedReading)>, LocalCopyFlaw> {
    let Some(verified) = copy.open()? else {
        return Ok(None);
    };
    let reading = verified.reading().clone();
    let mut all = Vec::new();
    verified.read(|page| all.extend(page.applications.iter().cloned()))?;
    Ok(Some((all, reading)))
}

/// A copy with two applications, and a change of the first: the lengths of the file after each write.
fn written(directory: &TempDir) -> (LocalCopy, [usize; 3], [StoredApplication; 3]) {
    let copy = LocalCopy::of(directory.path());
    let [first, second] = [1, 2].map(|number| application(number, &[("one", None, None)]));
    let length = || usize::try_from(fs::metadata(copy.path()).unwrap().len()).unwrap();
    let mut new = NewLocalCopy::begin(&copy).unwrap();
    new.push(std::slice::from_ref(&first)).unwrap();
    new.push(std::slice::from_ref(&second)).unwrap();
    let mut log = new.finish(&reading(5)).unwrap();
    let whole = length();
    // As it is read back: a revoked key has no other times.
    let revoked = (Some(Wall::default()), Some(Wall::default()));
    let changed = application(
        1,
        &[("one", revoked.0, revoked.1), ("two", Some(NOON), None)],
    );
    log.append(std::slice::from_ref(&changed), &reading(6))
        .unwrap();
    let appended = length();
    log.append(&[], &reading(7)).unwrap();
    assert!(!log.is_long());
    let lengths = [whole, appended, length()];
    (copy, lengths, [first, second, changed])
}

#[test]
fn applications_are_read_back_as_changed_and_without_a_copy_there_is_nothing() {
    let directory = TempDir::new().unwrap();
    assert!(read(&LocalCopy::of(directory.path())).unwrap().is_none());
    let (copy, _, [first, second, changed]) = written(&directory);
    assert_eq!(
        read(&copy).unwrap().unwrap(),
        (vec![first, second, changed], reading(7))
    );
    let text = fs::read_to_string(copy.path()).unwrap();
    assert!(
        !text.contains("one") && text.contains(&Digest::of("one").to_string()),
        "{text}"
    );
}

#[test]
fn a_copy_that_is_not_finished_leaves_the_old_one_in_place() {
    let directory = TempDir::new().unwrap();
    let (copy, ..) = written(&directory);
    let mut unfinished = NewLocalCopy::begin(&copy).unwrap();
    unfinished.push(&[application(3, &[])]).unwrap();
    assert_eq!(read(&copy).unwrap().unwrap().1, reading(7));
    drop(unfinished);
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "the unfinished file was removed"
    );
}

#[test]
fn a_copy_that_is_cut_at_any_byte_ends_with_its_last_complete_write_or_is_damaged() {
    let directory = TempDir::new().unwrap();
    let (copy, lengths, [first, second, changed]) = written(&directory);
    let bytes = fs::read(copy.path()).unwrap();
    for cut in 0..=bytes.len() {
        fs::write(copy.path(), &bytes[..cut]).unwrap();
        let expected = match lengths.iter().filter(|end| **end <= cut).count() {
            0 => None,
            1 => Some((vec![first.clone(), second.clone()], reading(5))),
            2 => Some((
                vec![first.clone(), second.clone(), changed.clone()],
                reading(6),
            )),
            _ => Some((
                vec![first.clone(), second.clone(), changed.clone()],
                reading(7),
            )),
        };
        match (read(&copy), expected) {
            (Err(LocalCopyFlaw::Damaged(_)), None) => {}
            (Ok(Some(found)), Some(expected)) => assert_eq!(found, expected, "{cut}"),
            (found, _) => panic!("cut at {cut}: {found:?}"),
        }
    }
}

#[test]
fn a_changed_byte_makes_a_copy_unusable_unless_it_belongs_to_the_last_write() {
    let directory = TempDir::new().unwrap();
    let (copy, [_, before_last, _], _) = written(&directory);
    let bytes = fs::read(copy.path()).unwrap();
    for at in 0..bytes.len() {
        for flipped in [bytes[at] ^ 1, b'\n', 0] {
            if flipped == bytes[at] {
                continue;
            }
            let mut damaged = bytes.clone();
            damaged[at] = flipped;
            fs::write(copy.path(), &damaged).unwrap();
            match read(&copy) {
                Err(LocalCopyFlaw::Damaged(_)) => assert!(at < before_last, "byte {at}"),
                Ok(Some((_, found))) => {
                    assert!(at >= before_last && found == reading(6), "byte {at}");
                }
                found => panic!("byte {at}: {found:?}"),
            }
        }
    }
}

#[test]
fn lost_repeated_and_foreign_lines_make_a_copy_unusable() {
    let directory = TempDir::new().unwrap();
    let (copy, ..) = written(&directory);
    let text = fs::read_to_string(copy.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for lost in 0..lines.len() - 1 {
        let rest = lines
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != lost)
            .map(|(_, line)| *line);
        fs::write(copy.path(), rest.collect::<Vec<_>>().join("\n") + "\n").unwrap();
        assert!(
            matches!(read(&copy), Err(LocalCopyFlaw::Damaged(_))),
            "line {lost}"
        );
    }
    fs::write(copy.path(), format!("{text}{}\n", lines.last().unwrap())).unwrap();
    assert!(matches!(read(&copy), Err(LocalCopyFlaw::Damaged(_))));
    let mut other = Vec::new();
    line::CopyLine::Begin {
        format: line::FORMAT.into(),
        version: 2,
    }
    .write(0, &mut other)
    .unwrap();
    fs::write(copy.path(), other).unwrap();
    assert!(matches!(read(&copy), Err(LocalCopyFlaw::Unknown)));
}
