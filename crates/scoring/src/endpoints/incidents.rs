//! `/incidents`: incidents of a period, newest first; for `latest`, the ongoing ones. They are found in
//! `scoring/incidents`.

use std::cmp::Reverse;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::Item;
use crate::figures::points;
use crate::hour::hours_of;
use crate::incident_scan::incident::{Incident as Found, IncidentKind};
use crate::model_state::ModelState;
use crate::snapshot::Snapshot;

/// All incidents that overlap the period, newest first.
pub(super) fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    let range = snapshot.hour.last(hours_of(period));
    let counts = |found: &&Found| match period {
        Period::Latest => found.resolved.is_none(),
        Period::Day | Period::Week | Period::Month => found.overlaps(range),
    };
    let of_model = |model_state| {
        let model_state: &ModelState = model_state;
        let counted = model_state.incidents.iter().filter(counts);
        counted.map(move |found| {
            (
                Reverse(found.opened),
                found.id(model_state.id()),
                model_state,
                found,
            )
        })
    };
    let mut all: Vec<_> = snapshot.model_states.iter().flat_map(of_model).collect();
    all.sort_by(|(opened, id, ..), (other_opened, other_id, ..)| {
        (opened, id).cmp(&(other_opened, other_id))
    });
    all.into_iter()
        .map(|(_, id, model_state, found)| item(id, model_state, found))
        .collect()
}

fn item(id: String, model_state: &ModelState, found: &Found) -> Item {
    Item::default()
        .with("id", id)
        .model(model_state)
        .with("kind", found.kind.word())
        .with("severity", found.severity)
        .with("openedAt", found.opened.rfc3339())
        .maybe("resolvedAt", found.resolved.map(Wall::rfc3339))
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
