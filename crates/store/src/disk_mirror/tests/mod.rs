//! The disk mirror keeps records across restarts, in order and within its bounds.

mod damage;
mod endings;
mod model;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::directory::MirrorDirectory;
use super::names::{FileStem, sum_of};
use super::record_header::RecordHeader;
use super::*;

const MOST: u64 = 1 << 20;

fn open(directory: &TempDir) -> Mirror {
    open_with(directory, MOST)
}

fn open_with(directory: &TempDir, most_bytes: u64) -> Mirror {
    Mirror::open(&directory.path().join("documents"), most_bytes).unwrap()
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
    mirror.put(&record).unwrap();
    record
}

/// Writes a record again with another label. Returns whether it exists.
fn relabel(mirror: &Mirror, name: &str, label: &str) -> Result<bool, MirrorError> {
    let Some(there) = mirror
        .all()
        .records
        .into_iter()
        .find(|record| record.name == name)
    else {
        return Ok(false);
    };
    mirror
        .put(&MirrorRecord {
            label: label.into(),
            ..there
        })
        .map(|()| true)
}

/// All records; fails if any was rejected.
fn records(mirror: &Mirror) -> Vec<MirrorRecord> {
    let stock = mirror.all();
    assert!(stock.refused.is_empty(), "{:?}", stock.refused);
    stock.records
}

