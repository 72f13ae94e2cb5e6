//! `/analytics/provider-reliability`: the reliability of each provider in a period. `providers` has the current
//! availability.

use scoregate_base::routes::Period;

use super::{
    Item,
    models::better,
    providers::{by_provider, runs},
};
use crate::{
    figures::{points, share},
    hour::hours_of,
    method,
    model_state::ModelState,
    snapshot::Snapshot,
    statistics::SampleSums,
};

/// All providers, most reliable first. Providers without runs are last. Ties are ordered by name.
pub fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    let providers = by_provider(snapshot).into_iter();
    let mut items: Vec<_> = providers
        .map(|(name, models)| item(snapshot, name, &models, period))
        .collect();
    // Missing values sort last. The sort is stable, so ties remain ordered by name.
    items.sort_by(|(a, _), (b, _)| better(*a, *b));
    items.into_iter().map(|(_, item)| item).collect()
}

/// The reliability of a provider, and its item.
fn item(
    snapshot: &Snapshot,
    provider: &str,
    models: &[&ModelState],
    period: Period,
) -> (Option<f64>, Item) {
    let range = snapshot.hour.last(hours_of(period));
    let (runs, failed_runs, availability) = runs(models, period);
    let deviation = models
        .iter()
        .filter_map(|m| m.over(period).deviation)
        .collect::<SampleSums>()
        .mean();
    let incidents = models.iter().flat_map(|model| &model.incidents);
    let incidents: u32 = incidents
        .map(|incident| u32::from(incident.opened_in(range)))
        .sum();
    let counted: f64 = models.iter().map(|_| 1.0).sum();
    let reliability =
        availability.map(|share| points(weighed(share, deviation, f64::from(incidents) / counted)));
    let item = Item::default()
        .with("provider", provider)
        .maybe("reliability", reliability)
        .maybe("availability", availability.map(share))
        .maybe("scoreDeviation", deviation.map(points))
        .with("incidents", incidents)
        .with("runs", runs)
        .with("failedRuns", failed_runs);
    (reliability, item)
}

/// The reliability from 0 to 100. The weight of an unknown part, such as the deviation if there is only one round, is distributed
/// among the other parts.
fn weighed(availability: f64, deviation: Option<f64>, incidents_per_model: f64) -> f64 {
    let steadiness = deviation.map(|points| 1.0 - (points / method::UNSTEADY_POINTS).min(1.0));
    let parts = [
        Some(availability),
        steadiness,
        Some(1.0 / (1.0 + incidents_per_model)),
    ];
    let known = || {
        method::RELIABILITY_WEIGHTS
            .into_iter()
            .zip(parts)
            .filter_map(|(w, part)| Some((w, part?)))
    };
    let weight: f64 = known().map(|(weight, _)| weight).sum();
    100.0 * known().map(|(weight, part)| weight * part).sum::<f64>() / weight
}
