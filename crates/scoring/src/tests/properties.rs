//! Properties of whole responses for generated runs: intervals, the index, the order of models, and variations that
//! must not cause an alert.

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;
use serde_json::Value;

use crate::*;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, every_question, now, rankings};

/// Hours of the baseline plus the day that is compared with it.
const HOURS: u32 = 8 * 24;

fn model(name: &str) -> Arc<TestedModel> {
    Arc::new(TestedModel::new(ModelId::new(name).unwrap(), name, "p", None, None).unwrap())
}

/// A run of two trials with this score, `ago` hours ago.
fn run(model: &Arc<TestedModel>, suite: Suite, ago: u32, score: f64) -> Run {
    let trials = vec![Trial::new([(score / 100.0).clamp(0.0, 1.0); 7], 9.0, 0.1).unwrap(); 2];
    Run::new(
        Arc::clone(model),
        suite,
        now().minus(HOUR * ago),
        RunOutcome::Scored(trials),
    )
    .unwrap()
}

/// A round for each score, newest last. The newest round is an hour old.
fn history(model: &Arc<TestedModel>, scores: &[f64]) -> Vec<Run> {
    let rounds = (1..).zip(scores.iter().rev());
    rounds
        .flat_map(|(ago, score)| Suite::DEFAULT.map(|suite| run(model, suite, ago, *score)))
        .collect()
}

/// Hourly scores around a level, with a last day that is lower by `lost`.
fn drawn(level: f64, noise: &[f64], lost: f64) -> Vec<f64> {
    let day = usize::try_from(HOURS).unwrap() - 24;
    let score = |(hour, noise): (usize, &f64)| level + noise - if hour < day { 0.0 } else { lost };
    noise.iter().enumerate().map(score).collect()
}

fn noise(size: f64) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-size..=size, usize::try_from(HOURS).unwrap())
}

fn opened(runs: &[Run]) -> Scoring {
    Scoring::open(RunSource::Runs(runs.to_vec().into()), now()).unwrap()
}

fn alerts(runs: &[Run]) -> BTreeSet<String> {
    let items = asked(&opened(runs), &DocumentKey::plain(Route::Alerts));
    items
        .iter()
        .map(|item| item["modelId"].as_str().unwrap().to_owned())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn an_interval_contains_its_score_and_the_index_is_between_the_extremes(
        levels in prop::collection::vec(0.0..100.0_f64, 1..5),
        noise in noise(30.0),
    ) {
        let names = ["a", "b", "c", "d", "e"].map(model);
        let runs: Vec<Run> =
            names.iter().zip(&levels).flat_map(|(m, level)| history(m, &drawn(*level, &noise, 0.0))).collect();
        let scoring = opened(&runs);
        let items = rankings(&scoring, Period::Day, SortBy::Combined);
        let number = |item: &Value, name: &str| item[name].as_f64().unwrap();
        for item in &items {
            let score = number(item, "currentScore");
            prop_assert!(number(item, "confidenceLower") <= score && score <= number(item, "confidenceUpper"), "{item}");
            prop_assert!(number(item, "confidenceLower") < number(item, "confidenceUpper"), "{item}");
        }
        let index = number(&asked(&scoring, &DocumentKey::plain(Route::Index))[0], "value");
        let scores: Vec<f64> = items.iter().map(|item| number(item, "currentScore")).collect();
        // The index is rounded once more than the scores.
        prop_assert!(scores[scores.len() - 1] - 0.005 <= index && index <= scores[0] + 0.005, "{index} {scores:?}");
    }

    #[test]
    fn the_order_of_the_models_changes_nothing(
        order in Just(vec![0_usize, 1, 2, 3]).prop_shuffle(),
        noise in noise(2.0),
        lost in 0.0..9.0_f64,
    ) {
        let blocks: Vec<Vec<Run>> = ["a", "b", "c", "d"]
            .into_iter()
            .zip([0.0, lost, 0.0, -lost])
            .map(|(name, lost)| history(&model(name), &drawn(60.0, &noise, lost)))
            .collect();
        let one = opened(&blocks.concat());
        let other = opened(&order.iter().flat_map(|at| blocks[*at].clone()).collect::<Vec<_>>());
        for (question, _) in every_question(&one) {
            prop_assert_eq!(one.answer(&question), other.answer(&question), "{:?}", question);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_run_at_the_model_s_own_baseline_raises_no_alert(
        noise in noise(6.0),
        lost in 0.0..4.0_f64,
        place in 0..3_usize,
    ) {
        let model = model("a");
        let scores = drawn(70.0, &noise, lost);
        let mut runs = history(&model, &scores);
        prop_assume!(alerts(&runs).is_empty());
        let baseline = &scores[..scores.len() - 24];
        let level = baseline.iter().sum::<f64>() / 168.0;
        runs.push(run(&model, Suite::DEFAULT[place], 1, level));
        prop_assert!(alerts(&runs).is_empty());
    }
}
