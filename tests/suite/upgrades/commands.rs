//! Command lines of each release: one that has changed is refused with all new words, and works with them.

use std::collections::BTreeSet;

use tempfile::TempDir;

use super::releases::Release;
use crate::program::{Keys, run};

/// Replaces the first old word by the new one, and leaves out the other old words.
fn rewritten(arguments: &[String], advice: &str) -> Vec<String> {
    let mut arguments = arguments.to_vec();
    for line in advice
        .lines()
        .filter_map(|line| line.strip_prefix("renamed: write `"))
    {
        let (new, old) = line
            .trim_end_matches('`')
            .split_once("` instead of `")
            .unwrap();
        let mut old = old.split(' ');
        let first = old.next().unwrap();
        let rest: BTreeSet<&str> = old.collect();
        arguments.retain(|argument| !rest.contains(argument.as_str()));
        for argument in &mut arguments {
            if argument.split('=').next() == Some(first) {
                *argument = argument.replacen(first, new, 1);
            }
        }
    }
    arguments
}

#[test]
fn old_commands_are_refused_with_all_new_words_and_work_with_them() {
    for release in Release::all() {
        for line in release.text("commands").lines() {
            let directory = TempDir::new().unwrap();
            let path = directory.path().to_str().unwrap();
            // A new store needs a directory without one.
            let id = if line == "store new" {
                String::new()
            } else {
                Keys(directory.path()).create("pro").0
            };
            if line.starts_with("store import") {
                let backup = directory.path().join("backup.db");
                run(&[
                    "store",
                    "backup",
                    backup.to_str().unwrap(),
                    "--data-dir",
                    path,
                ])
                .with(0);
            }
            let line = line.replace("APP", &id).replace("DIR", path);
            let mut old: Vec<String> = line.split(' ').map(str::to_owned).collect();
            old.extend(["--data-dir".into(), path.into()]);
            // These need a server, or are one: it is enough that their words are accepted.
            old.extend(
                ["scoring", "top"]
                    .contains(&&*old[0])
                    .then(|| "--help".into()),
            );
            let words: Vec<&str> = old.iter().map(String::as_str).collect();
            let refused = run(&words).with(1).err;
            let new = rewritten(&old, &refused);
            let words: Vec<&str> = new.iter().map(String::as_str).collect();
            assert_ne!(new, old, "{refused}");
            run(&words).with(0);
        }
    }
}
