//! `/incidents`: incidents of a period, newest first. For `latest`, only ongoing incidents. `incident_scan` finds them.

use std::cmp::Reverse;

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    figures::points,
    hour::hours_of,
    incident_scan::incident::{Incident as Found, IncidentKind},
    model_state::ModelState,
    snapshot::Snapshot,
};

/// All incidents that overlap the period, newest first.
pub fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    let range = snapshot.hour.last(hours_of(period));
    let mut all = Vec::new();
    for model_state in &snapshot.model_states {
        for found in model_state.incidents.iter().filter(|found| match period {
            Period::Latest => found.resolved.is_none(),
            Period::Day | Period::Week | Period::Month => found.overlaps(range),
        }) {
            let id = found.id(model_state.id());
            let item = item(&id, model_state, found);
            all.push((Reverse(found.opened), id, item));
        }
    }
    all.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    all.into_iter().map(|(.., item)| item).collect()
}

fn item(id: &str, model_state: &ModelState, found: &Found) -> Item {
    Item::default()
        .with("id", id)
        .model(model_state)
        .with("kind", found.kind)
        .with("severity", found.severity)
        .with("openedAt", found.opened)
        .maybe("resolvedAt", found.resolved)
        .maybe("lowestScore", found.lowest.map(points))
        .maybe("baselineScore", found.baseline.map(points))
        .with("methodVersion", found.method.as_str())
        .with("message", message(model_state.model.name(), found))
}

fn message(name: &str, found: &Found) -> String {
    let end = if found.resolved.is_some() {
        "Resolved."
    } else {
        "Ongoing."
    };
    match (found.kind, found.lowest, found.baseline) {
        (IncidentKind::Degradation, Some(lowest), Some(baseline)) => {
            format!("{name} fell from {baseline:.1} to a low of {lowest:.1}. {end}")
        }
        (IncidentKind::Degradation, _, _) => format!("{name} scored below its baseline. {end}"),
        (IncidentKind::Outage, _, _) => format!("Every run against {name} failed. {end}"),
    }
}
