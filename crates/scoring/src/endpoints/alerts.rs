//! `/alerts`: models that score below their own baseline, with evidence: their level fell within a week.
//!
//! Past events are in `incidents`.

use serde::Serialize;

use scoregate_base::clock::Wall;

use super::super::figures::{Severity, points};
use super::super::losses::{self, SureLoss};
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
    shared_by: usize,
    message: String,
}

/// The losses that justify an alert, largest first.
pub(super) fn find(snapshot: &Snapshot) -> Vec<SureLoss<'_>> {
    losses::find(&snapshot.model_states, |state| state.lately, method::ALERT_ALPHA, method::ALERT_MINIMUM)
}

/// The alerts.
pub(super) fn items<'a>(alerts: &[SureLoss<'a>]) -> Vec<Alert<'a>> {
    alerts.iter().map(|loss| item(loss, alerts)).collect()
}

/// The number of other models that fell at about the same time.
fn shared_by(loss: &SureLoss<'_>, alerts: &[SureLoss<'_>]) -> usize {
    let fell_together = |other: &&SureLoss<'_>| {
        let lengths = [loss, *other].map(|loss| loss.model_state.round_length.hours());
        let hours = lengths.into_iter().fold(method::ALERT_TOGETHER_HOURS, u64::max);
        loss.levels.since.number().abs_diff(other.levels.since.number()) <= hours
    };
    let others = alerts.iter().filter(|other| other.model_state.id() != loss.model_state.id());
    others.filter(fell_together).count()
}

fn item<'a>(loss: &SureLoss<'a>, alerts: &[SureLoss<'a>]) -> Alert<'a> {
    let model_state = loss.model_state;
    let (current, baseline) = (points(loss.levels.now.mean), points(loss.levels.before.mean));
    let name = model_state.model.name();
    let since = loss.levels.since.start();
    let (samples, baseline_samples) = model_state.level_runs;
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
        samples,
        baseline_samples,
        since,
        shared_by: shared_by(loss, alerts),
        message: format!(
            "{name} scores {current:.1} since {}, {:.1} points below its own baseline of {baseline:.1}.",
            since.rfc3339(),
            loss.points
        ),
    }
}
