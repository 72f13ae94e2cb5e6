//! What no file may say: the paths of the machine it was written on, and the registries' hosts, which are cargo's
//! affair. The forbidden words are put together here, so that this file is free of them too.

use crate::{File, found, none, tree};

/// What is forbidden, and why.
const FORBIDDEN: [(&str, &str); 4] = [
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("crates", ".io"), "a registry's host"),
    (concat!("pypi", ".org"), "a registry's host"),
];

/// Files that other programs write, which may say where they got things.
const WRITTEN_BY_TOOLS: [&str; 2] = ["Cargo.lock", "tests/fuzz/Cargo.lock"];

fn out_of_place(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| !WRITTEN_BY_TOOLS.contains(&file.path.as_str())) {
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for (word, why) in FORBIDDEN.iter().filter(|(word, _)| line.contains(word)) {
                findings.push(format!("{}:{}: `{word}` is {why}", file.path, number + 1));
            }
        }
    }
    findings
}

#[test]
fn no_file_says_where_or_how_it_was_written() {
    none(&out_of_place(&tree()));
}

#[test]
fn the_word_test_fails_when_a_path_of_the_machine_is_planted() {
    for word in FORBIDDEN.map(|(word, _)| word) {
        let text = format!("fine\nsee {}x\n", word.to_uppercase());
        found(&out_of_place(&[File::planted("README.md", &text)]), 1, "README.md:2");
    }
    none(&out_of_place(&[File::planted(".github/workflows/ci.yml", "network/ temporary /tmp/x")]));
}
