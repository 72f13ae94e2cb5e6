//! Ranks of models with known levels and shared noise.

use scoregate_base::routes::Period;

use super::fixtures::{HOURS, leveled_runs};
use crate::hour::of_period;
use crate::lab::simulated_noise::{NoiseGenerator, NoiseKind};
use crate::measure::Measure;
use crate::method;
use crate::model_state::RankBounds;
use crate::ranks::differences::is_above;
use crate::snapshot::RunSource;
use crate::student::TailQuantiles;

/// Independent noise with a standard deviation of one.
fn white(seed: u32) -> Vec<f64> {
    let mut noise = NoiseGenerator::new(NoiseKind::White, 1.0, u64::from(seed) << 32);
    (0..HOURS).map(|_| noise.draw()).collect()
}

#[test]
fn shortcuts_find_the_ranks_of_a_comparison_of_all_pairs() {
    const COMPARED: u32 = 20;
    let noise: Vec<Vec<f64>> = (0..=COMPARED).map(white).collect();
    let quantiles = TailQuantiles::of(method::INTERVAL_TAIL / f64::from(COMPARED - 1));
    let mut undecided = 0;
    for (distance, shared, own) in [
        (0.05, 0.0, 1.0),
        (0.05, 2.0, 0.2),
        (0.3, 1.0, 1.0),
        (3.0, 0.0, 1.0),
    ] {
        let (runs, end) = leveled_runs(COMPARED, distance, |model, hour| {
            let [together, alone] =
                [COMPARED, model].map(|series| noise[series as usize][hour as usize]);
            shared * together + own * f64::from(1 + model % 3) * alone
        });
        let source = RunSource::Runs(runs.into());
        let models = source.snapshot(end).unwrap().model_states;
        for period in Period::ALL {
            for model in &models {
                let measure = Measure::Combined;
                let above = models
                    .iter()
                    .filter(|other| is_above(other, model, period, measure, &quantiles))
                    .count();
                let below = models
                    .iter()
                    .filter(|other| is_above(model, other, period, measure, &quantiles))
                    .count();
                let bounds = RankBounds {
                    lower: above + 1,
                    upper: models.len() - below,
                };
                let found = of_period(period, Measure::Combined.of(&model.ranks));
                assert_eq!(
                    *found,
                    Some(bounds),
                    "{} {period:?} {distance} {shared} {own}",
                    model.id()
                );
                undecided += usize::from(above + below + 1 < models.len());
            }
        }
    }
    assert!(undecided > 0);
}
