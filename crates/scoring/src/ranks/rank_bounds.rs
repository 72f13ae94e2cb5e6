//! How sure the ranks of models are, determined once for a whole snapshot from the differences between their scores.

use std::cell::Cell;

use scoregate_base::routes::Period;

use super::differences::{ComparedScore, NoiseOfPair};
use super::parallel;
use crate::hour::of_period;
use crate::measure::Measure;
use crate::method;
use crate::model_state::{ModelState, RankBounds};
use crate::student::TailQuantiles;

/// Models whose deviations stay in the cache while those of all others pass.
const TILE: usize = 16;

/// A score in a ranking, and the numbers of scores that are surely above and below it.
struct RankedScore<'a> {
    published: f64,
    score: ComparedScore<'a>,
    above: Cell<usize>,
    below: Cell<usize>,
}

/// The scores of a model over each period.
type RankedModel<'a> = [Option<RankedScore<'a>>; 4];

/// Determines the ranks that every model may have.
pub(crate) fn determine(model_states: &mut [ModelState]) {
    let ranks = parallel::map(&Measure::ALL, |measure| rank_bounds(model_states, *measure));
    for (index, model_state) in model_states.iter_mut().enumerate() {
        for (of_measure, ranks) in model_state.ranks.iter_mut().zip(&ranks) {
            *of_measure = ranks.get(index).copied().unwrap_or_default();
        }
    }
}

/// The bounds of each model over each period; `None` if the uncertainty of the score is unknown. All comparisons of a model
/// have a share of the error of its bounds.
fn rank_bounds(models: &[ModelState], measure: Measure) -> Vec<[Option<RankBounds>; 4]> {
    let is_listed = |model: &&ModelState, period| model.over(period).published(measure).is_some();
    let listed = Period::ALL.map(|period| {
        models
            .iter()
            .filter(|model| is_listed(model, period))
            .count()
    });
    let shared = listed.map(|listed| {
        let comparisons = u32::try_from(listed)
            .unwrap_or(u32::MAX)
            .saturating_sub(1)
            .max(1);
        TailQuantiles::of(method::INTERVAL_TAIL / f64::from(comparisons))
    });
    let ranked: Vec<RankedModel<'_>> = models
        .iter()
        .map(|model| Period::ALL.map(|period| RankedScore::of(model, period, measure)))
        .collect();
    compare(&ranked, &shared);
    let bounds = |scores: &RankedModel<'_>| {
        Period::ALL.map(|period| {
            let score = of_period(period, scores).as_ref()?;
            let upper = of_period(period, &listed) - score.below.get();
            Some(RankBounds {
                lower: score.above.get() + 1,
                upper,
            })
        })
    };
    ranked.iter().map(bounds).collect()
}

/// Compares each model with all before it, over each period with its quantiles.
fn compare(ranked: &[RankedModel<'_>], quantiles: &[TailQuantiles; 4]) {
    for (start, tile) in (0..).step_by(TILE).zip(ranked.chunks(TILE)) {
        for (at, other) in ranked.iter().enumerate().skip(start) {
            for one in tile.iter().take(at - start) {
                let noise = NoiseOfPair::default();
                for ((one, other), quantiles) in one.iter().zip(other).zip(quantiles) {
                    if let Some((one, other)) = one.as_ref().zip(other.as_ref()) {
                        one.compare(other, quantiles, &noise);
                    }
                }
            }
        }
    }
}

impl<'a> RankedScore<'a> {
    fn of(model: &'a ModelState, period: Period, measure: Measure) -> Option<Self> {
        let score = ComparedScore::of(model, period, measure)?;
        let published = model.over(period).published(measure)?.score;
        Some(Self {
            published,
            score,
            above: Cell::new(0),
            below: Cell::new(0),
        })
    }

    /// Counts the other score, which is that of a later model, if it is surely another rank.
    fn compare(&self, other: &Self, quantiles: &TailQuantiles, noise: &NoiseOfPair<'a>) {
        let (better, worse) = if self.published >= other.published {
            (self, other)
        } else {
            (other, self)
        };
        if better.score.is_far_above(&worse.score, quantiles, noise) {
            better.below.update(|below| below + 1);
            worse.above.update(|above| above + 1);
        }
    }
}
