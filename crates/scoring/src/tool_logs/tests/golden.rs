//! Converts the golden files of the tools to runs.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::Value;

use crate::{RunFailure, tool_logs::*};

use super::golden_files::{golden_file, golden_mapping, problem_of, read_one};

/// Compares runs with the committed runs.
fn assert_runs(name: &str, read: &[Result<MappedRuns, LogProblem>]) {
    let runs = read.iter().flat_map(|runs| &runs.as_ref().unwrap().runs);
    let text: String = runs.map(|run| run.write() + "\n").collect();
    let file = golden_file("runs").join(name);
    if std::env::var_os("SCOREGATE_WRITE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &text).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        text, committed,
        "if {name} changed on purpose, write it with SCOREGATE_WRITE=1"
    );
}

fn trials(runs: &MappedRuns) -> Vec<Value> {
    let runs = runs
        .runs
        .iter()
        .map(|run| serde_json::to_value(run).unwrap());
    runs.flat_map(|run| run["trials"].as_array().unwrap().clone())
        .collect()
}

/// The values on an axis; for a failed trial, the reason.
fn axis(runs: &MappedRuns, axis: &str) -> Vec<Value> {
    let value = |trial: &Value| {
        let reason = &trial["failure"]["reason"];
        trial
            .get("scores")
            .map_or(reason, |scores| &scores[axis])
            .clone()
    };
    trials(runs).iter().map(value).collect()
}

