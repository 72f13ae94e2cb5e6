//! Models with significant losses, corrected for the number of tested models.
//!
//! Alerts and degradations share one test: it compares the newest level with a previous one, is one-sided, and is
//! Holm-corrected for the number of models. The callers choose how old the change may be.

use super::{
    figures::{chance, points},
    levels::LevelComparison,
    model_state::ModelState,
    statistics::{chance_of_fall, holm},
};

/// A significant loss that is large enough to matter.
#[derive(Clone, Copy, Debug)]
pub struct SureLoss<'a> {
    /// The model.
    pub model_state: &'a ModelState,
    /// The levels that were compared.
    pub levels: LevelComparison,
    /// The lost points, as published.
    pub points: f64,
    /// The corrected p-value, as published.
    pub chance: f64,
}

/// Model losses, largest first. Equal losses are ordered by model id. Models whose level has not changed count
/// as tested too.
pub fn find(
    models: &[ModelState],
    levels: impl Fn(&ModelState) -> Option<LevelComparison>,
    alpha: f64,
    minimum: f64,
) -> Vec<SureLoss<'_>> {
    let chances: Vec<f64> = models
        .iter()
        .map(|model| levels(model).map_or(1.0, |levels| chance_of_fall(levels.before, levels.now)))
        .collect();
    let loss = |(model_state, corrected)| {
        let levels = levels(model_state)?;
        // Compares the published (rounded) value, so that no alert is published with a value above its limit.
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
