//! `/alerts`: models that score below their own baseline, with evidence.
//!
//! Compares the last 24 hours with the 7 days before them, or before the fall. Past events are in `incidents`.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::alert_baseline;
use super::super::figures::{Severity, points};
use super::super::hour::Hour;
use super::super::losses::{self, EstimatePair, SureLoss};
use super::super::method;
use super::super::snapshot::Snapshot;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Alert<'a> {
    id: String,
    model_id: &'a str,
    model_name: &'a str,
    provider: &'a str,
    severity: Severity,
    current_score: f64,
    baseline_score: f64,
    drop: f64,
    p_value: f64,
    samples: u32,
    baseline_samples: u32,
    #[serde(serialize_with = "super::instant")]
    since: Wall,
    message: String,
}

/// The losses that justify an alert, largest first.
pub(super) fn find(snapshot: &Snapshot) -> Vec<SureLoss<'_>> {
    let pair = |model_state| {
        let pair: &super::super::model_state::ModelState = model_state;
        let (now, before) = pair.comparison;
        Some(EstimatePair { model_state: pair, before: before?, now: now? })
    };
    let pairs: Vec<EstimatePair<'_>> = snapshot.model_states.iter().filter_map(pair).collect();
    losses::find(&pairs, method::ALERT_ALPHA, method::ALERT_MINIMUM)
}

/// The alerts.
pub(super) fn items<'a>(alerts: &[SureLoss<'a>]) -> Vec<Alert<'a>> {
    alerts.iter().map(item).collect()
}

fn item<'a>(loss: &SureLoss<'a>) -> Alert<'a> {
    let model_state = loss.pair.model_state;
    let (current, baseline) = (points(loss.pair.now.mean), points(loss.pair.before.mean));
    let name = model_state.model.name();
    Alert {
        // At most one alert per model, with the same id as long as it lasts.
        id: format!("alert-{}", model_state.id()),
        model_id: model_state.id(),
        model_name: name,
        provider: model_state.model.provider(),
        severity: Severity::from(loss.points, method::ALERT_CRITICAL),
        current_score: current,
        baseline_score: baseline,
        drop: loss.points,
        p_value: loss.chance,
        samples: model_state.over(Period::Day).reading.scored(),
        baseline_samples: model_state.baseline_runs,
        since: since(loss),
        message: format!(
            "{name} scores {current:.1} over the last 24 hours, {:.1} points below its own baseline of {baseline:.1}.",
            loss.points
        ),
    }
}

/// The first round after the change of level.
fn since(loss: &SureLoss<'_>) -> Wall {
    let middle = loss.pair.now.mean.midpoint(loss.pair.before.mean);
    let began = alert_baseline::change_of_level(&loss.pair.model_state.rounds, middle);
    began.map_or_else(Wall::default, Hour::start)
}
