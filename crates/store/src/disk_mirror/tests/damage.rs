//! Damaged records are never served, never affect other records, and never cause a panic.

use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;

/// Two records; the first is to be damaged.
struct RecordPair {
    directory: TempDir,
    damaged: MirrorRecord,
    intact: MirrorRecord,
}

impl RecordPair {
    fn new() -> Self {
        let (directory, mirror) = fresh();
        let intact = put(&mirror, "sound", "[2]");
        let damaged = put(&mirror, "a", "[1]");
        Self {
            directory,
            damaged,
            intact,
        }
    }

    fn header_path(&self) -> PathBuf {
        header_path_of(&self.directory, &self.damaged.name)
    }

    fn content(&self) -> PathBuf {
        content_of(&self.directory, &self.damaged)
    }

    /// Only the other one remains; the damaged one is reported and removed.
    fn yields_one(&self, why: &str) {
        let again = open(&self.directory);
        let contents = again.all();
        assert_eq!(
            contents.records,
            std::slice::from_ref(&self.intact),
            "{why}"
        );
        assert_eq!(contents.refused.len(), 1, "{why}: {:?}", contents.refused);
        assert_eq!(contents.refused[0].file, self.header_path(), "{why}");
        assert_eq!(
            files(&self.directory).len(),
            2,
            "{why}: what is damaged is deleted"
        );
        assert_eq!(again.size(), (1, bytes(&self.directory)), "{why}");
        assert!(again.all().refused.is_empty(), "{why}: it is said once");
        self.can_be_put_down_in(&again);
    }

    /// The damaged record can be written again.
    fn can_be_put_down_in(&self, again: &Mirror) {
        again.put(&self.damaged).unwrap();
        assert_eq!(records(again), [self.damaged.clone(), self.intact.clone()]);
    }
}

/// Damages a file in each of these ways, every time from the original.
fn damage_file(pair: &RecordPair, file: &Path, damages: impl Fn(&[u8]) -> Vec<Vec<u8>>) {
    let whole = fs::read(file).unwrap();
    for (number, way) in damages(&whole).into_iter().enumerate() {
        fs::write(file, way).unwrap();
        pair.yields_one(&format!("way {number} of {}", file.display()));
    }
}

fn flipped(whole: &[u8]) -> Vec<Vec<u8>> {
    let flip = |bit: usize| {
        let mut bytes = whole.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    };
    (0..whole.len() * 8).map(flip).collect()
}

fn cut_or_grown(whole: &[u8]) -> Vec<Vec<u8>> {
    let cut = (0..whole.len()).map(|length| whole[..length].to_vec());
    let grown = [&b"\0"[..], b"more"].map(|more| [whole, more].concat());
    cut.chain(grown)
        .chain([vec![0; whole.len()], vec![b'x'; 200_000]])
        .collect()
}

#[test]
fn every_flipped_bit_is_detected() {
    let pair = RecordPair::new();
    damage_file(&pair, &pair.header_path(), flipped);
    damage_file(&pair, &pair.content(), flipped);
}

#[test]
fn truncated_or_extended_files_are_detected() {
    let pair = RecordPair::new();
    damage_file(&pair, &pair.header_path(), cut_or_grown);
    damage_file(&pair, &pair.content(), cut_or_grown);
}

#[test]
fn a_missing_file_invalidates_the_whole_record() {
    let pair = RecordPair::new();
    fs::remove_file(pair.content()).unwrap();
    pair.yields_one("no content");
    fs::remove_file(pair.header_path()).unwrap();
    let mirror = open(&pair.directory);
    assert_eq!(records(&mirror), std::slice::from_ref(&pair.intact));
    assert_eq!(
        files(&pair.directory).len(),
        2,
        "a content that nothing names is removed"
    );
    pair.can_be_put_down_in(&mirror);
}

#[test]
fn unknown_version_is_reported() {
    let pair = RecordPair::new();
    let mut bytes = fs::read(pair.header_path()).unwrap();
    bytes[7] = 2;
    fs::write(pair.header_path(), bytes).unwrap();
    let contents = open(&pair.directory).all();
    assert!(
        contents.refused[0].to_string().contains("format 2"),
        "{}",
        contents.refused[0]
    );
    assert_eq!(files(&pair.directory).len(), 2);
}

