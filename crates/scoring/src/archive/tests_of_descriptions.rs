//! The newest run is authoritative for the name and the prices of its model: the latest instant, then the larger id.

use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;

use scoregate_base::routes::{DocumentKey, ModelId, Route};

use super::tests::{in_, now, record};
use crate::hour::Hour;
use crate::run::{IdentifiedRun, Run, RunOutcome, TestedModel, Trial};
use crate::suite::Suite;
use crate::{RunSource, Scoring};

/// A run of this suite in the last full hour.
fn run(id: &str, suite: Suite, minute: u64, name: &str) -> IdentifiedRun {
    let price = if name == "Atlas New" { 7.0 } else { 5.0 };
    let model = TestedModel::new(
        ModelId::new("atlas").unwrap(),
        name,
        "meridian",
        Some(price),
        None,
    )
    .unwrap();
    let at = Hour::of(now())
        .minus(1)
        .start()
        .plus(Duration::from_mins(minute));
    let trials = RunOutcome::Scored(vec![Trial::new([0.5; 7], 1.0, 0.0).unwrap()]);
    record(id, Run::new(Arc::new(model), suite, at, trials).unwrap())
}

/// The published name and input price.
fn published(scoring: &Scoring) -> (String, f64) {
    let data = scoring
        .answer(&DocumentKey::of_model(
            Route::Model,
            ModelId::new("atlas").unwrap(),
        ))
        .unwrap()
        .data;
    let detail = &serde_json::from_slice::<serde_json::Value>(&data).unwrap()[0];
    (
        detail["name"].as_str().unwrap().to_owned(),
        detail["priceInput"].as_f64().unwrap(),
    )
}

fn archived(runs: &[IdentifiedRun]) -> (String, f64) {
    let place = TempDir::new().unwrap();
    let archive = in_(&place);
    archive.import(runs, now()).unwrap();
    published(&Scoring::open(RunSource::Archive(archive), now()).unwrap())
}

/// A run of every suite at :10 with the old name, and one of each at these minutes; the one of `newest` has the new name.
fn renamed(
    newest: Suite,
    minute: impl Fn(Suite) -> u64,
    id: impl Fn(Suite) -> String,
) -> Vec<IdentifiedRun> {
    let name = |suite: Suite| {
        if suite == newest {
            "Atlas New"
        } else {
            "Atlas Old"
        }
    };
    let before =
        Suite::DEFAULT.map(|suite| run(&format!("0-{}", suite.name()), suite, 10, "Atlas Old"));
    let after = Suite::DEFAULT.map(|suite| run(&id(suite), suite, minute(suite), name(suite)));
    [before, after].concat()
}

#[test]
fn the_newest_run_of_an_hour_names_the_model_whatever_its_suite() {
    for newest in Suite::DEFAULT {
        let minute = |suite: Suite| if suite == newest { 50 } else { 20 };
        let runs = renamed(newest, minute, |suite| suite.name().to_owned());
        assert_eq!(archived(&runs), ("Atlas New".into(), 7.0), "{newest:?}");
        let in_memory: Vec<_> = runs.into_iter().map(|record| record.run).collect();
        let in_memory = Scoring::open(RunSource::Runs(in_memory.into()), now()).unwrap();
        assert_eq!(published(&in_memory).0, "Atlas New", "{newest:?}");
    }
}

#[test]
fn of_runs_at_the_same_instant_the_one_with_the_larger_id_names_the_model() {
    for newest in Suite::DEFAULT {
        let id = |suite: Suite| {
            if suite == newest {
                "z".to_owned()
            } else {
                format!("a-{}", suite.name())
            }
        };
        let runs = renamed(newest, |_| 20, id);
        assert_eq!(archived(&runs).0, "Atlas New", "{newest:?}");
    }
}

#[test]
fn a_run_of_a_later_hour_or_day_names_the_model_whatever_the_order_of_imports() {
    let older = |hours: u64, id: &str, suite: Suite| {
        let one = run(id, suite, 50, "Atlas Old");
        let at = Hour::of(one.run.at()).minus(hours).start();
        record(
            id,
            Run::new(
                Arc::clone(one.run.model()),
                suite,
                at,
                one.run.outcome().clone(),
            )
            .unwrap(),
        )
    };
    let runs = [
        run("a", Suite::CODING, 1, "Atlas New"),
        older(1, "z", Suite::TOOLING),
        older(40, "y", Suite::TOOLING),
    ];
    assert_eq!(archived(&runs).0, "Atlas New");
}
