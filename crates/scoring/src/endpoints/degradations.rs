//! `/analytics/degradations`: models whose level fell within the period or the one before.

use serde::Serialize;

use scoregate_base::routes::Period;

use super::super::changes::ModelChanges;
use super::super::figures::{Trend, points};
use super::super::hour::of_period;
use super::super::levels::ShiftDirection;
use super::super::losses::{self, SureLoss};
use super::super::method;
use super::super::model_state::ModelState;
use super::super::snapshot::Snapshot;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Degradation<'a> {
    model_id: &'a str,
    model_name: &'a str,
    provider: &'a str,
    direction: Trend,
    magnitude: f64,
    previous_score: f64,
    current_score: f64,
    p_value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_axis: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    worst_axis_loss: Option<f64>,
}

/// The degradations of a period, largest first.
pub(super) fn items<'a>(
    snapshot: &'a Snapshot,
    changes: &ModelChanges<'_>,
    period: Period,
) -> Vec<Degradation<'a>> {
    let losses = losses::find(
        &snapshot.model_states,
        |model_state| *of_period(period, &model_state.levels),
        method::DEGRADATION_ALPHA,
        method::DEGRADATION_MINIMUM,
    );
    losses.iter().map(|loss| item(loss, changes, period)).collect()
}

fn item<'a>(loss: &SureLoss<'a>, changes: &ModelChanges<'_>, period: Period) -> Degradation<'a> {
    let model_state = loss.model_state;
    let worst = *of_period(period, &model_state.worst_axes);
    Degradation {
        model_id: model_state.id(),
        model_name: model_state.model.name(),
        provider: model_state.model.provider(),
        direction: direction(model_state, changes),
        magnitude: loss.points,
        previous_score: points(loss.levels.before.mean),
        current_score: points(loss.levels.now.mean),
        p_value: loss.chance,
        worst_axis: worst.map(|(axis, _)| axis.word()),
        worst_axis_loss: worst.map(|(_, lost)| lost),
    }
}

/// That of the newest change of level, while it is in force.
fn direction(model_state: &ModelState, changes: &ModelChanges<'_>) -> Trend {
    let signal = model_state.drift.signal.filter(|_| changes.of(model_state).has_drifted());
    match signal.map(|signal| signal.direction) {
        None => Trend::Stable,
        Some(ShiftDirection::Up) => Trend::Up,
        Some(ShiftDirection::Down) => Trend::Down,
    }
}
