//! `/models`: the rankings.
//!
//! Not for: what a score is made of (`model.rs`, `transparency.rs`).

use std::cmp::Ordering;

use serde::Serialize;

use crate::clock::Wall;
use crate::routes::{Period, SortBy};

use super::super::changes::Changes;
use super::super::figures::{Score, Status, Trend};
use super::super::portrait::Portrait;
use super::super::snapshot::Snapshot;

/// One model in the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ranking<'a> {
    id: &'a str,
    name: &'a str,
    provider: &'a str,
    current_score: Option<f64>,
    trend: Trend,
    status: Status,
    confidence_lower: Option<f64>,
    confidence_upper: Option<f64>,
    #[serde(serialize_with = "super::maybe_instant")]
    last_updated: Option<Wall>,
}

/// All models, ranked. `currentScore` is the combined score, whatever the order.
pub(super) fn items<'a>(
    snapshot: &'a Snapshot,
    changes: &Changes<'_>,
    period: Period,
    sort_by: SortBy,
) -> Vec<Ranking<'a>> {
    let ranked = ranked(snapshot, period, sort_by).into_iter();
    ranked.map(|portrait| item(portrait, changes.of(portrait).trend(period), period)).collect()
}

/// All models, the best by a sort key first; then those the key says nothing of, then those without a score; ties by
/// identifier.
pub(super) fn ranked(snapshot: &Snapshot, period: Period, sort_by: SortBy) -> Vec<&Portrait> {
    let mut portraits: Vec<&Portrait> = snapshot.portraits.iter().collect();
    portraits.sort_by(|a, b| {
        let (left, right) = (a.over(period), b.over(period));
        left.score
            .is_none()
            .cmp(&right.score.is_none())
            .then_with(|| better(left.merit(sort_by), right.merit(sort_by)))
            .then_with(|| a.id().cmp(b.id()))
    });
    portraits
}

fn better(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => a.is_none().cmp(&b.is_none()),
    }
}

fn item(portrait: &Portrait, trend: Trend, period: Period) -> Ranking<'_> {
    let summary = portrait.over(period);
    Ranking {
        id: portrait.id(),
        name: portrait.model.name(),
        provider: portrait.model.provider(),
        current_score: summary.score.map(|score| score.score),
        trend,
        status: Status::of(summary.score),
        confidence_lower: summary.score.as_ref().and_then(Score::lower),
        confidence_upper: summary.score.as_ref().and_then(Score::upper),
        last_updated: summary.last_updated(),
    }
}
