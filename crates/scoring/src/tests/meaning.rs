//! Consistency of responses: sorting, agreement of lists and details, models without data.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, demo, instants, limit, measured, now, rankings};
use crate::hour::{Hour, hours_of};
use crate::*;

#[test]
fn each_sort_key_orders_and_unscored_models_are_last() {
    let scoring = demo();
    let mut orders = BTreeSet::new();
    for sort_by in SortBy::ALL {
        let items = rankings(&scoring, Period::Day, sort_by);
        assert!(
            items
                .iter()
                .map(|item| item.get("currentScore").is_none())
                .is_sorted()
        );
        let ids: Vec<&str> = items
            .iter()
            .filter(|i| !i["currentScore"].is_null())
            .map(|i| i["id"].as_str().unwrap())
            .collect();
        let merit = |id: &&str| {
            let detail = &asked(
                &scoring,
                &DocumentKey::of_model(Route::Model, ModelId::new(id).unwrap()),
            )[0];
            let suite = |place: usize| detail["suites"][place]["score"].as_f64().unwrap();
            let axes = detail["axes"].as_array().unwrap();
            match sort_by {
                SortBy::Combined => detail["currentScore"].as_f64().unwrap(),
                SortBy::Coding => suite(0),
                SortBy::Reasoning => suite(1),
                SortBy::Tooling => suite(2),
                SortBy::Speed => -detail["latencyMs"].as_f64().unwrap(),
                SortBy::SevenAxis => axes
                    .iter()
                    .map(|axis| axis["score"].as_f64().unwrap())
                    .sum(),
                // The detail has no cost per trial.
                SortBy::Price => -items.iter().find(|i| i["id"] == *id).unwrap()["costUsd"]
                    .as_f64()
                    .unwrap(),
            }
        };
        let merits: Vec<f64> = ids.iter().map(merit).collect();
        assert!(
            merits.is_sorted_by(|a, b| a >= &(b - 1e-9)),
            "{sort_by:?}: {merits:?}"
        );
        orders.insert(
            items
                .iter()
                .map(|item| item["id"].to_string())
                .collect::<Vec<_>>(),
        );
    }
    assert!(orders.len() >= 5, "hardly a key makes a difference");
}

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
fn a_model_whose_runs_all_failed_was_last_updated_when_it_was_first_seen() {
    let model = Arc::new(
        TestedModel::new(ModelId::new("new").unwrap(), "New", "nobody", None, None).unwrap(),
    );
    let failed = |suite, hours| {
        let outcome = RunOutcome::Failed(RunFailure::Unreachable);
        Run::new(
            Arc::clone(&model),
            suite,
            now().minus(HOUR * hours),
            outcome,
        )
        .unwrap()
    };
    // The first run is before the whole window.
    let runs = vec![
        failed(Suite::CODING, 70 * 24),
        failed(Suite::TOOLING, 3),
        failed(Suite::CODING, 2),
    ];
    let scoring = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    let first = now().minus(HOUR * 70 * 24).rfc3339();
    for period in Period::ALL {
        let items = rankings(&scoring, period, SortBy::Coding);
        assert_eq!(
            (items.len(), &items[0]["lastUpdated"]),
            (1, &first.as_str().into())
        );
        assert_eq!(
            (&items[0]["trend"], &items[0]["status"]),
            (&"unavailable".into(), &"unavailable".into())
        );
    }
}

#[test]
fn without_a_comparison_a_trend_is_unavailable() {
    let model = Arc::new(
        TestedModel::new(ModelId::new("new").unwrap(), "New", "nobody", None, None).unwrap(),
    );
    let run = |suite| {
        let trials = vec![Trial::new([0.5; 7], 9.0, 0.1).unwrap(); 3];
        Run::new(
            Arc::clone(&model),
            suite,
            now().minus(HOUR),
            RunOutcome::Scored(trials),
        )
        .unwrap()
    };
    let scoring = Scoring::open(
        RunSource::Runs(Suite::DEFAULT.map(run).to_vec().into()),
        now(),
    )
    .unwrap();
    for sort_by in SortBy::ALL {
        let item = &rankings(&scoring, Period::Day, sort_by)[0];
        assert_eq!(
            (&item["currentScore"], &item["trend"]),
            (&50.0.into(), &"unavailable".into())
        );
    }
    assert_eq!(
        asked(&scoring, &DocumentKey::plain(Route::Index))[0]["trend"],
        "unavailable"
    );
    let drift = &asked(
        &scoring,
        &DocumentKey::of_model(Route::Drift, ModelId::new("new").unwrap()),
    )[0];
    assert_eq!(
        (&drift["regime"], &drift["axes"][0]["trend"]),
        (&"unavailable".into(), &"unavailable".into())
    );
}

