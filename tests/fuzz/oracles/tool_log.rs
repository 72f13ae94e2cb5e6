//! A log of an evaluation tool. Text that begins with `L` is one of lm-evaluation-harness: a results file, a zero byte, and
//! the samples of its task. Anything else is a log of Inspect AI, `.eval` or JSON.
//!
//! Reading a log again gives the same. An import accepts its runs, which have together as many trials as were
//! counted. Of an Inspect AI log in strict JSON, each sample is a trial or was declared invalid; of samples of
//! lm-evaluation-harness, each is a trial with the sample's score.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use scoregate_base::clock::Wall;
use scoregate_scoring::{
    EvaluationTool, LogMapping, MAX_TRIALS, MappedRuns, RunFailure, SuiteTable, read_log,
};
use serde_json::Value;

const INSPECT_MAPPING: &str = r#"
[models."mockllm/meridian/atlas-4"]
id = "atlas-4"
name = "Atlas 4"
provider = "meridian"
price_input = 5.0
price_output = 20.0
[tasks.arithmetic]
suite = "reasoning"
axes = { correctness = "grade" }
[tasks.judged]
suite = "coding"
axes = { correctness = {} }
"#;
const LM_EVAL_MAPPING: &str = r#"
[models."meridian/atlas-4"]
name = "Atlas 4"
provider = "meridian"
[tasks.capitals]
suite = "reasoning"
filter = "none"
axes = { correctness = "acc" }
"#;
const SUITES: &str = r#"
[[suite]]
name = "coding"
weight = 0.5
axes = ["correctness"]
feeds = ["combined"]
[[suite]]
name = "reasoning"
weight = 0.5
axes = ["correctness"]
feeds = ["combined"]
"#;

/// Fails if the runs of this log are wrong.
pub fn check(bytes: &[u8]) {
    match bytes.split_first() {
        Some((b'L', log)) => check_lm_eval(log),
        Some(_) | None => check_inspect(bytes),
    }
}

fn check_inspect(bytes: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log.eval");
    std::fs::write(&path, bytes).unwrap();
    let mapping = LogMapping::parse(INSPECT_MAPPING).unwrap();
    let evaluations = checked(EvaluationTool::Inspect, &path, &mapping);
    assert_eq!(
        std::fs::read_dir(&directory).unwrap().count(),
        1,
        "a file was written"
    );
    assert!(evaluations.len() <= 1);
    // Logs with Python's words for numbers are not JSON.
    let (Some(mapped), Ok(log)) = (evaluations.first(), serde_json::from_slice::<Value>(bytes))
    else {
        return;
    };
    let samples = log["samples"].as_array().map_or(&[][..], Vec::as_slice);
    // Objects by position are accepted too, and not understood here.
    if samples.is_empty() || !samples.iter().all(Value::is_object) {
        return;
    }
    let invalidated = samples
        .iter()
        .filter(|sample| !sample["invalidation"].is_null())
        .count() as u64;
    let failed: u64 = mapped.failed.values().sum();
    assert_eq!(log["status"], "success");
    assert_eq!(
        (mapped.scored + failed, mapped.invalidated),
        (samples.len() as u64 - invalidated, invalidated)
    );
    for sample in samples.iter().filter(|sample| !sample["error"].is_null()) {
        assert!(failed + invalidated > 0, "{sample} has an error");
    }
}

fn check_lm_eval(bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let results = &bytes[..end];
    let samples = bytes.get(end + 1..).unwrap_or_default();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results_2026-11-24.json");
    std::fs::write(&path, results).unwrap();
    std::fs::write(
        directory.path().join("samples_capitals_2026-11-24.jsonl"),
        samples,
    )
    .unwrap();
    let mapping = LogMapping::parse(LM_EVAL_MAPPING).unwrap();
    for mapped in checked(EvaluationTool::LmEval, &path, &mapping) {
        assert_eq!(
            (
                mapped.task.as_str(),
                mapped.failed.len(),
                mapped.invalidated
            ),
            ("capitals", 0, 0)
        );
        check_scores(&mapped, samples);
    }
}

/// Compares the scores with those of the samples, if all are plain numbers.
fn check_scores(mapped: &MappedRuns, samples: &[u8]) {
    let lines: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(samples)
        .into_iter()
        .collect();
    let seen = |sample: &&Value| sample.get("filter").is_none_or(|filter| filter == "none");
    let Ok(lines) = lines else { return };
    let expected: Option<Vec<f64>> = lines
        .iter()
        .filter(seen)
        .map(|sample| sample.get("acc")?.as_f64())
        .collect();
    let Some(mut expected) = expected else { return };
    let now = Wall::from_millis(u64::MAX);
    let table = SuiteTable::parse(SUITES).unwrap();
    let mut found = Vec::new();
    for run in &mapped.runs {
        let record = run.clone().check(now, &table).unwrap();
        found.extend(
            record
                .run
                .trials()
                .iter()
                .map(|trial| trial.scores()[0].unwrap()),
        );
    }
    found.sort_unstable_by(f64::total_cmp);
    expected.sort_unstable_by(f64::total_cmp);
    assert_eq!(found, expected);
}

/// The runs of a log that follow the rules; fails if some do not.
fn checked(tool: EvaluationTool, path: &Path, mapping: &LogMapping) -> Vec<MappedRuns> {
    let results = read_log(tool, path, mapping);
    assert_eq!(
        format!("{results:?}"),
        format!("{:?}", read_log(tool, path, mapping))
    );
    let table = SuiteTable::parse(SUITES).unwrap();
    let mut ids = BTreeSet::new();
    let runs: Vec<MappedRuns> = results.into_iter().filter_map(Result::ok).collect();
    for mapped in &runs {
        check_runs(mapped, &table, &mut ids);
    }
    runs
}

fn check_runs(mapped: &MappedRuns, table: &SuiteTable, ids: &mut BTreeSet<String>) {
    // No time of a log is later.
    let now = Wall::from_millis(u64::MAX);
    let mut scored = 0;
    let mut failed = BTreeMap::<RunFailure, u64>::new();
    let mut least = usize::MAX;
    let mut most = 0;
    for run in &mapped.runs {
        let record = match run.clone().check(now, table) {
            Ok(record) => record,
            // A tool does not measure negative amounts; the reader of runs rejects them.
            Err(bad) if bad.problem.contains("is not an amount") => return,
            Err(bad) => panic!("{bad}: {}", run.write()),
        };
        let run = &record.run;
        assert_eq!(run.model().id().as_str(), mapped.model_id);
        assert_eq!(run.suite().name(), mapped.suite);
        assert_eq!(run.at().rfc3339(), mapped.time);
        assert!(
            ids.insert(record.id.to_string()),
            "{} is given twice",
            record.id
        );
        scored += run.trials().len() as u64;
        for failure in run.failed_trials() {
            *failed.entry(*failure).or_default() += 1;
        }
        let trials = run.trials().len() + run.failed_trials().len();
        assert!((1..=MAX_TRIALS).contains(&trials), "{trials} trials");
        (least, most) = (least.min(trials), most.max(trials));
    }
    assert!(most - least <= 1, "parts of {least} to {most} trials");
    assert_eq!((scored, failed), (mapped.scored, mapped.failed.clone()));
}
