//! Published confidence intervals of models with a known level.

use crate::lab::simulated_noise::{NoiseGenerator, NoiseKind};
use scoregate_base::routes::{Period, SortBy};

use super::fixtures::{HOURS, leveled, rankings};

const MODELS: u32 = 20;
const LEVEL: f64 = 70.0;

/// The share of intervals that contain the level, and their mean width.
fn coverage(kind: NoiseKind, period: Period) -> (f64, f64) {
    let series = |model: u32| {
        let mut noise = NoiseGenerator::new(kind, 1.5, 0xC0DE ^ (u64::from(model) << 16));
        (0..HOURS).map(|_| noise.draw()).collect()
    };
    let noise: Vec<Vec<f64>> = (0..MODELS).map(series).collect();
    let scoring = leveled(MODELS, 0.0, |model, hour| {
        noise[model as usize][hour as usize]
    });
    let ranked = rankings(&scoring, period, SortBy::Combined);
    assert_eq!(ranked.len(), 20);
    let bounds = ranked.iter().map(|model| {
        ["confidenceLower", "confidenceUpper"].map(|field| model[field].as_f64().unwrap())
    });
    let (covering, width) = bounds.fold((0.0, 0.0), |(covering, width), [lower, upper]| {
        let covers = f64::from(u8::from((lower..=upper).contains(&LEVEL)));
        (covering + covers, width + upper - lower)
    });
    (covering / f64::from(MODELS), width / f64::from(MODELS))
}

#[test]
fn intervals_of_independent_rounds_cover_the_level() {
    let (share, width) = coverage(NoiseKind::White, Period::Day);
    assert!(share > 0.8 && width < 2.0, "{share} {width}");
}

#[test]
fn an_interval_of_a_week_is_not_widened_by_a_weekly_cycle() {
    let (share, width) = coverage(NoiseKind::WeeklyCycle(2.0), Period::Week);
    let (_, white) = coverage(NoiseKind::White, Period::Week);
    assert!(
        share > 0.8 && width < 1.3 * white,
        "{share} {width} {white}"
    );
}
