//! `/providers`: availability of each provider, from the trials of the last 24 hours. Its history is in `reliability`.

use std::collections::BTreeMap;

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::count::Attempts;
use super::super::figures::{points, share};
use super::super::method;
use super::super::model_state::ModelState;
use super::super::snapshot::Snapshot;
use super::super::statistics::{SampleSums, median};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderRank<'a> {
    provider: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    availability: Option<f64>,
    models: usize,
    models_available: u32,
    runs: u32,
    failed_runs: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    average_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    #[serde(serialize_with = "super::instant")]
    last_updated: Wall,
}

/// All providers, by name.
pub(super) fn items(snapshot: &Snapshot) -> Vec<ProviderRank<'_>> {
    by_provider(snapshot).into_iter().map(|(provider, models)| item(provider, &models)).collect()
}

/// The models of each provider.
pub(super) fn by_provider(snapshot: &Snapshot) -> BTreeMap<&str, Vec<&ModelState>> {
    let mut providers: BTreeMap<&str, Vec<&ModelState>> = BTreeMap::new();
    for model_state in &snapshot.model_states {
        providers.entry(model_state.model.provider()).or_default().push(model_state);
    }
    providers
}

/// Runs of a provider's models in a period, failed ones, and the share of trials that did not fail.
pub(super) fn runs(models: &[&ModelState], period: Period) -> (u32, u32, Option<f64>) {
    let of =
        |part: fn((u32, u32)) -> u32| models.iter().map(|model| part(model.over(period).runs)).sum::<u32>();
    let (runs, failed) = (of(|(runs, _)| runs), of(|(_, failed)| failed));
    let attempts: Attempts = models.iter().map(|model| model.over(period).attempts).sum();
    (runs, failed, attempts.availability())
}

fn item<'a>(provider: &'a str, models: &[&ModelState]) -> ProviderRank<'a> {
    let (runs, failed_runs, availability) = runs(models, Period::Day);
    let scores: SampleSums = models.iter().filter_map(|m| Some(m.over(Period::Day).score?.score)).collect();
    let latencies: Vec<f64> = models.iter().flat_map(|model| model.latencies.iter().copied()).collect();
    ProviderRank {
        provider,
        status: status(availability),
        availability: availability.map(share),
        models: models.len(),
        models_available: scores.count,
        runs,
        failed_runs,
        average_score: scores.mean().map(points),
        latency_ms: median(&latencies).map(f64::round),
        last_updated: models.iter().map(|model| model.last_updated(Period::Day)).max().unwrap_or_default(),
    }
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
