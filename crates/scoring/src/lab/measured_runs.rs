//! Measured runs in memory, for tests and simulations. Servers read runs from an archive.

use std::{collections::BTreeMap, sync::Arc};

use scoregate_base::routes::ModelId;

use crate::{
    hour::HourRange,
    run::{Run, TestedModel},
    series::ScoreSeries,
    simulate::identified,
};

/// Runs, sorted so that sums do not depend on their original order.
#[derive(Debug)]
pub struct MeasuredRuns(Vec<Run>);

impl From<Vec<Run>> for MeasuredRuns {
    fn from(mut runs: Vec<Run>) -> Self {
        runs.sort_by(|a, b| {
            let when = |run: &Run| (run.at(), run.suite(), run.model().id().clone());
            let line = |run: &Run| identified(run.clone()).write();
            when(a).cmp(&when(b)).then_with(|| line(a).cmp(&line(b)))
        });
        Self(runs)
    }
}

impl MeasuredRuns {
    /// The models with runs in the window.
    pub(crate) fn series(&self, window: HourRange) -> Vec<(Arc<TestedModel>, ScoreSeries)> {
        let mut by_model: BTreeMap<&ModelId, Vec<&Run>> = BTreeMap::new();
        for run in self.0.iter().filter(|run| run.at() < window.to.start()) {
            by_model.entry(run.model().id()).or_default().push(run);
        }
        let draw = |runs: Vec<&Run>| {
            let mut series = ScoreSeries::new(Arc::default(), window);
            for run in &runs {
                series.add(run);
            }
            // Names and prices may change, and the newest run determines them.
            let model = runs.last().filter(|run| window.holds(run.at()))?.model();
            Some((Arc::clone(model), series))
        };
        by_model.into_values().filter_map(draw).collect()
    }
}
