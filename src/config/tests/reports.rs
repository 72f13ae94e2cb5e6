//! Tests the table of invalid configurations, `reports.txt`, with the problems that are reported for each. An entry has
//! a title after `# `, then the file, variables after `$ `, and a line after `! ` for each problem.

use std::{fmt::Write as _, path::PathBuf};

use crate::config::{read_environment, read_text, resolve};

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/reports.txt")
}

fn table() -> String {
    std::fs::read_to_string(file()).unwrap()
}

/// An entry with the problems that are currently reported.
fn with_reports(entry: &str) -> String {
    let given: Vec<&str> = entry
        .lines()
        .filter(|line| !line.starts_with("! "))
        .collect();
    let (variables, text): (Vec<&str>, Vec<&str>) =
        given.iter().partition(|line| line.starts_with("$ "));
    let variables = variables
        .into_iter()
        .filter_map(|line| line.strip_prefix("$ ")?.split_once('='));
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let read = read_text(&text.join("\n")).and_then(|mut written| {
        written.overlay(read_environment(variables));
        resolve(&written)
    });
    let problems = read.err().unwrap_or_else(|| panic!("accepted: {entry}"));
    let mut now = given.join("\n");
    for problem in problems.0 {
        let line = problem.to_string().replace('\n', "\\n");
        write!(now, "\n! {line}").unwrap();
    }
    now
}

#[test]
fn every_problem_of_a_bad_configuration_is_reported_at_once_with_place_value_and_remedy() {
    let table = table();
    let entries = table.trim_end().split("\n\n");
    let now: Vec<String> = entries.clone().map(with_reports).collect();
    if std::env::var_os("SCOREGATE_WRITE").is_some() {
        std::fs::write(file(), now.join("\n\n") + "\n").unwrap();
        return;
    }
    for (now, expected) in now.iter().zip(entries) {
        assert_eq!(now, expected, "SCOREGATE_WRITE=1 writes the new reports");
    }
}

#[test]
fn no_report_contains_a_secret() {
    let table = table();
    let mut reports = table.lines().filter(|line| line.starts_with("! "));
    assert!(reports.clone().count() > 200);
    assert!(reports.all(|line| !line.contains("canary")));
}
