//! Measured runs in memory, for tests and simulations. Servers read theirs from an archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use scoregate_base::routes::ModelId;

use super::super::hour::HourRange;
use super::super::run::{Run, RunOutcome, TestedModel, Trial};
use super::super::series::ScoreSeries;

/// Runs, sorted so that sums do not depend on their original order.
#[derive(Debug)]
pub struct MeasuredRuns(Vec<Run>);

impl From<Vec<Run>> for MeasuredRuns {
    fn from(mut runs: Vec<Run>) -> Self {
        runs.sort_by(|a, b| {
            let when = |run: &Run| (run.at(), run.suite(), run.model().id().clone());
            when(a).cmp(&when(b)).then_with(|| content(a).cmp(&content(b)))
        });
        Self(runs)
    }
}

impl MeasuredRuns {
    /// The models with runs in the window.
    pub(in super::super) fn series(&self, window: HourRange) -> Vec<(Arc<TestedModel>, ScoreSeries)> {
        let mut by_model: BTreeMap<&ModelId, Vec<&Run>> = BTreeMap::new();
        for run in self.0.iter().filter(|run| run.at() < window.to.start()) {
            by_model.entry(run.model().id()).or_default().push(run);
        }
        let draw = |runs: Vec<&Run>| {
            let mut series = ScoreSeries::new(Arc::default(), window);
            for run in &runs {
                series.add(run);
            }
            // Names and prices change; the newest run is authoritative.
            let model = runs.last().filter(|run| window.holds(run.at()))?.model();
            Some((Arc::clone(model), series))
        };
        by_model.into_values().filter_map(draw).collect()
    }
}

/// Distinguishes runs of one model, suite and time.
fn content(run: &Run) -> Vec<u64> {
    let model = run.model();
    let text = |text: &str| text.bytes().map(u64::from).collect::<Vec<_>>();
    let prices =
        [model.price_input(), model.price_output()].map(|price| price.map_or(u64::MAX, f64::to_bits));
    let outcome = match run.outcome() {
        RunOutcome::Failed(failure) => vec![*failure as u64],
        RunOutcome::Scored(trials) => trials.iter().flat_map(trial_content).collect(),
    };
    let failed_trials = run.failed_trials().iter().map(|failure| *failure as u64).collect();
    [text(model.name()), text(model.provider()), prices.to_vec(), outcome, failed_trials].concat()
}

fn trial_content(trial: &Trial) -> impl Iterator<Item = u64> {
    let rest = [trial.latency_ms(), trial.cost()].map(|number| number.map_or(u64::MAX, f64::to_bits));
    let scores = trial.scores().map(|score| score.map_or(u64::MAX, f64::to_bits));
    scores.into_iter().chain(rest)
}
