//! `/incidents`: incidents of a period, newest first; for `latest`, the ongoing ones. They are found in
//! `scoring/incidents`.

use std::cmp::Reverse;

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::figures::{Severity, points};
use super::super::hour::hours_of;
use super::super::incident_scan::incident::{Incident as Found, IncidentKind};
use super::super::model_state::ModelState;
use super::super::snapshot::Snapshot;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IncidentItem<'a> {
    id: String,
    model_id: &'a str,
    model_name: &'a str,
    provider: &'a str,
    kind: &'static str,
    severity: Severity,
    #[serde(serialize_with = "super::instant")]
    opened_at: Wall,
    #[serde(serialize_with = "super::maybe_instant", skip_serializing_if = "Option::is_none")]
    resolved_at: Option<Wall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method_version: Option<&'a str>,
    message: String,
}

/// All incidents that overlap the period, newest first.
pub(super) fn items(snapshot: &Snapshot, period: Period) -> Vec<IncidentItem<'_>> {
    let range = snapshot.hour.last(hours_of(period));
    let counts = |found: &&Found| match period {
        Period::Latest => found.resolved.is_none(),
        Period::Day | Period::Week | Period::Month => found.overlaps(range),
    };
    let of_model = |model_state| {
        let model_state: &ModelState = model_state;
        model_state.incidents.iter().filter(counts).map(move |found| item(model_state, found))
    };
    let mut items: Vec<IncidentItem<'_>> = snapshot.model_states.iter().flat_map(of_model).collect();
    items.sort_by(|a, b| (Reverse(a.opened_at), &a.id).cmp(&(Reverse(b.opened_at), &b.id)));
    items
}

fn item<'a>(model_state: &'a ModelState, found: &'a Found) -> IncidentItem<'a> {
    IncidentItem {
        id: found.id(model_state.id()),
        model_id: model_state.id(),
        model_name: model_state.model.name(),
        provider: model_state.model.provider(),
        kind: found.kind.word(),
        severity: found.severity,
        opened_at: found.opened,
        resolved_at: found.resolved,
        lowest_score: found.lowest.map(points),
        baseline_score: found.baseline.map(points),
        method_version: found.method.as_deref(),
        message: message(model_state.model.name(), found),
    }
}

fn message(name: &str, found: &Found) -> String {
    let end = if found.resolved.is_some() { "Resolved." } else { "Ongoing." };
    match (found.kind, found.lowest, found.baseline) {
        (IncidentKind::Degradation, Some(lowest), Some(baseline)) => {
            format!("{name} fell from {baseline:.1} to a low of {lowest:.1}. {end}")
        }
        (IncidentKind::Degradation, _, _) => format!("{name} scored below its baseline. {end}"),
        (IncidentKind::Outage, _, _) => format!("Every run against {name} failed. {end}"),
    }
}
