//! `/drift/:id`: the drift signature of one model. The statistical tests are in `drift` and `changes`.

use serde::Serialize;

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    drift::DriftState, figures::points, hour::Hour, incident_scan::incident::IncidentKind,
    losses::SureLoss, method, model_state::ModelState, suite::Axis,
};

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Regime {
    Stable,
    Drifting,
    Degraded,
    Recovering,
    Unavailable,
}

/// The signature of a model, given the alerts for all models.
pub fn item(model_state: &ModelState, alerts: &[SureLoss<'_>], hour: Hour) -> Item {
    let baseline = model_state.lately.map(|levels| levels.before.mean);
    let trends = Axis::ALL
        .into_iter()
        .zip(model_state.change.axes)
        .zip(model_state.slopes);
    let axes = trends.map(|((axis, trend), line)| {
        Item::default()
            .with("axis", axis)
            .with("trend", trend)
            .maybe("slopePerDay", line.map(|line| points(line.slope)))
    });
    Item::default()
        .model(model_state)
        .with("regime", regime(model_state, alerts, hour))
        .object("pageHinkley", &test(model_state))
        .objects("axes", axes)
        .maybe("baselineScore", baseline.or(model_state.usual).map(points))
        .maybe(
            "currentScore",
            model_state
                .over(Period::Day)
                .score()
                .map(|score| score.score),
        )
        .with("lastUpdated", model_state.last_updated(Period::Day))
}

fn test(model_state: &ModelState) -> Item {
    let drift = model_state.drift;
    Item::default()
        .maybe("statistic", drift.statistic.map(points))
        .with("threshold", method::DRIFT_LAMBDA)
        .with("delta", method::DRIFT_DELTA)
        .with("minimumSamples", drift.minimum)
        .with("samples", drift.samples)
        .with("signalled", drift.signal.is_some())
        .with("state", drift.state)
        .maybe("direction", drift.signal.map(|signal| signal.direction))
        .maybe(
            "signalledAt",
            drift.signal.map(|signal| signal.hour.start()),
        )
        .maybe(
            "signalledStatistic",
            drift.signal.map(|signal| points(signal.statistic)),
        )
        .maybe("pValue", model_state.change.drift)
        .maybe("noise", drift.noise.map(points))
}

fn regime(model_state: &ModelState, alerts: &[SureLoss<'_>], hour: Hour) -> Regime {
    let alerted = alerts
        .iter()
        .any(|alert| alert.model_state.id() == model_state.id());
    let falls = || {
        model_state
            .incidents
            .iter()
            .filter(|incident| incident.kind == IncidentKind::Degradation)
    };
    let lately = hour.last(method::RECOVERY_HOURS);
    if model_state.over(Period::Day).score().is_none() {
        Regime::Unavailable
    } else if falls().any(|fall| fall.resolved.is_none()) {
        Regime::Degraded
    } else if falls().any(|fall| fall.resolved.is_some_and(|end| lately.holds(end))) {
        // The last 24 hours may still be below the baseline. Then the alert is about a degradation that has just ended.
        Regime::Recovering
    } else if alerted {
        Regime::Degraded
    } else if model_state.change.has_drifted() {
        Regime::Drifting
    } else if model_state.drift.state == DriftState::Warming {
        // There are too few rounds to call the model stable.
        Regime::Unavailable
    } else {
        Regime::Stable
    }
}
