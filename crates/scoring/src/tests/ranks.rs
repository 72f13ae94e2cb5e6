//! Ranks of models with known levels and shared noise.

use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};
use serde_json::Value;

use super::fixtures::{HOURS, asked, leveled, leveled_runs, rankings};
use crate::hour::of_period;
use crate::lab::simulated_noise::{NoiseGenerator, NoiseKind};
use crate::measure::Measure;
use crate::method;
use crate::model_state::RankBounds;
use crate::ranks::differences::is_above;
use crate::student::TailQuantiles;

const MODELS: u32 = 12;

/// Independent noise with a standard deviation of one.
fn white(seed: u32) -> Vec<f64> {
    let mut noise = NoiseGenerator::new(NoiseKind::White, 1.0, u64::from(seed) << 32);
    (0..HOURS).map(|_| noise.draw()).collect()
}

fn bounds(model: &Value) -> [u64; 2] {
    ["rankLower", "rankUpper"].map(|field| model[field].as_u64().unwrap())
}

#[test]
fn true_ranks_are_within_their_bounds_and_shared_noise_cancels() {
    let noise: Vec<Vec<f64>> = (0..=MODELS).map(white).collect();
    let total = |shared: f64| -> u64 {
        let scoring = leveled(MODELS, 0.4, |model, hour| {
            let [shared_noise, own] =
                [MODELS, model].map(|series| noise[series as usize][hour as usize]);
            shared * shared_noise + 0.5 * own
        });
        let ranked = rankings(&scoring, Period::Day, SortBy::Combined);
        assert_eq!(ranked.len(), 12);
        let ranks = ranked.iter().map(|model| {
            let [lower, upper] = bounds(model);
            let true_rank = model["id"]
                .as_str()
                .unwrap()
                .trim_start_matches('m')
                .parse::<u64>()
                .unwrap()
                + 1;
            assert!((lower..=upper).contains(&true_rank), "{model}");
            upper - lower + 1
        });
        ranks.sum()
    };
    let shared = total(3.0);
    let calm = total(0.0);
    assert!(shared < calm * 5 / 4 && calm < 12 * 5, "{shared} {calm}");
}

#[test]
fn opposed_noise_separates_no_ranks_of_tied_models() {
    // The sum of both variances would separate the models at some of these distances, the variance of their difference would not.
    let noise = white(3);
    let mut tied = 0;
    for step in 1..=20 {
        let sign = |model: u32| if model == 0 { 1.0 } else { -1.0 };
        let scoring = leveled(2, 0.2 * f64::from(step), |model, hour| {
            2.0 * sign(model) * noise[hour as usize]
        });
        let ranked = rankings(&scoring, Period::Day, SortBy::Combined);
        let is_tied = ranked[0]["tiedWithNext"] == true;
        tied += u32::from(is_tied);
        assert_eq!(
            bounds(&ranked[0]),
            if is_tied { [1, 2] } else { [1, 1] },
            "{ranked:?}"
        );
    }
    assert!((1..20).contains(&tied), "{tied}");
}

#[test]
fn noise_that_is_slow_widens_the_bounds_of_a_difference() {
    let noise: Vec<Vec<f64>> = (0..4).map(white).collect();
    let of_days = |model: u32, hour: u32| {
        let [days, hours] = [model, model + 2].map(|series| &noise[series as usize]);
        days[hour as usize / 24] + hours[hour as usize]
    };
    let scoring = leveled(2, 0.0, of_days);
    let detail = &asked(
        &scoring,
        &DocumentKey::of_model(Route::Model, ModelId::new("m00").unwrap()),
    )[0];
    let [lower, upper] = ["differenceLower", "differenceUpper"]
        .map(|field| detail["comparisons"][0][field].as_f64().unwrap());
    // Two means of a day with a variance of 1 + 1 / 24 each: an interval of 5.7 points.
    assert!((4.5..8.0).contains(&(upper - lower)), "{detail}");
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
        let (source, end) = leveled_runs(COMPARED, distance, |model, hour| {
            let [together, alone] =
                [COMPARED, model].map(|series| noise[series as usize][hour as usize]);
            shared * together + own * f64::from(1 + model % 3) * alone
        });
        let models = source.snapshot(end).unwrap().model_states;
        for period in Period::ALL {
            for model in &models {
                let of = (period, Measure::Combined);
                let above = models
                    .iter()
                    .filter(|other| is_above(other, model, of, &quantiles))
                    .count();
                let below = models
                    .iter()
                    .filter(|other| is_above(model, other, of, &quantiles))
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
