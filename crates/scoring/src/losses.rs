//! Models with significant losses, corrected for testing all models.
//!
//! One test for alerts and degradations: Welch's t-test, one-sided, Holm-corrected for the number of models. The
//! callers choose what is compared.

use super::figures::{chance, points};
use super::model_state::ModelState;
use super::statistics::{Estimate, chance_of_fall, holm};

/// Two estimates of one model.
#[derive(Clone, Copy, Debug)]
pub(super) struct EstimatePair<'a> {
    /// The model.
    pub model_state: &'a ModelState,
    /// The estimate before.
    pub before: Estimate,
    /// The estimate now.
    pub now: Estimate,
}

/// A significant loss of relevant size.
#[derive(Clone, Copy, Debug)]
pub(super) struct SureLoss<'a> {
    /// The compared estimates.
    pub pair: EstimatePair<'a>,
    /// The points lost, as published.
    pub points: f64,
    /// The corrected p-value, as published.
    pub chance: f64,
}

/// The losses among pairs, largest first, ties by id.
pub(super) fn find<'a>(pairs: &[EstimatePair<'a>], alpha: f64, minimum: f64) -> Vec<SureLoss<'a>> {
    let chances: Vec<f64> = pairs.iter().map(|pair| chance_of_fall(pair.before, pair.now)).collect();
    let loss = |(pair, corrected): (&EstimatePair<'a>, f64)| {
        // Decided by the published value, so that no alert is published above its own limit.
        let chance = chance(corrected);
        let lost = points(points(pair.before.mean) - points(pair.now.mean));
        (chance < alpha && lost >= minimum).then_some(SureLoss { pair: *pair, points: lost, chance })
    };
    let mut losses: Vec<SureLoss<'a>> = pairs.iter().zip(holm(&chances)).filter_map(loss).collect();
    losses.sort_by(|a, b| {
        b.points.total_cmp(&a.points).then_with(|| a.pair.model_state.id().cmp(b.pair.model_state.id()))
    });
    losses
}