#[test]
fn logs_of_inspect_become_runs_with_one_trial_for_each_sample_and_epoch() {
    let mapping = golden_mapping("inspect-all-axes.toml");
    for log in ["several-scorers", "several-scorers-deflate"] {
        let runs = read_one(&golden_file(&format!("inspect/{log}.eval")), &mapping).unwrap();
        assert_eq!(
            (runs.model_id.as_str(), runs.scored, runs.runs.len()),
            ("mockllm--meridian--atlas-4", 6, 1)
        );
        assert_eq!(
            axis(&runs, "correctness"),
            [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
            "C, I, I in two epochs"
        );
        assert_eq!(
            axis(&runs, "spec"),
            [1.0, 0.25, 0.0, 1.0, 0.25, 0.0],
            "C, P, N"
        );
        assert_eq!(
            axis(&runs, "codeQuality"),
            [1.0, 0.625, 0.0, 1.0, 0.625, 0.0],
            "percentages"
        );
        assert_eq!(
            axis(&runs, "efficiency"),
            [0.0, 0.375, 1.0, 0.0, 0.375, 1.0],
            "lower is better"
        );
        assert_eq!(
            axis(&runs, "stability"),
            [1.0, 0.25, 0.25, 1.0, 0.25, 0.25],
            "one of several values"
        );
        assert_eq!(axis(&runs, "refusal"), [1.0; 6], "true");
        for trial in trials(&runs) {
            assert_eq!(
                trial["cost"], 0.009,
                "1000 tokens at 5 and 200 at 20 dollars for a million"
            );
            assert!(trial["latencyMs"].as_f64().unwrap() < 10_000.0, "{trial}");
        }
        assert_runs(&format!("{log}.jsonl"), &[Ok(runs)]);
    }
}

#[test]
fn failed_samples_become_failed_trials_by_their_exception() {
    let runs = read_one(
        &golden_file("inspect/failures.eval"),
        &golden_mapping("inspect.toml"),
    )
    .unwrap();
    assert_eq!(
        axis(&runs, "correctness"),
        // Numeric ids come first, then the other ids: defect, offline, too many, too slow.
        serde_json::json!([
            1.0,
            0.5,
            0.0,
            "harness",
            "unreachable",
            "throttled",
            "timeout"
        ])
        .as_array()
        .unwrap()[..]
    );
    let one = |failure| (failure, 1);
    let failed = BTreeMap::from_iter(RunFailure::ALL.map(one))
        .into_iter()
        .filter(|(f, _)| *f != RunFailure::Unusable);
    assert_eq!((runs.scored, runs.failed.clone()), (3, failed.collect()));
    assert_runs("failures.jsonl", &[Ok(runs)]);
}

#[test]
fn a_sample_without_a_verdict_is_a_failure_of_the_harness_in_either_format() {
    for log in ["inspect/unscored.eval", "inspect/unscored.json"] {
        let runs = read_one(&golden_file(log), &golden_mapping("inspect.toml")).unwrap();
        let expected = serde_json::json!([1.0, 1.0, "harness"]);
        assert_eq!(
            axis(&runs, "correctness"),
            expected.as_array().unwrap()[..],
            "{log}"
        );
    }
}

#[test]
fn an_unfinished_evaluation_is_skipped_with_the_remedy() {
    for (log, reason) in [
        ("inspect/stopped.eval", "was stopped by an error"),
        ("inspect/crashed.eval", "was not finished"),
        ("inspect/crashed.json", "was not finished"),
    ] {
        let (verdict, problem) = problem_of(&golden_file(log), &golden_mapping("inspect.toml"));
        assert_eq!(verdict, LogVerdict::Skipped, "{log}: {problem}");
        assert!(
            problem.contains(reason) && problem.contains("inspect eval-retry"),
            "{log}: {problem}"
        );
    }
}

#[test]
fn what_the_mapping_does_not_name_is_reported_and_never_guessed() {
    let model = "[models.\"mockllm/meridian/atlas-4\"]\nname = \"A\"\nprovider = \"p\"\n";
    let task = |axes: &str| {
        format!("{model}[tasks.arithmetic]\nsuite = \"coding\"\naxes = {{ spec = {axes} }}\n")
    };
    let rows = [
        (
            "ignored_tasks = [\"arithmetic\"]".into(),
            LogVerdict::Skipped,
            "is in `ignored_tasks`",
        ),
        (
            model.to_owned(),
            LogVerdict::Missing,
            "has no [tasks.\"arithmetic\"]; add it",
        ),
        (
            task("{}").replace("atlas-4", "atlas-5"),
            LogVerdict::Missing,
            "has no [models.\"mockllm/meridian/atlas-4\"]; add its name and provider",
        ),
        (
            task("{}"),
            LogVerdict::Invalid,
            "sample 1, epoch 1: has the scores closeness, grade, match, style/format, style/tone; name one in axes.spec",
        ),
        (
            task("\"accuracy\""),
            LogVerdict::Invalid,
            "sample 1, epoch 1: has no score \"accuracy\" for axes.spec",
        ),
        (
            task("\"closeness\""),
            LogVerdict::Invalid,
            "closeness is 100, outside [0, 1]; give axes.spec its scale = [worst, best]",
        ),
        (
            task("{ score = \"closeness\", scale = [0, 50] }"),
            LogVerdict::Invalid,
            "sample 1, epoch 2: closeness is 100, outside [0, 50]; give axes.spec its scale = [worst, best]; and 1 more",
        ),
    ];
    for (mapping, verdict, problem) in rows {
        let found = problem_of(
            &golden_file("inspect/several-scorers.eval"),
            &LogMapping::parse(&mapping).unwrap(),
        );
        assert!(
            found.0 == verdict && found.1.contains(problem),
            "{mapping}\n{found:?}"
        );
    }
}

#[test]
fn logs_of_lm_evaluation_harness_become_runs_by_metric_and_filter() {
    let path = golden_file("lm-eval/results_2026-11-24.json");
    let read = read_log(
        EvaluationTool::LmEval,
        &path,
        &golden_mapping("lm-eval.toml"),
    );
    let [capitals, echoes] = &read[..] else {
        panic!("{read:?}")
    };
    let capitals = capitals.as_ref().unwrap();
    let echoes = echoes.as_ref().unwrap();
    assert_eq!(axis(capitals, "correctness"), [1.0, 1.0, 1.0]);
    assert_eq!(axis(echoes, "spec"), [1.0, 0.0]);
    assert_eq!(echoes.absent, ["latency", "cost"]);
    assert!(
        capitals.runs[0].write().starts_with("{\"id\":\"lm-eval:")
            && capitals.model_id == "meridian--atlas-4"
    );
    assert_runs("lm-eval.jsonl", &read);

    let text = std::fs::read_to_string(golden_file("lm-eval.toml")).unwrap();
    let rows = [
        (
            "filter = \"strict\"\n",
            "",
            "has the filters letters, strict; name one",
        ),
        (
            "\"strict\"",
            "\"loose\"",
            "has no filter \"loose\"; it has letters, strict",
        ),
        (
            "\"exact_match\"",
            "\"bleu\"",
            "document 0: bleu is not a number; use another score",
        ),
        (
            "[tasks.echoes]",
            "[tasks.echo]",
            "has no [tasks.\"echoes\"]",
        ),
    ];
    for (from, to, problem) in rows {
        let mapping = LogMapping::parse(&text.replace(from, to)).unwrap();
        let read = read_log(EvaluationTool::LmEval, &path, &mapping);
        let found = read[1].as_ref().unwrap_err().to_string();
        assert!(read[0].is_ok() && found.contains(problem), "{to}: {found}");
    }
}

#[test]
fn another_filter_is_another_run_and_the_same_evaluation_is_the_same_run() {
    let path = golden_file("lm-eval/results_2026-11-24.json");
    let text = std::fs::read_to_string(golden_file("lm-eval.toml")).unwrap();
    let ids = |text: &str| -> Vec<String> {
        let read = read_log(
            EvaluationTool::LmEval,
            &path,
            &LogMapping::parse(text).unwrap(),
        );
        let runs = read.iter().flat_map(|runs| &runs.as_ref().unwrap().runs);
        runs.map(|run| serde_json::to_value(run).unwrap()["id"].to_string())
            .collect()
    };
    let letters = ids(&text.replace("strict", "letters"));
    let strict = ids(&text);
    assert_eq!(strict, ids(&text.replace("Atlas 4", "Other")));
    assert_eq!(strict[0], letters[0]);
    assert_ne!(strict[1], letters[1]);
}

#[test]
fn directories_are_searched_for_the_names_of_the_tool() {
    let found = |tool, paths: &[&str]| -> Result<Vec<String>, String> {
        let paths: Vec<PathBuf> = paths.iter().map(|path| golden_file(path)).collect();
        let names = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        log_files(tool, &paths).map(|files| files.into_iter().map(names).collect())
    };
    let in_directory = found(EvaluationTool::Inspect, &["", "inspect/failures.eval"]).unwrap();
    assert_eq!(
        in_directory.len(),
        6,
        "the JSON logs here have separate names: {in_directory:?}"
    );
    assert!(in_directory.is_sorted());
    assert_eq!(
        found(EvaluationTool::Inspect, &["inspect/crashed.json"]).unwrap(),
        ["crashed.json"]
    );
    let results = "results_2026-11-24.json";
    let all = [
        "lm-eval",
        "lm-eval/samples_echoes_2026-11-24.jsonl",
        "lm-eval/results_2026-11-24.json",
    ];
    assert_eq!(found(EvaluationTool::LmEval, &all).unwrap(), [results]);
    assert!(
        found(EvaluationTool::LmEval, &["inspect"])
            .unwrap_err()
            .contains("has no file named results_*.json")
    );
    assert!(
        found(EvaluationTool::LmEval, &["none"])
            .unwrap_err()
            .contains("cannot be read")
    );
}

#[test]
fn the_documented_mapping_is_valid() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/scoring.md"
    ))
    .unwrap();
    let example = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mapping = LogMapping::parse(example).unwrap();
    assert_eq!(mapping.task("arithmetic").unwrap().axes.len(), 5);
    assert!(mapping.task("echoes").is_ok() && mapping.model("openai/gpt-x").is_ok());
    assert_eq!(
        mapping.task("smoke_test").unwrap_err().verdict,
        LogVerdict::Skipped
    );
}
