//! `/analytics/transparency`: how each score was computed.

use serde::Serialize;

use scoregate_base::routes::{Period, SortBy};

use super::Item;
use crate::{
    count::RunCounts, figures::points, method, model_state::ModelState, run::SuiteEntry,
    snapshot::Snapshot, suite::Axis,
};

/// All models, ordered by id.
pub fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    snapshot
        .model_states
        .iter()
        .map(|model_state| item(snapshot, model_state, period))
        .collect()
}

fn item(snapshot: &Snapshot, model_state: &ModelState, period: Period) -> Item {
    let summary = model_state.over(period);
    let suites = || snapshot.suites.suites().iter();
    let suite_weights = suites().zip(snapshot.suites.weights(SortBy::Combined));
    let age = summary
        .reading
        .last_scored()
        .map(|at| snapshot.at.since(at).as_secs());
    Item::default()
        .model(model_state)
        .maybe("currentScore", summary.score().map(|score| score.score))
        .maybe("standardError", summary.standard_error().map(points))
        .maybe(
            "minimumDetectableEffect",
            summary.least_visible_change().map(points),
        )
        .objects(
            "suiteWeights",
            suite_weights.map(|(suite, weight)| weighed(suite.name(), *weight)),
        )
        .objects(
            "axisWeights",
            method::AXIS_WEIGHTS.map(|(axis, weight)| weighed(axis, weight)),
        )
        .objects("suites", suites().map(weights))
        .objects(
            "samples",
            summary
                .reading
                .suites()
                .map(|(suite, count)| samples(suite, count)),
        )
        .maybe("freshnessSeconds", age)
        .with("methodVersion", &snapshot.method_version)
        .with("synthetic", snapshot.synthetic)
}

fn weighed(name: impl Serialize, weight: f64) -> Item {
    Item::default().with("name", name).with("weight", weight)
}

fn weights(suite: &SuiteEntry) -> Item {
    let axes = Axis::ALL
        .into_iter()
        .zip(suite.axis_weights())
        .zip(suite.axes().flags());
    let declared = axes.filter(|(_, is_declared)| *is_declared);
    weighed(suite.name(), suite.weight())
        .objects(
            "axes",
            declared.map(|((axis, weight), _)| weighed(axis, *weight)),
        )
        .with("feeds", suite.feeds())
}

fn samples(suite: &SuiteEntry, count: &RunCounts) -> Item {
    Item::default()
        .with("suite", suite.name())
        .with("runs", count.runs)
        .with("failedRuns", count.failed)
        .with("trials", count.trials_in_score())
        .with("failedTrials", count.failed_trials)
        .maybe("lastRun", count.last_scored)
}