#[test]
fn a_record_under_the_name_of_another_is_rejected() {
    let pair = RecordPair::new();
    fs::copy(header_path_of(&pair.directory, "sound"), pair.header_path()).unwrap();
    pair.yields_one("the other's slip");
    let as_named = MirrorRecord {
        name: pair.damaged.name.clone(),
        ..pair.intact.clone()
    };
    fs::copy(header_path_of(&pair.directory, "sound"), pair.header_path()).unwrap();
    fs::copy(
        content_of(&pair.directory, &pair.intact),
        content_of(&pair.directory, &as_named),
    )
    .unwrap();
    pair.yields_one("both files of the other");
    fs::copy(content_of(&pair.directory, &pair.intact), pair.content()).unwrap();
    pair.yields_one("the other's content");
}

#[test]
fn damage_of_an_open_file_is_detected_too() {
    let pair = RecordPair::new();
    let mirror = open(&pair.directory);
    fs::write(pair.header_path(), "").unwrap();
    let contents = mirror.all();
    assert_eq!(
        (contents.records, contents.refused.len()),
        (vec![pair.intact.clone()], 1)
    );
    assert_eq!(files(&pair.directory).len(), 2);
    pair.can_be_put_down_in(&mirror);
}

#[test]
fn unreadable_files_are_kept_and_affect_no_other_file() {
    let lay_directory = |path: &Path| fs::create_dir(path).unwrap();
    let lay_socket = |path: &Path| drop(UnixListener::bind(path).unwrap());
    let lay_pipe =
        |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let lay_link = |path: &Path| std::os::unix::fs::symlink("nowhere", path).unwrap();
    let damages: [&dyn Fn(&Path); 4] = [&lay_directory, &lay_socket, &lay_pipe, &lay_link];
    for (number, lay) in damages.iter().enumerate() {
        for damages_header in [true, false] {
            let pair = RecordPair::new();
            let file = if damages_header {
                pair.header_path()
            } else {
                pair.content()
            };
            fs::remove_file(&file).unwrap();
            // Maximum length of a socket's path: about a hundred bytes.
            let short = pair.directory.path().join("s");
            lay(&short);
            fs::rename(&short, &file).unwrap();
            let mirror = open(&pair.directory);
            let contents = mirror.all();
            assert_eq!(
                contents.records,
                std::slice::from_ref(&pair.intact),
                "way {number}"
            );
            assert!(
                contents.refused[0].to_string().contains("cannot be read"),
                "{}",
                contents.refused[0]
            );
            assert_eq!(
                files(&pair.directory).len(),
                4,
                "way {number}: it is left, and so is the other file"
            );
            let again = mirror.put(&pair.damaged);
            if number == 0 {
                assert!(matches!(again, Err(MirrorError::Disk { .. })), "{again:?}");
                assert!(
                    files(&pair.directory)
                        .iter()
                        .all(|file| !file.ends_with("half"))
                );
            } else {
                again.unwrap();
                assert_eq!(
                    records(&mirror).len(),
                    2,
                    "way {number}: a new one takes its place"
                );
            }
        }
    }
}

#[test]
fn foreign_files_are_kept() {
    let pair = RecordPair::new();
    let stem = "a".repeat(64);
    let place = pair.directory.path().join("documents");
    let names = [
        "notes.txt".into(),
        ".slip".into(),
        "half".into(),
        format!("{stem}.slip.bak"),
        format!("{stem}.{}", "A".repeat(64)),
        format!("{}.slip", "é".repeat(32)),
        format!("{stem}x.half"),
    ];
    for name in &names {
        fs::write(place.join(name), "mine").unwrap();
    }
    fs::create_dir(place.join("directory")).unwrap();
    assert_eq!(records(&open(&pair.directory)).len(), 2);
    for name in &names {
        assert_eq!(fs::read(place.join(name)).unwrap(), b"mine", "{name}");
    }
    assert!(place.join("directory").is_dir());
}
