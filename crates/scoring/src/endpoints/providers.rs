//! `/providers`: availability of each provider, computed from the trials of the last 24 hours. `reliability` has its
//! history.

use std::collections::BTreeMap;

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    count::Attempts,
    figures::{points, share},
    method,
    model_state::ModelState,
    snapshot::Snapshot,
    statistics::{SampleSums, median},
};

/// All providers, ordered by name.
pub fn items(snapshot: &Snapshot) -> Vec<Item> {
    by_provider(snapshot)
        .into_iter()
        .map(|(provider, models)| item(provider, &models))
        .collect()
}

/// The models of each provider.
pub fn by_provider(snapshot: &Snapshot) -> BTreeMap<&str, Vec<&ModelState>> {
    let mut providers: BTreeMap<&str, Vec<&ModelState>> = BTreeMap::new();
    for model_state in &snapshot.model_states {
        providers
            .entry(model_state.model.provider())
            .or_default()
            .push(model_state);
    }
    providers
}

/// For a provider's models in a period: number of runs, number of failed runs, and the share of trials that did not
/// fail.
pub fn runs(models: &[&ModelState], period: Period) -> (u32, u32, Option<f64>) {
    let mut runs = 0;
    let mut failed = 0;
    for model in models {
        let of_model = model.over(period).runs;
        runs += of_model.0;
        failed += of_model.1;
    }
    let attempts: Attempts = models.iter().map(|model| model.over(period).attempts).sum();
    (runs, failed, attempts.availability())
}

fn item(provider: &str, models: &[&ModelState]) -> Item {
    let (runs, failed_runs, availability) = runs(models, Period::Day);
    let scores: SampleSums = models
        .iter()
        .filter_map(|m| Some(m.over(Period::Day).score()?.score))
        .collect();
    let latencies: Vec<f64> = models
        .iter()
        .flat_map(|model| model.latencies.iter().copied())
        .collect();
    let last_updated = models
        .iter()
        .map(|model| model.last_updated(Period::Day))
        .max()
        .unwrap_or_default();
    Item::default()
        .with("provider", provider)
        .with("status", status(availability))
        .maybe("availability", availability.map(share))
        .with("models", models.len())
        .with("modelsAvailable", scores.count)
        .with("runs", runs)
        .with("failedRuns", failed_runs)
        .maybe("averageScore", scores.mean().map(points))
        .maybe("latencyMs", median(&latencies).map(f64::round))
        .with("lastUpdated", last_updated)
}

fn status(availability: Option<f64>) -> &'static str {
    let [operational, degraded] = method::PROVIDER_AVAILABILITY;
    match availability {
        None => "unavailable",
        Some(share) if share >= operational => "operational",
        Some(share) if share >= degraded => "degraded",
        Some(_) => "outage",
    }
}