fn names(mirror: &Mirror) -> String {
    records(mirror)
        .iter()
        .map(|record| record.name.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

/// All files below the directory, sorted.
fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path().join("documents")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn bytes(directory: &TempDir) -> u64 {
    files(directory)
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum()
}

fn header_path_of(directory: &TempDir, name: &str) -> PathBuf {
    MirrorDirectory::open(&directory.path().join("documents"))
        .unwrap()
        .header_path(&FileStem::of(name))
}

fn content_of(directory: &TempDir, record: &MirrorRecord) -> PathBuf {
    let directory = MirrorDirectory::open(&directory.path().join("documents")).unwrap();
    directory.content(&FileStem::of(&record.name), sum_of(&record.content))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn records_survive_a_restart_newest_first() {
    let (directory, mirror) = fresh();
    let one = put(&mirror, "one", "[1]");
    let two = put(&mirror, "two", "[2]");
    let empty = put(&mirror, "../../etc/passwd\0\n", "");
    assert_eq!(records(&mirror), [empty.clone(), two.clone(), one.clone()]);
    drop(mirror);
    assert_eq!(records(&open(&directory)), [empty, two, one]);
}

#[test]
fn order_is_kept_across_restarts() {
    let (directory, mirror) = fresh();
    put(&mirror, "a", "1");
    put(&mirror, "b", "1");
    drop(mirror);
    let mirror = open(&directory);
    put(&mirror, "c", "1");
    assert!(relabel(&mirror, "a", "again").unwrap());
    drop(mirror);
    assert_eq!(names(&open(&directory)), "a c b");
}

#[test]
fn a_record_replaces_the_one_with_its_name() {
    let (directory, mirror) = fresh();
    put(&mirror, "a", "old");
    let new = put(&mirror, "a", "newer");
    assert_eq!(records(&mirror), std::slice::from_ref(&new));
    assert_eq!(files(&directory).len(), 2, "the old content is gone");
    assert_eq!(mirror.size(), (1, bytes(&directory)));
    assert_eq!(records(&open(&directory)), [new]);
}

#[test]
fn a_new_label_does_not_rewrite_the_content() {
    use std::os::unix::fs::MetadataExt as _;
    let (directory, mirror) = fresh();
    let mut one = put(&mirror, "a", "content");
    let file = content_of(&directory, &one);
    let before = fs::metadata(&file).unwrap().ino();
    // Held open, so that a new file cannot reuse its inode.
    let _held = fs::File::open(&file).unwrap();
    one.label = "confirmed".into();
    assert!(relabel(&mirror, "a", "confirmed").unwrap());
    assert_eq!(records(&mirror), std::slice::from_ref(&one));
    one.label = "put down again".into();
    mirror.put(&one).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().ino(),
        before,
        "equal content is not written again"
    );
    assert_eq!(records(&open(&directory)), [one]);
    assert!(!relabel(&mirror, "b", "nothing").unwrap());
}

#[test]
fn removed_content_is_detected_and_written_again() {
    let (directory, mirror) = fresh();
    let one = put(&mirror, "a", "content");
    fs::remove_file(content_of(&directory, &one)).unwrap();
    assert!(!relabel(&mirror, "a", "confirmed").unwrap());
    mirror.put(&one).unwrap();
    assert_eq!(records(&mirror), [one]);
}

#[test]
fn a_record_can_be_removed_twice() {
    let (directory, mirror) = fresh();
    put(&mirror, "a", "1");
    let other = put(&mirror, "b", "1");
    mirror.remove("a").unwrap();
    mirror.remove("a").unwrap();
    mirror.remove("never there").unwrap();
    assert_eq!(files(&directory).len(), 2);
    assert_eq!(records(&open(&directory)), [other]);
}

#[test]
fn the_least_recently_written_record_is_evicted_first() {
    let directory = TempDir::new().unwrap();
    let mirror = open_with(&directory, 4_000);
    let content = "x".repeat(700);
    for name in ["a", "b", "c", "d"] {
        put(&mirror, name, &content);
    }
    assert!(relabel(&mirror, "a", "confirmed").unwrap());
    put(&mirror, "c", &"y".repeat(700));
    put(&mirror, "e", &content);
    assert_eq!(names(&mirror), "e c a d");
    put(&mirror, "e", &"z".repeat(800));
    assert_eq!(names(&mirror), "e c a d", "a record makes room for itself");
    assert!(bytes(&directory) <= 4_000);
    drop(mirror);
    assert_eq!(
        names(&open_with(&directory, 2_000)),
        "e c",
        "less room than before"
    );
    assert_eq!(files(&directory).len(), 4);
}

#[test]
fn the_number_of_records_is_limited() {
    let (directory, mirror) = fresh();
    let most = 4_096;
    for number in 0..most + 3 {
        put(&mirror, &number.to_string(), "");
    }
    put(&mirror, "3", "the oldest, by now the newest");
    assert_eq!(mirror.size().0, most);
    drop(mirror);
    let mirror = open(&directory);
    let records = records(&mirror);
    assert_eq!(
        (
            records.len() as u64,
            records[0].name.as_str(),
            records[4_095].name.as_str()
        ),
        (most, "3", "4")
    );
}

#[test]
fn a_record_larger_than_a_quarter_is_rejected_and_the_old_one_stays() {
    let directory = TempDir::new().unwrap();
    let mirror = open_with(&directory, 4_000);
    let old = put(&mirror, "a", "old");
    let refused = mirror.put(&record("a", &"x".repeat(1_000))).unwrap_err();
    assert!(
        matches!(&refused, MirrorError::TooLarge { name, most: 1_000, .. } if name == "a"),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("the limit is 1000"),
        "{refused}"
    );
    let mirror = open(&directory);
    assert!(matches!(
        relabel(&mirror, "a", &"x".repeat(70_000)),
        Err(MirrorError::TooLarge { most: 65_536, .. })
    ));
    assert_eq!(records(&mirror), [old]);
}

#[test]
fn all_files_are_accessible_to_their_owner_only() {
    let (directory, mirror) = fresh();
    put(&mirror, "a", "1");
    assert_eq!(mode(&directory.path().join("documents")), 0o700);
    assert!(files(&directory).iter().all(|file| mode(file) == 0o600));
}

#[test]
fn a_mirror_that_cannot_be_created_names_its_path() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("documents"), "a file").unwrap();
    let refused = Mirror::open(&directory.path().join("documents"), MOST).unwrap_err();
    assert!(
        refused.to_string().contains("documents cannot be created"),
        "{refused}"
    );
}
