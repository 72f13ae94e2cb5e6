//! The effect of failures: those of the model lower its score, those of the provider its availability, and those of
//! the harness nothing.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use crate::*;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, every_question, limit, now, rankings};

fn model() -> Arc<TestedModel> {
    Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap())
}

fn trials(scores: &[f64]) -> Vec<Trial> {
    scores
        .iter()
        .map(|score| Trial::new([*score; 7], 100.0, 0.5).unwrap())
        .collect()
}

/// A run of these trials, this many hours ago.
fn listed(suite: Suite, ago: u32, scores: &[f64], failed: &[RunFailure]) -> Run {
    let at = now().minus(HOUR * ago);
    let outcome = RunOutcome::Scored(trials(scores));
    Run::with_failed_trials(model(), suite, at, outcome, failed.to_vec()).unwrap()
}

/// A run that failed as a whole.
fn failed(suite: Suite, ago: u32, reason: RunFailure) -> Run {
    Run::new(
        model(),
        suite,
        now().minus(HOUR * ago),
        RunOutcome::Failed(reason),
    )
    .unwrap()
}

fn opened(runs: &[Run]) -> Scoring {
    Scoring::open(RunSource::Runs(runs.to_vec().into()), now()).unwrap()
}

fn detail(scoring: &Scoring) -> Value {
    asked(
        scoring,
        &DocumentKey::of_model(Route::Model, ModelId::new("m").unwrap()),
    )
    .remove(0)
}

fn availability(scoring: &Scoring) -> Option<f64> {
    let day = asked(
        scoring,
        &DocumentKey::over(Route::ProviderReliability, Period::Day),
    )
    .remove(0);
    let now = asked(scoring, &DocumentKey::plain(Route::Providers)).remove(0);
    assert_eq!(now["availability"], day["availability"]);
    day["availability"].as_f64()
}

#[test]
fn nine_timeouts_of_ten_trials_count_as_zero() {
    let runs = Suite::DEFAULT.map(|suite| listed(suite, 1, &[0.95], &[RunFailure::Timeout; 9]));
    let scoring = opened(&runs);
    let detail = detail(&scoring);
    assert_eq!(
        (&detail["currentScore"], &detail["status"]),
        (&9.5.into(), &"critical".into())
    );
    assert_eq!(
        (&detail["latestScore"], &detail["failedRuns"]),
        (&9.5.into(), &0.into())
    );
    assert_eq!(availability(&scoring), Some(0.1));
    let provider = asked(
        &scoring,
        &DocumentKey::over(Route::ProviderReliability, Period::Day),
    )
    .remove(0);
    assert!(
        provider["reliability"].as_f64().unwrap() < 50.0,
        "{provider}"
    );
    // Latency and cost are those of the trial that has them.
    assert_eq!(detail["latencyMs"], 100.0);
    let by_price = rankings(&scoring, Period::Day, SortBy::Price).remove(0);
    assert_eq!(by_price["costUsd"], 0.5);
    let samples = asked(
        &scoring,
        &DocumentKey::over(Route::Transparency, Period::Day),
    )
    .remove(0)["samples"][0]
        .clone();
    assert_eq!(
        (&samples["trials"], &samples["failedTrials"]),
        (&10.into(), &9.into())
    );
}

#[test]
fn runs_of_which_every_trial_timed_out_score_zero_and_update_the_model() {
    for whole in [true, false] {
        let run = |suite| {
            if whole {
                failed(suite, 1, RunFailure::Unusable)
            } else {
                listed(suite, 1, &[], &[RunFailure::Timeout; 4])
            }
        };
        let scoring = opened(&Suite::DEFAULT.map(run));
        let detail = detail(&scoring);
        assert_eq!(
            (&detail["currentScore"], &detail["failedRuns"]),
            (&0.0.into(), &3.into())
        );
        assert_eq!(detail["suites"][0]["lastRun"], now().minus(HOUR).rfc3339());
        assert_eq!(availability(&scoring), Some(0.0));
    }
}

#[test]
fn failures_of_the_provider_lower_availability_only() {
    let good = Suite::DEFAULT
        .map(|suite| listed(suite, 1, &[0.8, 0.6], &[]))
        .to_vec();
    for reason in [RunFailure::Throttled, RunFailure::Unreachable] {
        let mut runs = good.clone();
        runs.push(listed(Suite::CODING, 2, &[0.8], &[reason]));
        runs.push(listed(Suite::CODING, 3, &[], &[reason; 2]));
        let scoring = opened(&runs);
        let expected = 0.4 * 75.0 + 0.6 * 70.0;
        assert_eq!(detail(&scoring)["currentScore"], expected);
        assert_eq!(detail(&scoring)["failedRuns"], 1);
        assert_eq!(availability(&scoring), Some(0.7), "7 of 10 trials");
    }
}

#[test]
fn a_run_that_failed_as_a_whole_counts_as_an_average_run_of_its_suite() {
    let mut runs = Suite::DEFAULT
        .map(|suite| listed(suite, 1, &[0.8; 4], &[]))
        .to_vec();
    runs.push(failed(Suite::CODING, 2, RunFailure::Unreachable));
    assert_eq!(availability(&opened(&runs)), Some(0.75), "12 of 16 trials");
    assert_eq!(
        availability(&opened(&[failed(Suite::CODING, 2, RunFailure::Throttled)])),
        Some(0.0)
    );
}

