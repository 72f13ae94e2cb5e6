//! `/analytics/degradations`: models whose level fell within the period or the previous one.

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    figures::{Trend, points},
    hour::of_period,
    levels::ShiftDirection,
    losses::{self, SureLoss},
    method,
    model_state::ModelState,
    snapshot::Snapshot,
};

/// The degradations of a period, largest first.
pub fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    let losses = losses::find(
        &snapshot.model_states,
        |model_state| *of_period(period, &model_state.levels),
        method::DEGRADATION_ALPHA,
        method::DEGRADATION_MINIMUM,
    );
    losses.iter().map(|loss| item(loss, period)).collect()
}

fn item(loss: &SureLoss<'_>, period: Period) -> Item {
    let worst = *of_period(period, &loss.model_state.worst_axes);
    Item::default()
        .model(loss.model_state)
        .with("direction", direction(loss.model_state))
        .with("magnitude", loss.points)
        .with("previousScore", points(loss.levels.before.mean))
        .with("currentScore", points(loss.levels.now.mean))
        .with("pValue", loss.chance)
        .maybe("worstAxis", worst.map(|(axis, _)| axis))
        .maybe("worstAxisLoss", worst.map(|(_, lost)| lost))
}

/// The direction of the drift signal if it is significant, otherwise `Stable`.
fn direction(model_state: &ModelState) -> Trend {
    let signal = model_state
        .drift
        .signal
        .filter(|_| model_state.change.has_drifted());
    match signal.map(|signal| signal.direction) {
        None => Trend::Stable,
        Some(ShiftDirection::Up) => Trend::Up,
        Some(ShiftDirection::Down) => Trend::Down,
    }
}
