//! Models with significant losses, corrected for testing all models.
//!
//! One test for alerts and degradations: the newest level against one before, one-sided, Holm-corrected for the number of
//! models. The callers choose how old the change may be.

use super::figures::{chance, points};
use super::levels::LevelComparison;
use super::model_state::ModelState;
use super::statistics::{chance_of_fall, holm};

/// A significant loss of relevant size.
#[derive(Clone, Copy, Debug)]
pub(super) struct SureLoss<'a> {
    /// The model.
    pub model_state: &'a ModelState,
    /// The compared levels.
    pub levels: LevelComparison,
    /// The points lost, as published.
    pub points: f64,
    /// The corrected p-value, as published.
    pub chance: f64,
}

/// The losses of models, largest first, ties by id. A model whose level has not changed was looked at, too.
pub(super) fn find(
    models: &[ModelState],
    levels: impl Fn(&ModelState) -> Option<LevelComparison>,
    alpha: f64,
    minimum: f64,
) -> Vec<SureLoss<'_>> {
    let uncorrected =
        |model| levels(model).map_or(1.0, |levels| chance_of_fall(levels.before, levels.now));
    let chances: Vec<f64> = models.iter().map(uncorrected).collect();
    let loss = |(model_state, corrected)| {
        let levels = levels(model_state)?;
        // Decided by the published value, so that no alert is published above its own limit.
        let chance = chance(corrected);
        let lost = points(points(levels.before.mean) - points(levels.now.mean));
        (chance < alpha && lost >= minimum).then_some(SureLoss {
            model_state,
            levels,
            points: lost,
            chance,
        })
    };
    let mut losses: Vec<SureLoss<'_>> =
        models.iter().zip(holm(&chances)).filter_map(loss).collect();
    losses.sort_by(|a, b| {
        b.points
            .total_cmp(&a.points)
            .then_with(|| a.model_state.id().cmp(b.model_state.id()))
    });
    losses
}