#[test]
fn failures_of_the_harness_count_nowhere() {
    let good = Suite::DEFAULT
        .map(|suite| listed(suite, 2, &[0.8, 0.6], &[RunFailure::Timeout]))
        .to_vec();
    let mut with = good.clone();
    for suite in Suite::DEFAULT {
        with.extend((3..9).map(|ago| failed(suite, ago, RunFailure::Harness)));
        with.push(listed(suite, 1, &[], &[RunFailure::Harness; 3]));
    }
    let mixed: Vec<RunFailure> = vec![RunFailure::Timeout, RunFailure::Harness];
    let in_runs = Suite::DEFAULT.map(|suite| listed(suite, 2, &[0.8, 0.6], &mixed));
    let expected = opened(&good);
    for runs in [with.clone(), in_runs.to_vec()] {
        let scoring = opened(&runs);
        for (question, _) in every_question(&expected) {
            assert_eq!(
                scoring.answer(&question),
                expected.answer(&question),
                "{question:?}"
            );
        }
    }
    // Alone they are no outage, and neither available nor unavailable.
    with.retain(|run| {
        run.failures()
            .iter()
            .all(|failure| *failure == RunFailure::Harness)
    });
    let alone = opened(&with);
    assert!(
        asked(
            &alone,
            &DocumentKey {
                limit: Some(limit(10)),
                ..DocumentKey::over(Route::Incidents, Period::Month)
            }
        )
        .is_empty()
    );
    assert_eq!(
        (availability(&alone), &detail(&alone)["runs"]),
        (None, &0.into())
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn one_more_failure_of_the_model_never_raises_a_score(
        scores in prop::collection::vec((prop::collection::vec(0.0..=1.0_f64, 0..4), 0..3_usize), 12),
        place in 0..3_usize,
        ago in 1..24_u32,
        reason in prop::sample::select(vec![RunFailure::Timeout, RunFailure::Unusable]),
        into in prop::option::of(0..12_usize),
    ) {
        let mut runs: Vec<Run> = scores.iter().enumerate().map(|(index, (scores, failed))| {
            let suite = Suite::DEFAULT[index % 3];
            let failures = vec![RunFailure::Throttled; (*failed).max(usize::from(scores.is_empty()))];
            listed(suite, u32::try_from(index).unwrap() + 1, scores, &failures)
        }).collect();
        // Every suite has a score before: a first one is no rise.
        runs.extend(Suite::DEFAULT.map(|suite| listed(suite, 20, &[0.5], &[])));
        let before = opened(&runs);
        match into {
            Some(index) => {
                let run = &runs[index];
                let failures = [run.failed_trials(), &[reason]].concat();
                runs[index] = Run::with_failed_trials(model(), run.suite(), run.at(), run.outcome().clone(), failures).unwrap();
            }
            None => runs.push(failed(Suite::DEFAULT[place], ago, reason)),
        }
        let after = opened(&runs);
        for sort_by in SortBy::ALL {
            let score = |scoring| rankings(scoring, Period::Day, sort_by)[0]["currentScore"].as_f64().unwrap();
            prop_assert!(score(&after) <= score(&before), "{sort_by:?}");
        }
        let axes = |scoring| detail(scoring)["axes"].as_array().unwrap().iter().map(|axis| axis["score"].as_f64().unwrap()).collect::<Vec<_>>();
        for (before, after) in axes(&before).into_iter().zip(axes(&after)) {
            prop_assert!(after <= before);
        }
        prop_assert!(availability(&after) <= availability(&before));
    }
}

#[test]
fn missing_latency_and_cost_are_absent_and_never_zero() {
    let trial = |latency, cost| Trial::new([0.8; 7], latency, cost).unwrap();
    let made = |id: &str, trials: Vec<Trial>| {
        let model =
            Arc::new(TestedModel::new(ModelId::new(id).unwrap(), id, id, None, None).unwrap());
        let run = |suite| {
            Run::new(
                Arc::clone(&model),
                suite,
                now().minus(HOUR),
                RunOutcome::Scored(trials.clone()),
            )
        };
        Suite::DEFAULT.map(|suite| run(suite).unwrap())
    };
    let runs = [
        made("none", vec![trial(None, None); 2]),
        made(
            "some",
            vec![
                trial(None, None),
                trial(Some(900.0), None),
                trial(None, Some(3.0)),
            ],
        ),
    ]
    .concat();
    let scoring = opened(&runs);
    for (sort_by, field, value) in [
        (SortBy::Speed, "latencyMs", 900.0),
        (SortBy::Price, "costUsd", 3.0),
    ] {
        let items = rankings(&scoring, Period::Day, sort_by);
        assert_eq!(
            (&items[0]["id"], &items[0][field]),
            (&"some".into(), &value.into())
        );
        assert_eq!(
            (&items[1]["id"], items[1].get(field)),
            (&"none".into(), None)
        );
        assert_eq!(items[1]["currentScore"], 80.0);
    }
    let detail = asked(
        &scoring,
        &DocumentKey::of_model(Route::Model, ModelId::new("none").unwrap()),
    )
    .remove(0);
    assert_eq!(detail.get("latencyMs"), None);
    let providers = asked(&scoring, &DocumentKey::plain(Route::Providers));
    assert_eq!(
        (providers[0].get("latencyMs"), &providers[1]["latencyMs"]),
        (None, &900.0.into())
    );
    for item in asked(
        &scoring,
        &DocumentKey::over(Route::Recommendations, Period::Day),
    ) {
        let expected: &[&str] = if ["fast", "budget"].contains(&item["task"].as_str().unwrap()) {
            &[]
        } else {
            &["some"]
        };
        assert_eq!(item["alternatives"], serde_json::json!(expected), "{item}");
    }
    let alone = opened(&made("none", vec![trial(None, None)]));
    let tasks = asked(
        &alone,
        &DocumentKey::over(Route::Recommendations, Period::Day),
    );
    assert_eq!(
        tasks.iter().map(|item| &item["task"]).collect::<Vec<_>>(),
        ["coding", "reasoning", "tooling"]
    );
}
