//! `/drift/:id`: the drift signature of one model. The tests are in `scoring/drift` and `changes`.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::changes::ModelChange;
use super::super::drift::{DriftResult as Watched, DriftState};
use super::super::figures::{Trend, points};
use super::super::hour::Hour;
use super::super::incident_scan::incident::IncidentKind;
use super::super::levels::ShiftDirection;
use super::super::losses::SureLoss;
use super::super::method;
use super::super::model_state::ModelState;
use super::super::run::Axis;
use super::super::statistics::FittedLine;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DriftSignature<'a> {
    model_id: &'a str,
    model_name: &'a str,
    provider: &'a str,
    regime: Regime,
    page_hinkley: DriftTest,
    axes: Vec<AxisTrend>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_score: Option<f64>,
    #[serde(serialize_with = "super::instant")]
    last_updated: Wall,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Regime {
    Stable,
    Drifting,
    Degraded,
    Recovering,
    Unavailable,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DriftTest {
    #[serde(skip_serializing_if = "Option::is_none")]
    statistic: Option<f64>,
    threshold: f64,
    delta: f64,
    minimum_samples: u32,
    samples: u32,
    signalled: bool,
    state: DriftState,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<ShiftDirection>,
    #[serde(serialize_with = "super::maybe_instant", skip_serializing_if = "Option::is_none")]
    signalled_at: Option<Wall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signalled_statistic: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<f64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AxisTrend {
    axis: &'static str,
    trend: Trend,
    #[serde(skip_serializing_if = "Option::is_none")]
    slope_per_day: Option<f64>,
}

/// The signature of a model, given the alerts of all.
pub(super) fn item<'a>(
    model_state: &'a ModelState,
    change: ModelChange,
    alerts: &[SureLoss<'_>],
    hour: Hour,
) -> DriftSignature<'a> {
    let day = model_state.over(Period::Day);
    let baseline = model_state.lately.map(|levels| levels.before.mean);
    let axes = Axis::ALL.into_iter().zip(change.axes).zip(model_state.slopes);
    DriftSignature {
        model_id: model_state.id(),
        model_name: model_state.model.name(),
        provider: model_state.model.provider(),
        regime: regime(model_state, change, alerts, hour),
        page_hinkley: test(&model_state.drift, change),
        axes: axes.map(|((axis, trend), line)| axis_trend(axis, trend, line)).collect(),
        baseline_score: baseline.or(model_state.usual).map(points),
        current_score: day.score.map(|score| score.score),
        last_updated: model_state.last_updated(Period::Day),
    }
}

fn test(drift: &Watched, change: ModelChange) -> DriftTest {
    let signal = drift.signal;
    DriftTest {
        statistic: drift.statistic.map(points),
        threshold: method::DRIFT_LAMBDA,
        delta: method::DRIFT_DELTA,
        minimum_samples: drift.minimum,
        samples: drift.samples,
        signalled: signal.is_some(),
        state: drift.state,
        direction: signal.map(|signal| signal.direction),
        signalled_at: signal.map(|signal| signal.hour.start()),
        signalled_statistic: signal.map(|signal| points(signal.statistic)),
        p_value: change.drift,
        noise: drift.noise.map(points),
    }
}

fn regime(model_state: &ModelState, change: ModelChange, alerts: &[SureLoss<'_>], hour: Hour) -> Regime {
    let alerted = alerts.iter().any(|alert| alert.model_state.id() == model_state.id());
    let falls = || model_state.incidents.iter().filter(|incident| incident.kind == IncidentKind::Degradation);
    let lately = hour.last(method::RECOVERY_HOURS);
    if model_state.over(Period::Day).score.is_none() {
        Regime::Unavailable
    } else if falls().any(|fall| fall.resolved.is_none()) {
        Regime::Degraded
    } else if falls().any(|fall| fall.resolved.is_some_and(|end| lately.holds(end))) {
        // The last 24 hours may still be below the baseline: that alert is about a degradation that has just ended.
        Regime::Recovering
    } else if alerted {
        Regime::Degraded
    } else if change.has_drifted() {
        Regime::Drifting
    } else if model_state.drift.state == DriftState::Warming {
        // Too few rounds to call it stable.
        Regime::Unavailable
    } else {
        Regime::Stable
    }
}

fn axis_trend(axis: Axis, trend: Trend, line: Option<FittedLine>) -> AxisTrend {
    AxisTrend { axis: axis.word(), trend, slope_per_day: line.map(|line| points(line.slope)) }
}