#[test]
fn the_list_and_the_details_agree() {
    let scoring = demo();
    let latest = rankings(&scoring, Period::Latest, SortBy::Combined);
    for item in rankings(&scoring, Period::Day, SortBy::Combined) {
        let id = ModelId::new(item["id"].as_str().unwrap()).unwrap();
        let detail = &asked(&scoring, &DocumentKey::of_model(Route::Model, id.clone()))[0];
        for (name, value) in item.as_object().unwrap() {
            assert!(
                name.starts_with("rank") || name == "tiedWithNext" || value == &detail[name],
                "{id}.{name}"
            );
        }
        if let Some(is_tied) = item.get("tiedWithNext") {
            let next = detail["comparisons"].as_array().unwrap().last().unwrap();
            assert_eq!(
                is_tied,
                next["differenceLower"].as_f64().unwrap() <= 0.0,
                "{item} {next}"
            );
        }
        let newest = latest
            .iter()
            .find(|item| item["id"] == id.as_str())
            .unwrap();
        assert_eq!(newest.get("currentScore"), detail.get("latestScore"));
        let drift = &asked(&scoring, &DocumentKey::of_model(Route::Drift, id))[0];
        assert_eq!(drift.get("currentScore"), detail.get("currentScore"));
    }
}

#[test]
fn the_index_is_between_the_extremes_and_counts_absent_models() {
    for now in instants().step_by(4) {
        let scoring = Scoring::demo(7, now);
        let index = &asked(&scoring, &DocumentKey::plain(Route::Index))[0];
        let items = rankings(&scoring, Period::Day, SortBy::Combined);
        let scores: Vec<f64> = items
            .iter()
            .filter_map(|item| item["currentScore"].as_f64())
            .collect();
        let value = index["value"].as_f64().unwrap();
        assert!(scores.last().unwrap() <= &value && &value <= scores.first().unwrap());
        assert_eq!(index["models"], scores.len());
        assert_eq!(index["unavailable"], items.len() - scores.len());
        assert!(scores.len() < items.len());
        assert_eq!(index["bestModel"], items[0]["id"]);
        assert_eq!(index["history"].as_array().unwrap().len(), 24);
    }
}

#[test]
fn a_removed_model_is_unavailable_and_affects_no_other() {
    let without = measured();
    let model = Arc::new(
        TestedModel::new(ModelId::new("gone").unwrap(), "Gone", "nobody", None, None).unwrap(),
    );
    let mut with = without.clone();
    for hours in 60..100 {
        for suite in Suite::DEFAULT {
            let trials = vec![Trial::new([0.01; 7], 9.0, 0.1).unwrap(); 3];
            let at = now().minus(HOUR * hours);
            with.push(Run::new(Arc::clone(&model), suite, at, RunOutcome::Scored(trials)).unwrap());
        }
    }
    let without = Scoring::open(RunSource::Runs(without.into()), now()).unwrap();
    let with = Scoring::open(RunSource::Runs(with.into()), now()).unwrap();
    let mut items = rankings(&with, Period::Day, SortBy::Combined);
    let place = items.iter().position(|item| item["id"] == "gone").unwrap();
    let gone = items.remove(place);
    assert_eq!(items, rankings(&without, Period::Day, SortBy::Combined));
    for name in ["currentScore", "confidenceLower", "confidenceUpper"] {
        assert!(gone.get(name).is_none(), "{name}");
    }
    // Its newest run, though none is in the period.
    assert_eq!(gone["lastUpdated"], now().minus(HOUR * 60).rfc3339());
    assert_eq!(
        (&gone["trend"], &gone["status"]),
        (&"unavailable".into(), &"unavailable".into())
    );
    let index = |scoring| asked(scoring, &DocumentKey::plain(Route::Index))[0]["value"].clone();
    assert_eq!(index(&with), index(&without));
    let providers = asked(&with, &DocumentKey::plain(Route::Providers));
    assert!(
        providers
            .iter()
            .any(|p| p["provider"] == "nobody" && p["status"] == "unavailable")
    );
    assert!(
        !rankings(&with, Period::Week, SortBy::Combined)
            .iter()
            .any(|m| m.get("currentScore").is_none() && m["id"] == "gone")
    );
}

