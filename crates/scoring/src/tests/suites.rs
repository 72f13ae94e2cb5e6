//! Suites other than the default ones: what they feed, which results are absent without them, and how a table
//! is replaced.

use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::*;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, now, rankings};

/// `swe` has two axes and the only latencies, and `mmlu` has one axis. Neither feeds `tooling` or `price`.
const TABLE: &str = r#"
[[suite]]
name = "swe"
weight = 3
axes = ["correctness", "spec"]
feeds = ["combined", "coding", "7axis", "speed"]

[[suite]]
name = "mmlu"
weight = 1
axes = ["correctness"]
feeds = ["combined", "reasoning", "7axis"]
"#;

fn archive(place: &TempDir) -> Archive {
    Archive::open(&place.path().join("runs.db")).unwrap()
}

fn opened(place: &TempDir) -> Scoring {
    Scoring::open(RunSource::Archive(archive(place)), now()).unwrap()
}

fn model() -> Arc<TestedModel> {
    Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap())
}

/// A run of two equal trials whose first scores are these.
fn run(id: &str, suite: &str, scores: &[f64]) -> IdentifiedRun {
    let mut all = [None; 7];
    all.iter_mut()
        .zip(scores)
        .for_each(|(one, score)| *one = Some(*score));
    let trials = vec![Trial::on_axes(all, Some(100.0), Some(0.5)).unwrap(); 2];
    let suite = Suite::new(suite).unwrap();
    let at = now().minus(HOUR);
    let run = Run::new(model(), suite, at, RunOutcome::Scored(trials)).unwrap();
    IdentifiedRun {
        id: RunId::new(id).unwrap(),
        run,
        detail: None,
    }
}

fn import(place: &TempDir, runs: &[IdentifiedRun]) {
    archive(place).import(runs, now()).unwrap();
}

fn set(place: &TempDir, table: &SuiteTable) {
    assert!(archive(place).set_suites(table, now()).unwrap());
}

fn scores(scoring: &Scoring) -> [Option<f64>; 7] {
    SortBy::ALL.map(|sort_by| rankings(scoring, Period::Day, sort_by)[0]["currentScore"].as_f64())
}

fn detail(scoring: &Scoring) -> Value {
    asked(
        scoring,
        &DocumentKey::of_model(Route::Model, ModelId::new("m").unwrap()),
    )
    .remove(0)
}

fn transparency(scoring: &Scoring) -> Value {
    asked(
        scoring,
        &DocumentKey::over(Route::Transparency, Period::Day),
    )
    .remove(0)
}

#[test]
fn another_table_counts_at_once_and_the_runs_of_removed_suites_stay_stored() {
    let place = TempDir::new().unwrap();
    let runs: Vec<IdentifiedRun> = [("coding", 0.8), ("reasoning", 0.6), ("tooling", 0.1)]
        .map(|(suite, score)| run(suite, suite, &[score; 7]))
        .into();
    import(&place, &runs);
    let scoring = opened(&place);
    let before = scores(&scoring);
    assert_eq!(transparency(&scoring)["methodVersion"], METHOD_VERSION);
    let text = SuiteTable::default().write();
    let without = SuiteTable::parse(text.rsplit_once("[[suite]]").unwrap().0).unwrap();
    set(&place, &without);
    assert!(
        !archive(&place).set_suites(&without, now()).unwrap(),
        "it is the same table"
    );
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    let combined = detail(&scoring)["currentScore"].as_f64().unwrap();
    assert!(
        (combined - (0.4 * 80.0 + 0.35 * 60.0) / 0.75).abs() < 0.006,
        "{combined}"
    );
    assert_eq!(detail(&scoring)["runs"], 2);
    let mut stored = Vec::new();
    archive(&place)
        .each_run(&mut |record| {
            stored.push(record);
            true
        })
        .unwrap();
    assert_eq!(stored, runs);
    // A restart gives the same scores, and the default table gives the same results as before.
    assert_eq!(scores(&opened(&place)), scores(&scoring));
    set(&place, &SuiteTable::default());
    assert_eq!(scoring.check(now()).unwrap(), Change::ByAnImport);
    assert_eq!(scores(&scoring), before);
    assert_eq!(transparency(&scoring)["methodVersion"], METHOD_VERSION);
}

#[test]
fn runs_that_lack_a_newly_declared_axis_count_nowhere() {
    let place = TempDir::new().unwrap();
    set(&place, &SuiteTable::parse(TABLE).unwrap());
    import(
        &place,
        &[run("1", "swe", &[0.9, 0.3]), run("2", "mmlu", &[0.5])],
    );
    let more = TABLE.replace(
        "axes = [\"correctness\"]",
        "axes = [\"correctness\", \"spec\"]",
    );
    set(&place, &SuiteTable::parse(&more).unwrap());
    let item = detail(&opened(&place));
    assert_eq!((item.get("currentScore"), &item["runs"]), (None, &1.into()));
    // A suite may have fewer axes than the runs.
    set(
        &place,
        &SuiteTable::parse(&TABLE.replace(", \"spec\"", "")).unwrap(),
    );
    assert_eq!(detail(&opened(&place))["currentScore"], 80.0);
}
