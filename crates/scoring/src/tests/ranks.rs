//! Ranks of models with known levels and partly shared noise.

use scoregate_base::routes::{Period, SortBy};
use serde_json::Value;

use super::fixtures::{HOURS, leveled_runs, rankings};
use crate::{
    hour::Hour,
    lab::simulated_noise::{NoiseGenerator, NoiseKind},
    statistics::SampleSums,
    student, *,
};

const MODELS: u32 = 12;
/// Points between neighbouring models.
const DISTANCE: f64 = 0.5;
const SHARED: f64 = 3.0;

/// Independent noise with a standard deviation of one: first the noise of each model, then the shared noise.
fn drawn(seed: u32) -> Vec<Vec<f64>> {
    let white = |series: u32| {
        let seed = u64::from(seed * 64 + series) << 32;
        let mut noise = NoiseGenerator::new(NoiseKind::White, 1.0, seed);
        (0..HOURS).map(|_| noise.draw()).collect()
    };
    (0..=MODELS).map(white).collect()
}

/// Whether a model has no run in an hour, which is the case in a fifth of the hours.
fn is_missing(model: u32, hour: u32) -> bool {
    let mixed = (model * 7_919 + hour + 1).wrapping_mul(2_654_435_761) >> 16;
    mixed.is_multiple_of(5)
}

fn number_of(id: &str) -> u32 {
    id.trim_start_matches('m').parse().unwrap()
}

/// The ranking over a day for models with these deviations, in points.
fn ranked(noise: &[Vec<f64>], distance: f64, deviation: impl Fn(u32) -> f64) -> Vec<Value> {
    let (mut runs, end) = leveled_runs(MODELS, distance, |model, hour| {
        let [together, own] = [MODELS, model].map(|of| noise[of as usize][hour as usize]);
        SHARED * together + deviation(model) * own
    });
    let first = Hour::of(end).number() - u64::from(HOURS);
    runs.retain(|run| {
        let model = number_of(run.model().id().as_str());
        let hour = u32::try_from(Hour::of(run.at()).number() - first).unwrap();
        !is_missing(model, hour)
    });
    let scoring = Scoring::open(RunSource::Runs(runs.into()), end).unwrap();
    rankings(&scoring, Period::Day, SortBy::Combined)
}

/// Whether a paired t test on the common rounds of the last day separates two models.
fn differ(noise: &[Vec<f64>], distance: f64, [one, other]: [u32; 2]) -> bool {
    let shared = (HOURS - 24..HOURS)
        .filter(|hour| ![one, other].iter().any(|model| is_missing(*model, *hour)));
    let of =
        |model: u32, hour: u32| noise[model as usize][hour as usize] - distance * f64::from(model);
    let differences: SampleSums = shared.map(|hour| of(one, hour) - of(other, hour)).collect();
    let mean = differences.mean().unwrap();
    let n = f64::from(differences.count);
    mean.abs() > student::quantile(0.025, n - 1.0) * (differences.variance().unwrap() / n).sqrt()
}

#[test]
fn with_missing_rounds_as_many_neighbours_are_separated_as_by_a_paired_t_test() {
    let mut apart = [0; 2];
    for seed in 1..=4 {
        let noise = drawn(seed);
        let models = ranked(&noise, DISTANCE, |_| 1.0);
        for pair in models.windows(2) {
            let ids = [&pair[0], &pair[1]].map(|model| number_of(model["id"].as_str().unwrap()));
            apart[0] += u32::from(pair[0]["tiedWithNext"] == false);
            apart[1] += u32::from(differ(&noise, DISTANCE, ids));
        }
    }
    let [found, by_t_test] = apart;
    assert!(
        by_t_test > 10 && f64::from(found) >= 0.85 * f64::from(by_t_test),
        "{apart:?}"
    );
}

#[test]
fn bounds_of_all_models_hold_together_and_do_not_go_backwards() {
    for seed in 1..=4 {
        let noise = drawn(100 + seed);
        // Equal models can have any rank.
        for model in ranked(&noise, 0.0, |_| 1.0) {
            assert_eq!(
                (&model["rankLower"], &model["rankUpper"]),
                (&1.into(), &MODELS.into()),
                "{model}"
            );
        }
        let models = ranked(&noise, 1.0, |model| 0.3 + f64::from(model % 3));
        let [lower, upper] = ["rankLower", "rankUpper"].map(|field| {
            let ranks = models.iter().map(|model| model[field].as_u64().unwrap());
            ranks.collect::<Vec<_>>()
        });
        assert!(
            lower.is_sorted() && upper.is_sorted(),
            "{lower:?} {upper:?}"
        );
        assert!(lower[11] > 1 && upper[0] < 12, "{lower:?} {upper:?}");
        for (model, (lower, upper)) in models.iter().zip(lower.iter().zip(&upper)) {
            let rank = u64::from(number_of(model["id"].as_str().unwrap())) + 1;
            assert!((*lower..=*upper).contains(&rank), "{model}");
        }
    }
}
