//! Which models lost, and how sure that is when all of them were looked at.
//!
//! One test for alerts and degradations: Welch's, one-sided, corrected by Holm for the number of models. Not for: what
//! is compared (the callers say) nor for when something is an incident.

use std::cmp::Ordering;

use super::figures::{chance, points};
use super::model_state::ModelState;
use super::statistics::{Estimate, chance_of_fall, holm};

/// Two estimates of one model.
#[derive(Clone, Copy, Debug)]
pub(super) struct EstimatePair<'a> {
    /// The model.
    pub portrait: &'a ModelState,
    /// What it had.
    pub before: Estimate,
    /// What it has.
    pub now: Estimate,
}

/// A loss that is sure and large enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct SureLoss<'a> {
    /// What was compared.
    pub pair: EstimatePair<'a>,
    /// The points lost, as published.
    pub points: f64,
    /// The corrected chance, as published.
    pub chance: f64,
}

/// The losses among pairs, the largest first, ties by identifier.
pub(super) fn find<'a>(pairs: &[EstimatePair<'a>], alpha: f64, minimum: f64) -> Vec<SureLoss<'a>> {
    let chances: Vec<f64> = pairs.iter().map(|pair| chance_of_fall(pair.before, pair.now)).collect();
    let loss = |(pair, corrected): (&EstimatePair<'a>, f64)| {
        // What is published decides, so that nobody finds an alert above its own limit.
        let chance = chance(corrected);
        let lost = points(points(pair.before.mean) - points(pair.now.mean));
        (chance < alpha && lost >= minimum).then_some(SureLoss { pair: *pair, points: lost, chance })
    };
    let mut losses: Vec<SureLoss<'a>> = pairs.iter().zip(holm(&chances)).filter_map(loss).collect();
    losses.sort_by(|a, b| {
        largest_first(a.points, b.points).then_with(|| a.pair.portrait.id().cmp(b.pair.portrait.id()))
    });
    losses
}

fn largest_first(a: f64, b: f64) -> Ordering {
    b.total_cmp(&a)
}
