//! Import of the logs of evaluation tools by the real program. The runs of each log are compared in unit tests.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    archive::scoring_import::archive,
    program::{CommandOutput, run},
};

const SUITES: &str = r#"
[[suite]]
name = "coding"
weight = 0.4
axes = ["correctness"]
feeds = ["combined"]
[[suite]]
name = "reasoning"
weight = 0.35
axes = ["correctness"]
feeds = ["combined"]
[[suite]]
name = "tooling"
weight = 0.25
axes = ["spec"]
feeds = ["combined"]
"#;

fn golden(name: &str) -> String {
    format!(
        "{}/tests/reference/tool_logs/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

fn import(directory: &Path, mapping: &str, more: &[&str]) -> CommandOutput {
    let archive = archive(directory);
    let mapping = golden(mapping);
    let fixed = [
        "scoring",
        "import",
        "--archive",
        &archive,
        "--from",
        "inspect",
        "--mapping",
        &mapping,
    ];
    run(&[&fixed, more].concat())
}

/// Runs, ordered by id.
fn parsed(lines: &str) -> Vec<Value> {
    let lines = lines
        .lines()
        .filter(|line| !line.starts_with("{\"suites\""));
    let mut runs: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    runs.sort_by_key(|run| run["id"].to_string());
    runs
}

#[test]
fn logs_are_imported_once_and_exported_as_their_runs() {
    let directory = TempDir::new().unwrap();
    let logs = [
        golden("inspect/several-scorers.eval"),
        golden("inspect/several-scorers-deflate.eval"),
    ];
    let logs = [logs[0].as_str(), logs[1].as_str()];
    let of_logs = "evaluations: 2, runs: 2, trials: 12 scored and 0 failed\n";
    let first = import(directory.path(), "inspect-all-axes.toml", &logs).with(0);
    assert_eq!(
        first.out,
        format!("{of_logs}2 imported, 0 already present, 0 rejected\n")
    );
    let second = import(directory.path(), "inspect-all-axes.toml", &logs).with(0);
    assert_eq!(
        second.out,
        format!("{of_logs}0 imported, 2 already present, 0 rejected\n")
    );

    let exported = run(&["scoring", "export", "--archive", &archive(directory.path())])
        .with(0)
        .out;
    let committed = ["several-scorers", "several-scorers-deflate"]
        .map(|log| std::fs::read_to_string(golden(&format!("runs/{log}.jsonl"))).unwrap());
    assert_eq!(parsed(&exported), parsed(&committed.concat()));
}

#[test]
fn a_dry_run_shows_what_would_be_imported_and_what_is_missing_and_writes_nothing() {
    let directory = TempDir::new().unwrap();
    let logs = golden("inspect");
    let shown = import(
        directory.path(),
        "inspect-all-axes.toml",
        &[&logs, "--dry-run"],
    )
    .with(1);
    let lines: Vec<&str> = shown.out.lines().collect();
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(
        words(0),
        [
            "FILE", "TASK", "MODEL", "SUITE", "AXES", "TIME", "RUNS", "TRIALS", "FAILED", "ABSENT"
        ]
    );
    let expected = ["arithmetic", "mockllm--meridian--atlas-4", "reasoning"];
    assert_eq!(words(2)[1..4], expected, "{}", shown.out);
    assert_eq!(words(2)[6..], ["1", "6", "0"]);
    let summary = "evaluations: 2, runs: 2, trials: 12 scored and 0 failed, invalid: 1, missing: 1, skipped: 2; \
         nothing was imported";
    assert_eq!(lines[3..], [summary], "{}", shown.out);
    for expected in [
        "inspect/crashed.eval: skipped: the evaluation of arithmetic was not finished; complete it with `inspect eval",
        "inspect/failures.eval: invalid: task arithmetic: sample 1, epoch 1: has no score \"match\" for axes.correctness",
        "inspect/stopped.eval: skipped: the evaluation of arithmetic was stopped by an error",
        "inspect/unscored.eval: missing: the mapping has no [tasks.\"judged\"]",
    ] {
        assert!(shown.err.contains(expected), "{expected}\n{}", shown.err);
    }
    let json = import(
        directory.path(),
        "inspect-all-axes.toml",
        &[&logs, "--dry-run", "--json"],
    )
    .with(1)
    .json();
    let entries = json["evaluations"].as_array().unwrap();
    let verdicts: Vec<&str> = entries
        .iter()
        .map(|entry| entry["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        verdicts,
        [
            "skipped",
            "invalid",
            "importable",
            "importable",
            "skipped",
            "missing"
        ]
    );
    assert_eq!(entries[2]["runs"][0]["suite"], "reasoning");
    assert_eq!(
        json["counts"]["problems"],
        serde_json::json!({"invalid": 1, "missing": 1, "skipped": 2})
    );
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "a dry run wrote a file"
    );
}

#[test]
fn logs_that_are_not_imported_do_not_hinder_others_and_are_counted() {
    let directory = TempDir::new().unwrap();
    let ended = import(
        directory.path(),
        "inspect-all-axes.toml",
        &[&golden("inspect"), "--json"],
    )
    .with(1);
    let counts = ended.json();
    assert_eq!(
        (&counts["imported"], &counts["rejected"]),
        (&2.into(), &0.into())
    );
    assert_eq!(counts["logs"]["scored"], 12);
    assert_eq!(
        ended.err.matches("several-scorers").count(),
        0,
        "{}",
        ended.err
    );
    assert_eq!(ended.err.matches(".eval: ").count(), 4, "{}", ended.err);
    // A skipped log is no error.
    let skipped = import(
        directory.path(),
        "inspect.toml",
        &[&golden("inspect/stopped.eval")],
    )
    .with(0);
    assert!(
        skipped.out.contains("skipped: 1\n0 imported"),
        "{}",
        skipped.out
    );
}

#[test]
fn failed_samples_and_logs_with_one_axis_are_imported_as_they_are() {
    let directory = TempDir::new().unwrap();
    let suites = directory.path().join("suites.toml");
    std::fs::write(&suites, SUITES).unwrap();
    let archive = archive(directory.path());
    run(&[
        "scoring",
        "suites",
        "set",
        suites.to_str().unwrap(),
        "--archive",
        &archive,
    ])
    .with(0);
    let failures = import(
        directory.path(),
        "inspect.toml",
        &[&golden("inspect/failures.eval")],
    )
    .with(0);
    let expected = "evaluations: 1, runs: 1, trials: 3 scored and 4 failed (1 harness, 1 throttled, 1 timeout, 1 unreachable)\n\
                    1 imported, 0 already present, 0 rejected\n";
    assert_eq!(failures.out, expected);
    let mapping = golden("lm-eval.toml");
    let of_lm_eval = [
        "scoring",
        "import",
        "--archive",
        &archive,
        "--from",
        "lm-eval",
        "--mapping",
        &mapping,
    ];
    let logs = golden("lm-eval");
    let shown = run(&[&of_lm_eval[..], &[&logs, "--dry-run"]].concat())
        .with(0)
        .out;
    assert!(
        shown.contains("latency,cost\n") && shown.contains("evaluations: 2, runs: 2, trials: 5"),
        "{shown}"
    );
    for (imported, existing) in [(2, 0), (0, 2)] {
        let counts = run(&[&of_lm_eval[..], &[&logs]].concat()).with(0).out;
        let expected = format!("{imported} imported, {existing} already present, 0 rejected\n");
        assert!(counts.ends_with(&expected), "{counts}");
    }
    let exported = run(&["scoring", "export", "--archive", &archive])
        .with(0)
        .out;
    let committed = ["failures", "lm-eval"]
        .map(|log| std::fs::read_to_string(golden(&format!("runs/{log}.jsonl"))).unwrap());
    assert_eq!(parsed(&exported), parsed(&committed.concat()));
}

#[test]
fn wrong_arguments_are_reported_with_the_remedy_before_anything_is_written() {
    let directory = TempDir::new().unwrap();
    let log = golden("inspect/failures.eval");
    let archive = archive(directory.path());
    let rows: [(&[&str], &str); 6] = [
        (&["--from", "inspect", &log], "--mapping <FILE>"),
        (&["--dry-run", &log], "--from <TOOL>"),
        (
            &["--from", "weights", "--mapping", "m", &log],
            "inspect, lm-eval",
        ),
        (
            &["--from", "inspect", "--mapping", "no-such.toml", &log],
            "the mapping no-such.toml cannot be read",
        ),
        (
            &["--from", "inspect", "--mapping", &log, &log],
            "the mapping",
        ),
        (
            &[
                "--from",
                "inspect",
                "--mapping",
                &golden("inspect.toml"),
                "no-such.eval",
            ],
            "no-such.eval cannot be read",
        ),
    ];
    for (arguments, problem) in rows {
        let ended =
            run(&[&["scoring", "import", "--archive", &archive], arguments].concat()).with(1);
        assert!(ended.err.contains(problem), "{arguments:?}\n{}", ended.err);
    }
    let empty = TempDir::new().unwrap();
    let nothing = import(
        directory.path(),
        "inspect.toml",
        &[empty.path().to_str().unwrap()],
    )
    .with(1);
    assert!(
        nothing
            .err
            .contains("has no file named *.eval or DATE_*.json"),
        "{}",
        nothing.err
    );
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
