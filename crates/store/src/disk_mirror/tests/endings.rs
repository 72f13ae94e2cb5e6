//! A process killed anywhere, or a full disk, leaves the old record or the new one, never a torn one.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;

/// Environment variable with the directory for the other process. The same test runs there, in the other role.
const PLACE: &str = "MIRROR_OF_THE_OTHER_PROCESS";

/// A test of this file in a process of its own, after these shell commands.
fn other_process(words: &str, test: &str, directory: &TempDir) -> Child {
    let script =
        format!("{words} exec \"$0\" --exact --nocapture disk_mirror::tests::endings::{test}");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(script)
        .arg(std::env::current_exe().unwrap());
    command
        .env(PLACE, directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The mirror, in the other process.
fn given() -> Option<Mirror> {
    let place = std::env::var_os(PLACE)?;
    Some(Mirror::open(&Path::new(&place).join("documents"), MOST).unwrap())
}

fn content(round: usize) -> String {
    format!("{round} ").repeat(5_000)
}

#[expect(clippy::print_stdout, reason = "so it is heard how far it is")]
fn puts_without_end(mirror: &Mirror) {
    for round in 0.. {
        put(mirror, "a", &content(round));
        put(mirror, "b", &content(round));
        println!("\nround {round}");
    }
}

#[test]
fn a_killed_process_leaves_the_old_record_or_the_new_one() {
    if let Some(mirror) = given() {
        return puts_without_end(&mirror);
    }
    let directory = TempDir::new().unwrap();
    for life in 0..20 {
        let mut child = other_process(
            "",
            "a_killed_process_leaves_the_old_record_or_the_new_one",
            &directory,
        );
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let rounds = lines.filter_map(|line| line.strip_prefix("round ")?.parse::<usize>().ok());
        let reported = rounds.take(1 + life).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let mirror = open(&directory);
        let there = records(&mirror);
        assert_eq!(there.len(), 2, "life {life}");
        for record in &there {
            let round: usize = std::str::from_utf8(&record.content)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            assert!(round >= reported, "life {life}: what was done is there");
            assert_eq!(record.content, content(round), "life {life}");
        }
        assert_eq!(
            files(&directory).len(),
            4,
            "life {life}: nothing half done is left"
        );
    }
}

#[test]
fn every_interrupted_step_of_a_put_leaves_the_old_record_or_the_new_one() {
    let (before, mirror) = fresh();
    let old = put(&mirror, "a", "old content");
    let (after, mirror) = fresh();
    let new = put(&mirror, "a", "new content");
    let place = |directory: &TempDir, name: &str| directory.path().join("documents").join(name);
    let half = header_path_of(&before, "a").with_extension("half");
    let half = half.file_name().unwrap().to_str().unwrap();
    let header = fs::read(header_path_of(&after, "a")).unwrap();
    let content = fs::read(content_of(&after, &new)).unwrap();
    let opens_to = |record: &MirrorRecord| {
        assert_eq!(records(&open(&before)), std::slice::from_ref(record));
        assert_eq!(files(&before).len(), 2);
    };
    for length in 0..=content.len() {
        fs::write(place(&before, half), &content[..length]).unwrap();
        opens_to(&old);
    }
    for length in 0..=header.len() {
        fs::write(content_of(&before, &new), &content).unwrap();
        fs::write(place(&before, half), &header[..length]).unwrap();
        opens_to(&old);
    }
    fs::write(content_of(&before, &new), &content).unwrap();
    fs::write(header_path_of(&before, "a"), &header).unwrap();
    opens_to(&new);
}

fn finds_no_room(mirror: &Mirror) {
    let before = records(mirror);
    for name in ["a", "new"] {
        let refused = mirror.put(&record(name, &"x".repeat(60_000))).unwrap_err();
        assert!(
            matches!(
                refused,
                MirrorError::Disk {
                    verb: "written",
                    ..
                }
            ),
            "{refused}"
        );
        assert_eq!(
            records(mirror),
            before,
            "what stood there stands there still"
        );
        assert_eq!(mirror.size().0, 2);
    }
    let long = "l".repeat(40_000);
    assert!(matches!(
        relabel(mirror, "a", &long),
        Err(MirrorError::Disk { .. })
    ));
    let torn = MirrorRecord {
        label: long,
        ..record("a", "small, but its slip is not")
    };
    assert!(matches!(mirror.put(&torn), Err(MirrorError::Disk { .. })));
    assert_eq!(records(mirror), before);
    put(mirror, "b", "what fits is taken");
}

#[test]
fn a_full_disk_keeps_the_existing_records() {
    if let Some(mirror) = given() {
        return finds_no_room(&mirror);
    }
    let (directory, mirror) = fresh();
    let one = put(&mirror, "a", "old");
    let two = put(&mirror, "b", "old");
    drop(mirror);
    // The kernel cuts a write short and fails the next one, as on a full disk.
    let cut = "trap '' XFSZ; ulimit -f 16;";
    let child = other_process(cut, "a_full_disk_keeps_the_existing_records", &directory);
    let ended = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && output.contains("1 passed"),
        "{output}"
    );
    assert_eq!(files(&directory).len(), 4, "nothing half done is left");
    let two = MirrorRecord {
        content: "what fits is taken".into(),
        ..two
    };
    assert_eq!(records(&open(&directory)), [two, one]);
}
