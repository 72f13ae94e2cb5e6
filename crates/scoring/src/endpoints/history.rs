//! `/models/:id/history`: the score of one model over time.

use scoregate_base::routes::Period;

use super::Item;
use crate::{
    figures::Score,
    hour::of_period,
    model_state::{ModelState, ScorePoint},
};

/// The points of a period, oldest first. A range without a score becomes a point without a score, so that gaps are
/// visible.
pub fn items(model_state: &ModelState, period: Period) -> Vec<Item> {
    of_period(period, &model_state.history)
        .iter()
        .map(item)
        .collect()
}

fn item(point: &ScorePoint) -> Item {
    Item::default()
        .with("timestamp", point.start)
        .score("score", point.score.as_ref().map(Score::of))
        .with("runs", point.runs)
}
