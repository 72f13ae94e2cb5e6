//! Damaged logs of lm-evaluation-harness.

use std::path::Path;

use tempfile::TempDir;

use crate::tool_logs::*;

use super::golden_files::{golden_file, golden_mapping};

const RESULTS: &str = "results_2026-11-24.json";
const SAMPLES: &str = "samples_echoes_2026-11-24.jsonl";

type LogDamage<'a> = Box<dyn Fn(&str) -> String + 'a>;

/// The result for the evaluation `echoes` after a change to one file.
fn read_changed(name: &str, change: impl Fn(&str) -> String) -> Result<MappedRuns, String> {
    let directory = TempDir::new().unwrap();
    for file in [RESULTS, SAMPLES, "samples_capitals_2026-11-24.jsonl"] {
        let text = std::fs::read_to_string(golden_file("lm-eval").join(file)).unwrap();
        let changed = if file == name { change(&text) } else { text };
        std::fs::write(directory.path().join(file), changed).unwrap();
    }
    read_echoes(&directory.path().join(RESULTS))
}

fn read_echoes(path: &Path) -> Result<MappedRuns, String> {
    let mut read = read_log(
        EvaluationTool::LmEval,
        path,
        &golden_mapping("lm-eval.toml"),
    );
    read.pop().unwrap().map_err(|problem| problem.to_string())
}

#[test]
fn every_damage_is_reported_with_file_line_and_remedy() {
    let lines = |text: &str, count: usize| {
        text.lines()
            .take(count)
            .map(|line| format!("{line}\n"))
            .collect::<Vec<_>>()
    };
    let cut = |text: &str| text.get(..text.len() / 2).unwrap().to_owned();
    let replaced = |from: &'static str, to: &'static str| {
        move |text: &str| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        }
    };
    let rows: [(&str, LogDamage<'_>, &str); 12] = [
        (
            RESULTS,
            Box::new(cut),
            "is not a results file of lm-evaluation-harness: EOF while parsing",
        ),
        (RESULTS, Box::new(|_| "[]".into()), "is not a results file"),
        (
            RESULTS,
            Box::new(replaced("\"date\": 1", "\"date\": -1")),
            "date: is missing or not a time",
        ),
        (
            RESULTS,
            Box::new(replaced("\"date\": 1", "\"dated\": 1")),
            "date: is missing or not a time",
        ),
        (
            RESULTS,
            Box::new(replaced("\"model_name\"", "\"other\"")),
            "model_name: is missing; name the model",
        ),
        (
            RESULTS,
            Box::new(replaced("\"exact_match\": true", "\"exact_match\": false")),
            "a lower exact_match is better",
        ),
        (
            SAMPLES,
            Box::new(cut),
            "samples_echoes_2026-11-24.jsonl: line 3: EOF while parsing",
        ),
        (
            SAMPLES,
            Box::new(|_| String::new()),
            "has no samples; evaluate again",
        ),
        (
            SAMPLES,
            Box::new(move |text| lines(text, 1).concat()),
            "has 1 of 2 samples; copy the file again",
        ),
        (
            SAMPLES,
            Box::new(|text| text.repeat(2)),
            "line 5: document 0 is in the file twice",
        ),
        (
            SAMPLES,
            Box::new(replaced("\"doc_id\": 1", "\"doc\": 1")),
            "line 2: missing field `doc_id`",
        ),
        (
            SAMPLES,
            Box::new(replaced("\"exact_match\": 0.0", "\"exact_match\": 7")),
            "document 1: exact_match is 7, outside",
        ),
    ];
    for (name, change, problem) in rows {
        let found = read_changed(name, &change).unwrap_err();
        assert!(found.contains(problem), "{problem}: {found}");
    }
    assert!(read_changed(SAMPLES, str::to_owned).is_ok());
}

#[test]
fn a_metric_that_is_not_a_number_is_a_failure_of_the_harness() {
    let runs = read_changed(SAMPLES, |text| {
        text.replacen("\"exact_match\": 1.0", "\"exact_match\": NaN", 1)
    })
    .unwrap();
    assert_eq!((runs.scored, runs.failed.len()), (1, 1));
    assert!(
        runs.runs[0]
            .write()
            .contains("{\"failure\":{\"reason\":\"harness\"}}"),
        "{runs:?}"
    );
}

#[test]
fn results_without_their_samples_are_missing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join(RESULTS);
    let text = std::fs::read_to_string(golden_file("lm-eval").join(RESULTS)).unwrap();
    std::fs::write(&path, &text).unwrap();
    let found = read_echoes(&path).unwrap_err();
    assert!(
        found.contains("has no \"samples_echoes_2026-11-24.jsonl\" next to the results"),
        "{found}"
    );
    assert!(found.contains("evaluate with `--log_samples`"), "{found}");
    let read = read_log(
        EvaluationTool::LmEval,
        &path,
        &LogMapping::parse("").unwrap(),
    );
    let all = read.last().unwrap().as_ref().unwrap_err().to_string();
    for missing in [
        "no [tasks.\"echoes\"]",
        "no [models.\"meridian/atlas-4\"]",
        "evaluate with `--log_samples`",
    ] {
        assert!(all.contains(missing), "{missing}: {all}");
    }
    // The name of a task must not lead to another directory.
    std::fs::create_dir(directory.path().join("samples_x")).unwrap();
    std::fs::write(directory.path().join("y_2026-11-24.jsonl"), "").unwrap();
    let hostile = text.replacen(
        "\"echoes\": {\n      \"task\"",
        "\"x/../y\": {\n      \"task\"",
        1,
    );
    assert_ne!(hostile, text);
    std::fs::write(&path, hostile).unwrap();
    let mapping = std::fs::read_to_string(golden_file("lm-eval.toml")).unwrap();
    let mapping =
        LogMapping::parse(&mapping.replace("[tasks.echoes]", "[tasks.\"x/../y\"]")).unwrap();
    let read = read_log(EvaluationTool::LmEval, &path, &mapping);
    let found = read.last().unwrap().as_ref().unwrap_err().to_string();
    assert!(
        found.contains("has no \"samples_x/../y_2026-11-24.jsonl\" next to the results"),
        "{found}"
    );
}
