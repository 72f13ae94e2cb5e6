//! The newest run determines the name and the prices of its model. If several runs have the newest time, the run with the largest
//! id is used.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;

use scoregate_base::routes::{DocumentKey, ModelId, Route};

use super::tests::{in_, now, record};
use crate::{
    RunSource, Scoring,
    hour::Hour,
    run::{IdentifiedRun, Run, RunOutcome, TestedModel, Trial},
    suite::Suite,
};

/// A run `minutes` minutes before the hour. The model's name is the id, and its price is the number of minutes.
fn run(id: &str, suite: Suite, minutes: u32) -> IdentifiedRun {
    let price = Some(f64::from(minutes));
    let model = ModelId::new("m").unwrap();
    let model = TestedModel::new(model, id, "meridian", price, None).unwrap();
    let at = Hour::of(now())
        .start()
        .minus(Duration::from_mins(1) * minutes);
    let trials = RunOutcome::Scored(vec![Trial::new([0.5; 7], 1.0, 0.0).unwrap()]);
    record(id, Run::new(Arc::new(model), suite, at, trials).unwrap())
}

#[test]
fn the_newest_run_names_the_model_whatever_its_suite_and_the_order_of_imports() {
    let rows = [
        (["a", "b", "c"], [50, 10, 40], "b", 10.0),
        (["c", "b", "a"], [5, 50, 40], "c", 5.0),
        // In the same minute, the largest id wins.
        (["a", "z", "b"], [20, 20, 20], "z", 20.0),
        // The other runs are in another hour or on another day.
        (["a", "y", "z"], [59, 70, 3_000], "a", 59.0),
    ];
    for (ids, minutes, name, price) in rows {
        let mut runs: Vec<IdentifiedRun> = Suite::DEFAULT
            .into_iter()
            .zip(ids)
            .zip(minutes)
            .map(|((suite, id), minutes)| run(id, suite, minutes))
            .collect();
        for _ in 0..3 {
            runs.rotate_left(1);
            let place = TempDir::new().unwrap();
            let archive = in_(&place);
            archive.import(&runs, now()).unwrap();
            let scoring = Scoring::open(RunSource::Archive(archive), now()).unwrap();
            let key = DocumentKey::of_model(Route::Model, ModelId::new("m").unwrap());
            let data = scoring.answer(&key).unwrap().data;
            let detail = &serde_json::from_slice::<serde_json::Value>(&data).unwrap()[0];
            assert_eq!(
                (&detail["name"], &detail["priceInput"]),
                (&name.into(), &price.into())
            );
        }
    }
}
