//! The effect of failures: model failures lower the score, provider failures lower the availability, and harness failures have no
//! effect.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use crate::*;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, now, rankings};

fn model() -> Arc<TestedModel> {
    Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap())
}

fn trials(scores: &[f64]) -> Vec<Trial> {
    scores
        .iter()
        .map(|score| Trial::new([*score; 7], 100.0, 0.5).unwrap())
        .collect()
}

/// A run with these trials, `ago` hours ago.
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
        // Every suite already has a score, because a first score does not count as a rise.
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
