//! How sure the ranks of models are: from the differences between their scores.

use scoregate_base::routes::Period;

use super::super::measure::Measure;
use super::super::method;
use super::super::model_state::ModelState;
use super::super::student::TailQuantiles;
use super::differences::ComparedScore;

/// The ranks that a model may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct RankBounds {
    /// The best one.
    pub lower: usize,
    /// The worst one.
    pub upper: usize,
    /// Whether the next model may be as good; absent for the last one.
    pub tied_with_next: Option<bool>,
}

/// The bounds for models in the order of their published scores; `None` if the uncertainty of the score is unknown. All
/// comparisons of a model have a share of the error of its bounds.
pub(in super::super) fn rank_bounds(
    ranked: &[&ModelState],
    period: Period,
    measure: Measure,
) -> Vec<Option<RankBounds>> {
    let listed = ranked.iter().filter(|model| model.over(period).published(measure).is_some());
    let scores: Vec<Option<ComparedScore<'_>>> =
        listed.map(|model| ComparedScore::of(model, period, measure)).collect();
    let comparisons = u32::try_from(scores.len()).unwrap_or(u32::MAX).saturating_sub(1).max(1);
    let shared = TailQuantiles::of(method::INTERVAL_TAIL / f64::from(comparisons));
    let own = TailQuantiles::of(method::INTERVAL_TAIL);
    let mut better = vec![0; scores.len()];
    let mut bounds = Vec::with_capacity(scores.len());
    for (place, score) in scores.iter().enumerate() {
        let Some(score) = score else {
            bounds.push(None);
            continue;
        };
        let below = || scores.iter().skip(place + 1);
        let mut worse = 0;
        for (other, better) in below().zip(better.iter_mut().skip(place + 1)) {
            if other.is_some_and(|other| score.is_far_above(other, &shared)) {
                worse += 1;
                *better += 1;
            }
        }
        let tied_with_next = below().next().map(|next| !next.is_some_and(|next| score.is_above(next, &own)));
        let lower = better.get(place).map_or(1, |better| better + 1);
        bounds.push(Some(RankBounds { lower, upper: scores.len() - worse, tied_with_next }));
    }
    bounds
}
