//! Recommendations and ranks for models with few rounds.

use std::sync::Arc;

use serde_json::Value;

use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::fixtures::{HOUR, asked, leveled_runs, rankings};
use crate::{
    lab::simulated_noise::{NoiseGenerator, NoiseKind},
    *,
};

const NEWCOMER: &str = "newcomer";

/// Eight models with a month of rounds at 70 points or less, and one model with a single run of each suite, in which it
/// solved everything.
fn with_newcomer() -> Scoring {
    let mut noise = NoiseGenerator::new(NoiseKind::White, 1.5, 0x5EED);
    let drawn: Vec<f64> = (0..8 * 35 * 24).map(|_| noise.draw()).collect();
    let (mut runs, end) = leveled_runs(8, 0.5, |model, hour| drawn[(model * 840 + hour) as usize]);
    let id = ModelId::new(NEWCOMER).unwrap();
    let model = Arc::new(TestedModel::new(id, "N", "p", None, None).unwrap());
    for suite in Suite::DEFAULT {
        let outcome = RunOutcome::Scored(vec![Trial::new([1.0; 7], 1.0, 0.001).unwrap()]);
        runs.push(Run::new(Arc::clone(&model), suite, end.minus(HOUR), outcome).unwrap());
    }
    Scoring::open(RunSource::Runs(runs.into()), end).unwrap()
}

#[test]
fn a_model_with_one_run_is_never_the_best_and_is_named_as_tied() {
    let scoring = with_newcomer();
    let index = &asked(&scoring, &DocumentKey::plain(Route::Index))[0];
    assert_eq!(index["bestModel"], "m00");
    for period in Period::ALL {
        let tasks = asked(&scoring, &DocumentKey::over(Route::Recommendations, period));
        assert_eq!(tasks.len(), 5, "{period:?}");
        for task in tasks {
            assert_ne!(task["modelId"], NEWCOMER, "{task}");
            if let Some(tied) = task["tied"].as_array() {
                assert!(tied.contains(&NEWCOMER.into()), "{task}");
            }
        }
    }
}

#[test]
fn the_standard_error_of_constant_marks_agrees_with_their_bounds() {
    let scoring = with_newcomer();
    let newcomer =
        |items: Vec<Value>, id: &str| items.into_iter().find(|item| item[id] == NEWCOMER).unwrap();
    let number = |item: &Value, field: &str| item[field].as_f64().unwrap();
    let shown = newcomer(rankings(&scoring, Period::Day, SortBy::Combined), "id");
    let transparency = DocumentKey::over(Route::Transparency, Period::Day);
    let explained = newcomer(asked(&scoring, &transparency), "modelId");
    let error = number(&explained, "standardError");
    let below = number(&shown, "currentScore") - number(&shown, "confidenceLower");
    // The width of the interval in standard errors is a quantile of Student's t.
    assert!(
        below > 10.0 && (1.9..5.0).contains(&(below / error)),
        "{below} {error}"
    );
}
