//! Benchmarks that do not run every suite every hour, and falls that last for days.

use std::sync::Arc;

use serde_json::Value;

use crate::hour::Hour;
use crate::*;
use scoregate_base::routes::{DocumentKey, Limit, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, now, rankings};

fn model(name: &str) -> Arc<TestedModel> {
    Arc::new(TestedModel::new(ModelId::new(name).unwrap(), name, "p", None, None).unwrap())
}

/// A run with this score, this many hours ago.
fn run(model: &Arc<TestedModel>, suite: Suite, ago: u32, score: f64) -> Run {
    let trials = vec![Trial::new([score / 100.0; 7], 9.0, 0.1).unwrap(); 2];
    Run::new(
        Arc::clone(model),
        suite,
        now().minus(HOUR * ago),
        RunOutcome::Scored(trials),
    )
    .unwrap()
}

fn opened(runs: Vec<Run>) -> Scoring {
    Scoring::open(RunSource::Runs(runs.into()), now()).unwrap()
}

fn drift_of(scoring: &Scoring) -> Value {
    asked(
        scoring,
        &DocumentKey::of_model(Route::Drift, ModelId::new("a").unwrap()),
    )[0]
    .clone()
}

#[test]
fn suites_in_different_hours_have_a_latest_score_trends_and_drift() {
    let one = model("a");
    let mut apart = Vec::new();
    for (suite, shift) in Suite::DEFAULT.into_iter().zip(1..) {
        apart.extend((0..240).map(|turn| {
            run(
                &one,
                suite,
                3 * turn + shift,
                if turn < 8 { 62.0 } else { 70.0 },
            )
        }));
    }
    let scoring = opened(apart);
    let latest = &rankings(&scoring, Period::Latest, SortBy::Combined)[0];
    assert_eq!(
        (&latest["currentScore"], &latest["trend"]),
        (&Value::from(62.0), &Value::from("stable"))
    );
    assert_eq!(
        rankings(&scoring, Period::Day, SortBy::Combined)[0]["trend"],
        "down"
    );
    let drift = drift_of(&scoring);
    assert_eq!(drift["regime"], "degraded", "{drift}");
    assert_eq!(drift["pageHinkley"]["direction"], "down", "{drift}");
    assert!(
        drift["axes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|axis| axis["trend"] != "unavailable"),
        "{drift}"
    );
}

#[test]
fn a_daily_benchmark_with_suites_at_hours_of_their_own_is_scored_and_watched() {
    let one = model("a");
    let mut daily = Vec::new();
    for (suite, hour) in Suite::DEFAULT.into_iter().zip([2, 7, 16]) {
        let level = |day: u32| {
            (if day < 5 { 60.0 } else { 70.0 }) + if day.is_multiple_of(2) { 0.5 } else { -0.5 }
        };
        daily.extend((0..50).map(|day| run(&one, suite, 24 * day + hour, level(day))));
    }
    let scoring = opened(daily);
    let latest = &rankings(&scoring, Period::Latest, SortBy::Combined)[0];
    assert!(
        latest["currentScore"].is_number() && latest["confidenceLower"].is_number(),
        "{latest}"
    );
    let drift = drift_of(&scoring);
    assert_eq!(drift["pageHinkley"]["minimumSamples"], 12, "{drift}");
    assert_eq!(drift["pageHinkley"]["direction"], "down", "{drift}");
    let points = asked(
        &scoring,
        &DocumentKey {
            period: Some(Period::Week),
            ..DocumentKey::of_model(Route::History, ModelId::new("a").unwrap())
        },
    );
    assert!(
        points.iter().any(|point| point["score"].is_number()),
        "{points:?}"
    );
}

#[test]
fn four_low_days_of_suites_at_hours_of_their_own_are_an_incident() {
    let one = model("a");
    for (low, number) in [(3, 0), (4, 1)] {
        let mut daily = Vec::new();
        for (suite, hour) in Suite::DEFAULT.into_iter().zip([2, 5, 8]) {
            let level = |day: u32| if day < low { 62.0 } else { 70.0 };
            daily.extend((0..50).map(|day| run(&one, suite, 24 * day + hour, level(day))));
        }
        let key = DocumentKey {
            limit: Limit::parse("10"),
            ..DocumentKey::over(Route::Incidents, Period::Month)
        };
        let incidents = asked(&opened(daily), &key);
        assert_eq!(incidents.len(), number, "{incidents:?}");
        assert!(
            incidents
                .iter()
                .all(|incident| incident["openedAt"] == "2026-11-18T00:00:00Z")
        );
    }
}

/// Hourly rounds that alternate about a level, and fell by 10 points this many hours ago.
fn fallen(hours: u32) -> Scoring {
    let one = model("a");
    let level = |ago: u32| {
        (if ago <= hours { 60.0 } else { 70.0 }) + if ago.is_multiple_of(2) { 1.0 } else { -1.0 }
    };
    let rounds =
        (1..=40 * 24).flat_map(|ago| Suite::DEFAULT.map(|suite| run(&one, suite, ago, level(ago))));
    opened(rounds.collect())
}

#[test]
fn a_fall_by_ten_points_is_reported_as_such_until_it_is_a_week_old() {
    for hours in [24, 100, 160] {
        let alerts = asked(&fallen(hours), &DocumentKey::plain(Route::Alerts));
        let [alert] = alerts.as_slice() else {
            panic!("{hours}: {alerts:?}")
        };
        // The rounds alternate by the hour, which is a cycle with effects known to a hundredth.
        for (field, expected) in [
            ("drop", 10.0),
            ("baselineScore", 70.0),
            ("currentScore", 60.0),
        ] {
            assert!(
                (alert[field].as_f64().unwrap() - expected).abs() < 0.02,
                "{hours}: {alert}"
            );
        }
        let began = Hour::of(now().minus(HOUR * hours)).start();
        assert_eq!(alert["since"], began.rfc3339(), "{hours}: {alert}");
    }
    assert!(asked(&fallen(9 * 24), &DocumentKey::plain(Route::Alerts)).is_empty());
}
