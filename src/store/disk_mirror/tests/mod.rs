//! The disk mirror keeps records across restarts, in order and within its bounds.

mod damage;
mod endings;
mod model;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

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
    let shelf = open(&directory);
    (directory, shelf)
}

fn jar(name: &str, content: &str) -> MirrorRecord {
    MirrorRecord { name: name.into(), label: format!("label of {name}"), content: content.to_owned().into() }
}

/// Writes a record and returns it.
fn put(shelf: &Mirror, name: &str, content: &str) -> MirrorRecord {
    let jar = jar(name, content);
    shelf.put(&jar).unwrap();
    jar
}

/// Writes a record again with another label. Returns whether it exists.
fn relabel(shelf: &Mirror, name: &str, label: &str) -> Result<bool, MirrorError> {
    let Some(there) = shelf.all().jars.into_iter().find(|jar| jar.name == name) else { return Ok(false) };
    shelf.put(&MirrorRecord { label: label.into(), ..there }).map(|()| true)
}

/// All records; fails if any was rejected.
fn jars(shelf: &Mirror) -> Vec<MirrorRecord> {
    let stock = shelf.all();
    assert!(stock.refused.is_empty(), "{:?}", stock.refused);
    stock.jars
}

fn names(shelf: &Mirror) -> String {
    jars(shelf).iter().map(|jar| jar.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// All files below the directory, sorted.
fn files(directory: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.path().join("documents")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn bytes(directory: &TempDir) -> u64 {
    files(directory).iter().map(|file| fs::metadata(file).unwrap().len()).sum()
}

fn slip_of(directory: &TempDir, name: &str) -> PathBuf {
    MirrorDirectory::open(&directory.path().join("documents")).unwrap().slip(&FileStem::of(name))
}

fn content_of(directory: &TempDir, jar: &MirrorRecord) -> PathBuf {
    let directory = MirrorDirectory::open(&directory.path().join("documents")).unwrap();
    directory.content(&FileStem::of(&jar.name), Sha256Sum::of(&jar.content))
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_was_put_down_is_there_after_a_restart_newest_first() {
    let (directory, shelf) = fresh();
    let (one, two) = (put(&shelf, "one", "[1]"), put(&shelf, "two", "[2]"));
    let empty = put(&shelf, "../../etc/passwd\0\n", "");
    assert_eq!(jars(&shelf), [empty.clone(), two.clone(), one.clone()]);
    drop(shelf);
    assert_eq!(jars(&open(&directory)), [empty, two, one]);
}

#[test]
fn order_goes_on_across_restarts() {
    let (directory, shelf) = fresh();
    put(&shelf, "a", "1");
    put(&shelf, "b", "1");
    drop(shelf);
    let shelf = open(&directory);
    put(&shelf, "c", "1");
    assert!(relabel(&shelf, "a", "again").unwrap());
    drop(shelf);
    assert_eq!(names(&open(&directory)), "a c b");
}

#[test]
fn a_jar_takes_the_place_of_the_one_of_its_name() {
    let (directory, shelf) = fresh();
    put(&shelf, "a", "old");
    let new = put(&shelf, "a", "newer");
    assert_eq!(jars(&shelf), std::slice::from_ref(&new));
    assert_eq!(files(&directory).len(), 2, "the old content is gone");
    assert_eq!(shelf.size(), (1, bytes(&directory)));
    assert_eq!(jars(&open(&directory)), [new]);
}

#[test]
fn a_new_label_leaves_the_content_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let (directory, shelf) = fresh();
    let mut one = put(&shelf, "a", "content");
    let file = content_of(&directory, &one);
    let before = fs::metadata(&file).unwrap().ino();
    // Held open, so that a new file cannot reuse its inode.
    let _held = fs::File::open(&file).unwrap();
    one.label = "confirmed".into();
    assert!(relabel(&shelf, "a", "confirmed").unwrap());
    assert_eq!(jars(&shelf), std::slice::from_ref(&one));
    one.label = "put down again".into();
    shelf.put(&one).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), before, "equal content is not written again");
    assert_eq!(jars(&open(&directory)), [one]);
    assert!(!relabel(&shelf, "b", "nothing").unwrap());
}

#[test]
fn content_that_was_taken_away_is_noticed_and_written_again() {
    let (directory, shelf) = fresh();
    let one = put(&shelf, "a", "content");
    fs::remove_file(content_of(&directory, &one)).unwrap();
    assert!(!relabel(&shelf, "a", "confirmed").unwrap());
    shelf.put(&one).unwrap();
    assert_eq!(jars(&shelf), [one]);
}

#[test]
fn a_jar_that_was_removed_is_gone_and_gone_again_is_fine() {
    let (directory, shelf) = fresh();
    put(&shelf, "a", "1");
    let other = put(&shelf, "b", "1");
    shelf.remove("a").unwrap();
    shelf.remove("a").unwrap();
    shelf.remove("never there").unwrap();
    assert_eq!(files(&directory).len(), 2);
    assert_eq!(jars(&open(&directory)), [other]);
}

#[test]
fn what_was_put_down_or_labelled_longest_ago_goes_first() {
    let directory = TempDir::new().unwrap();
    let shelf = open_with(&directory, 4_000);
    let content = "x".repeat(700);
    for name in ["a", "b", "c", "d"] {
        put(&shelf, name, &content);
    }
    assert!(relabel(&shelf, "a", "confirmed").unwrap());
    put(&shelf, "c", &"y".repeat(700));
    put(&shelf, "e", &content);
    assert_eq!(names(&shelf), "e c a d");
    put(&shelf, "e", &"z".repeat(800));
    assert_eq!(names(&shelf), "e c a d", "a jar makes room for itself");
    assert!(bytes(&directory) <= 4_000);
    drop(shelf);
    assert_eq!(names(&open_with(&directory, 2_000)), "e c", "less room than before");
    assert_eq!(files(&directory).len(), 4);
}

#[test]
fn there_are_never_more_than_so_many_jars() {
    let (directory, shelf) = fresh();
    let most = 4_096;
    for number in 0..most + 3 {
        put(&shelf, &number.to_string(), "");
    }
    put(&shelf, "3", "the oldest, by now the newest");
    assert_eq!(shelf.size().0, most);
    drop(shelf);
    let shelf = open(&directory);
    let jars = jars(&shelf);
    assert_eq!((jars.len() as u64, jars[0].name.as_str(), jars[4_095].name.as_str()), (most, "3", "4"));
}

#[test]
fn a_jar_larger_than_a_quarter_is_refused_and_what_stood_there_stays() {
    let directory = TempDir::new().unwrap();
    let shelf = open_with(&directory, 4_000);
    let old = put(&shelf, "a", "old");
    let refused = shelf.put(&jar("a", &"x".repeat(1_000))).unwrap_err();
    assert!(matches!(&refused, MirrorError::TooLarge { name, most: 1_000, .. } if name == "a"), "{refused}");
    assert!(refused.to_string().contains("the limit is 1000"), "{refused}");
    let shelf = open(&directory);
    assert!(matches!(
        relabel(&shelf, "a", &"x".repeat(70_000)),
        Err(MirrorError::TooLarge { most: 65_536, .. })
    ));
    assert_eq!(jars(&shelf), [old]);
}

#[test]
fn everything_is_for_its_owner_alone() {
    let (directory, shelf) = fresh();
    put(&shelf, "a", "1");
    assert_eq!(mode(&directory.path().join("documents")), 0o700);
    assert!(files(&directory).iter().all(|file| mode(file) == 0o600));
}

#[test]
fn a_shelf_that_cannot_be_made_says_where() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("documents"), "a file").unwrap();
    let refused = Mirror::open(&directory.path().join("documents"), MOST).unwrap_err();
    assert!(refused.to_string().contains("documents cannot be made"), "{refused}");
}
