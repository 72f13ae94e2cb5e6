//! Consistency of responses: sorting, agreement between lists and details, and models without data.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, instants, now, rankings};
use crate::*;

#[test]
fn equal_models_are_sorted_by_id_for_every_sort_key() {
    let mut runs = Vec::new();
    for id in ["c", "a", "b"] {
        let model =
            Arc::new(TestedModel::new(ModelId::new(id).unwrap(), id, "p", None, None).unwrap());
        for suite in Suite::DEFAULT {
            let trials = vec![Trial::new([0.5; 7], 9.0, 0.1).unwrap(); 3];
            let at = now().minus(HOUR);
            runs.push(Run::new(Arc::clone(&model), suite, at, RunOutcome::Scored(trials)).unwrap());
        }
    }
    let scoring = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    for sort_by in SortBy::ALL {
        let ids: Vec<Value> = rankings(&scoring, Period::Latest, sort_by)
            .into_iter()
            .map(|item| item["id"].clone())
            .collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }
}

#[test]
fn every_drift_regime_occurs_within_a_month() {
    let mut regimes = BTreeSet::new();
    for now in instants() {
        let scoring = Scoring::demo(7, now);
        for id in scoring.model_ids() {
            let drift = &asked(&scoring, &DocumentKey::of_model(Route::Drift, id))[0];
            regimes.insert(drift["regime"].as_str().unwrap().to_owned());
        }
    }
    assert!(regimes.len() >= 4, "{regimes:?}");
}

#[test]
fn points_of_a_history_keep_their_instants_and_scores_when_the_hour_moves_on() {
    let at = |hours: u32| {
        let scoring = Scoring::demo(7, now().plus(HOUR * hours));
        let key = |period| DocumentKey {
            period: Some(period),
            ..DocumentKey::of_model(Route::History, scoring.model_ids()[0].clone())
        };
        Period::ALL.map(|period| asked(&scoring, &key(period)))
    };
    for (earlier, later) in at(0).into_iter().zip(at(1)) {
        assert_eq!(earlier.len(), later.len());
        // Bounds are not compared, because they depend on the noise of the last month.
        let shown =
            |point: &Value| ["timestamp", "score", "runs"].map(|field| point[field].clone());
        let later: Vec<_> = later.iter().map(shown).collect();
        // The oldest point may have dropped out, and the newest may have been incomplete.
        for point in earlier.iter().skip(1).take(earlier.len() - 2).map(shown) {
            assert!(later.contains(&point), "{point:?}");
        }
    }
}
