//! Ranks of models with known levels and shared noise.

use std::sync::Arc;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{ModelId, Period, SortBy};

use super::super::lab::simulated_noise::{NoiseGenerator, NoiseKind};
use super::super::*;
use super::fixtures::{HOUR, rankings};

const MODELS: u32 = 12;
const HOURS: u32 = 35 * 24;

/// The ranking over a day of models that are 0.4 points apart, with noise that all share, and noise of their own.
fn ranked(shared: f64, own: f64) -> Vec<serde_json::Value> {
    let first = Wall::from_seconds(1_000_080_000);
    let noise =
        |deviation, seed: u32| NoiseGenerator::new(NoiseKind::White, deviation, u64::from(seed) << 32);
    let mut shared = noise(shared, MODELS);
    let shared: Vec<f64> = (0..HOURS).map(|_| shared.draw()).collect();
    let mut runs = Vec::new();
    for index in 0..MODELS {
        let mut own = noise(own, index);
        let id = ModelId::new(&format!("m{index:02}")).unwrap();
        let model = Arc::new(TestedModel::new(id, "M", "p", None, None).unwrap());
        for (hour, shared) in (0..HOURS).zip(&shared) {
            let mark = (70.0 - 0.4 * f64::from(index) + shared + own.draw()) / 100.0;
            for suite in Suite::DEFAULT {
                let outcome = RunOutcome::Scored(vec![Trial::new([mark; 7], 1_000.0, 0.01).unwrap()]);
                runs.push(Run::new(Arc::clone(&model), suite, first.plus(HOUR * hour), outcome).unwrap());
            }
        }
    }
    let scoring = Scoring::open(RunSource::Runs(runs.into()), first.plus(HOUR * HOURS)).unwrap();
    rankings(&scoring, Period::Day, SortBy::Combined)
}

#[test]
fn true_ranks_are_within_their_bounds_and_shared_noise_cancels() {
    let total = |shared: f64| -> u64 {
        let ranked = ranked(shared, 0.5);
        assert_eq!(ranked.len(), 12);
        let bounds = ranked.iter().map(|model| {
            let [lower, upper] = ["rankLower", "rankUpper"].map(|field| model[field].as_u64().unwrap());
            let true_rank = model["id"].as_str().unwrap().trim_start_matches('m').parse::<u64>().unwrap() + 1;
            assert!((lower..=upper).contains(&true_rank), "{model}");
            upper - lower + 1
        });
        bounds.sum()
    };
    let (noisy, quiet) = (total(3.0), total(0.0));
    assert!(noisy < quiet * 5 / 4 && quiet < 12 * 5, "{noisy} {quiet}");
}