#[test]
fn incidents_are_newest_first_limited_and_within_the_period() {
    let scoring = demo();
    let ask = |period, number| {
        asked(
            &scoring,
            &DocumentKey {
                limit: Some(limit(number)),
                ..DocumentKey::over(Route::Incidents, period)
            },
        )
    };
    let all = ask(Period::Month, 100);
    assert!(all.len() > 5, "{}", all.len());
    assert!(all.is_sorted_by(|a, b| a["openedAt"].as_str() >= b["openedAt"].as_str()));
    assert_eq!(ask(Period::Month, 3), all[..3]);
    let kinds: BTreeSet<&str> = all
        .iter()
        .filter_map(|item| item["kind"].as_str())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["degradation", "outage"]));
    let start = Hour::of(now())
        .last(hours_of(Period::Week))
        .from
        .start()
        .rfc3339();
    for item in ask(Period::Week, 100) {
        assert!(
            item["resolvedAt"]
                .as_str()
                .is_none_or(|end| end > start.as_str())
        );
    }
    assert!(
        ask(Period::Latest, 100)
            .iter()
            .all(|item| item.get("resolvedAt").is_none())
    );
}

#[test]
fn alerts_have_valid_evidence_and_steady_models_raise_none() {
    let mut alerted = BTreeSet::new();
    for now in instants() {
        let scoring = Scoring::demo(7, now);
        for alert in asked(&scoring, &DocumentKey::plain(Route::Alerts)) {
            let number = |name: &str| alert[name].as_f64().unwrap();
            assert!(
                (number("baselineScore") - number("currentScore") - number("drop")).abs() < 1e-9
            );
            assert!(
                number("pValue") < method::ALERT_ALPHA && number("drop") >= method::ALERT_MINIMUM
            );
            assert!(alert["since"].as_str() < Some(&Hour::of(now).start().rfc3339()));
            alerted.insert(alert["modelId"].as_str().unwrap().to_owned());
        }
    }
    // Those that break, also by less than an incident, and those that lose points slowly.
    let fallen = [
        "atlas-4-small",
        "kestrel-70b",
        "basalt-3",
        "lantern-1",
        "kestrel-12b",
        "basalt-3-mini",
        "atlas-3-large",
        "kestrel-code",
    ];
    assert!(
        !alerted.is_empty() && alerted.is_subset(&fallen.map(String::from).into()),
        "{alerted:?}"
    );
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
        // Bounds follow the noise of the last month.
        let shown =
            |point: &Value| ["timestamp", "score", "runs"].map(|field| point[field].clone());
        let later: Vec<_> = later.iter().map(shown).collect();
        // The oldest point may have left, and the newest may have been incomplete.
        for point in earlier.iter().skip(1).take(earlier.len() - 2).map(shown) {
            assert!(later.contains(&point), "{point:?}");
        }
    }
}

/// A change that is older than the period has left both the period and the one before.
#[test]
fn the_worst_axis_of_a_degradation_is_that_of_its_levels() {
    let model =
        Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
    let worst = Axis::ALL[1];
    let run = |hours: u32, suite| {
        let mut marks = [if hours.is_multiple_of(2) { 0.8 } else { 0.79 }; 7];
        // Half of the axes lose a point in the newest day.
        marks
            .iter_mut()
            .skip(3)
            .for_each(|mark| *mark -= if hours <= 24 { 0.01 } else { 0.0 });
        marks[1] -= if hours <= 50 { 0.3 } else { 0.0 };
        let trials = vec![Trial::new(marks, 9.0, 0.1).unwrap(); 3];
        Run::new(
            Arc::clone(&model),
            suite,
            now().minus(HOUR * hours),
            RunOutcome::Scored(trials),
        )
        .unwrap()
    };
    let hours = (1..=30 * 24).rev();
    let runs: Vec<Run> = hours
        .flat_map(|hours| Suite::DEFAULT.map(|suite| run(hours, suite)))
        .collect();
    let scoring = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    let items = asked(
        &scoring,
        &DocumentKey::over(Route::Degradations, Period::Day),
    );
    assert_eq!(items[0]["worstAxis"], worst.word(), "{items:?}");
    assert_eq!(items[0]["worstAxisLoss"], 30.0, "{items:?}");
}
