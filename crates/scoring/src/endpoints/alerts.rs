//! `/alerts`: models whose score is below their baseline, with evidence. The level of each listed model fell within the last week.
//!
//! `incidents` has past events.

use super::Item;
use crate::{
    figures::{Severity, points},
    losses::{self, SureLoss},
    method,
    snapshot::Snapshot,
};

/// The losses that justify an alert, largest first.
pub fn find(snapshot: &Snapshot) -> Vec<SureLoss<'_>> {
    losses::find(
        &snapshot.model_states,
        |state| state.lately,
        method::ALERT_ALPHA,
        method::ALERT_MINIMUM,
    )
}

/// The alerts.
pub fn items(alerts: &[SureLoss<'_>]) -> Vec<Item> {
    alerts.iter().map(|loss| item(loss, alerts)).collect()
}

/// The number of other models whose level fell at about the same time.
fn shared_by(loss: &SureLoss<'_>, alerts: &[SureLoss<'_>]) -> usize {
    let others = alerts
        .iter()
        .filter(|other| other.model_state.id() != loss.model_state.id());
    others
        .filter(|other| {
            let lengths = [loss, *other].map(|loss| loss.model_state.round_length.hours());
            let hours = lengths
                .into_iter()
                .fold(method::ALERT_TOGETHER_HOURS, u64::max);
            loss.levels
                .since
                .number()
                .abs_diff(other.levels.since.number())
                <= hours
        })
        .count()
}

fn item(loss: &SureLoss<'_>, alerts: &[SureLoss<'_>]) -> Item {
    let model_state = loss.model_state;
    let current = points(loss.levels.now.mean);
    let baseline = points(loss.levels.before.mean);
    let since = loss.levels.since.start().rfc3339();
    let (samples, baseline_samples) = model_state.level_runs;
    let message = format!(
        "{} has scored {current:.1} since {since}, {:.1} points below its own baseline of {baseline:.1}.",
        model_state.model.name(),
        loss.points
    );
    // There is at most one alert per model. It keeps its id as long as it lasts.
    Item::default()
        .with("id", format!("alert-{}", model_state.id()))
        .model(model_state)
        .with(
            "severity",
            Severity::from(loss.points, method::ALERT_CRITICAL),
        )
        .with("currentScore", current)
        .with("baselineScore", baseline)
        .with("drop", loss.points)
        .with("pValue", loss.chance)
        .with("samples", samples)
        .with("baselineSamples", baseline_samples)
        .with("since", loss.levels.since.start())
        .with("sharedBy", shared_by(loss, alerts))
        .with("message", message)
}
