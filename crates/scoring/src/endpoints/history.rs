//! `/models/:id/history`: the score of one model over time.

use serde::Serialize;

use scoregate_base::clock::Wall;
use scoregate_base::routes::Period;

use super::super::figures::Score;
use super::super::hour::of_period;
use super::super::model_state::ModelState;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistoryPoint {
    #[serde(serialize_with = "super::instant")]
    timestamp: Wall,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_lower: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence_upper: Option<f64>,
    runs: u32,
}

/// The points of a period, oldest first. A range without a score is a point without one, so that gaps are visible.
pub(super) fn items(model_state: &ModelState, period: Period) -> Vec<HistoryPoint> {
    of_period(period, &model_state.history)
        .iter()
        .map(|point| HistoryPoint {
            timestamp: point.start,
            score: point.score.map(|score| score.score),
            confidence_lower: point.score.as_ref().and_then(Score::lower),
            confidence_upper: point.score.as_ref().and_then(Score::upper),
            runs: point.runs,
        })
        .collect()
}
