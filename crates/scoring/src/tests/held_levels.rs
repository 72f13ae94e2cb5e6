//! A fall is compared both with the level that a model has held for a long time and with the newest level. A return to
//! a held level opens no incident, and resolves an open one.

use std::sync::Arc;

use scoregate_base::routes::Period;

use super::incident_scan::{at, of, run, scan, series};
use crate::{
    drift,
    hour::{Hour, HourRange, hours_of},
    incident_scan::incident::{Incident, IncidentHistory},
    lab::simulated_noise::{NoiseGenerator, NoiseKind},
    levels::{ScoreLevels, ShiftDirection},
    series::ScoreSeries,
    suite::Suite,
};

/// Hours at the usual level before the first change.
const BEFORE: usize = 20 * 24;

/// Hourly rounds at 70 points for weeks, then at these levels for this many hours each.
fn after_weeks(parts: &[(usize, f64)], seed: u64) -> Vec<Option<f64>> {
    let weeks = [(BEFORE, 70.0)];
    noisy(&[&weeks, parts].concat(), seed)
}

fn noisy(parts: &[(usize, f64)], seed: u64) -> Vec<Option<f64>> {
    let mut noise = NoiseGenerator::new(NoiseKind::White, 1.5, seed);
    let parts: Vec<_> = parts
        .iter()
        .map(|(hours, level)| (*hours, Some(*level)))
        .collect();
    let scores = of(&parts).into_iter();
    scores
        .map(|score| score.map(|score| score + noise.draw()))
        .collect()
}

/// The incidents, the direction of the change in force, and the points lost in a week, after these rounds.
fn at_end(scores: &[Option<f64>]) -> (Vec<Incident>, Option<ShiftDirection>, f64) {
    let (series, window) = series(scores, 1);
    at_end_of(&series, window)
}

fn at_end_of(
    series: &ScoreSeries,
    window: HourRange,
) -> (Vec<Incident>, Option<ShiftDirection>, f64) {
    let rounds = series.rounds(window);
    let levels = ScoreLevels::of(rounds, series.round_length());
    let signal = drift::watch(&levels, rounds, series.round_length()).signal;
    let lost = levels
        .since(window.to.minus(hours_of(Period::Week)))
        .map_or(0.0, |levels| levels.before.mean - levels.now.mean);
    let incidents = scan(series, window, &IncidentHistory::default()).published;
    (incidents, signal.map(|signal| signal.direction), lost)
}

/// Asserts that nothing is reported after these rounds.
fn assert_quiet(scores: &[Option<f64>], of: &str) {
    let (series, window) = series(scores, 1);
    assert_quiet_series(&series, window, of);
}

fn assert_quiet_series(series: &ScoreSeries, window: HourRange, of: &str) {
    let (incidents, direction, lost) = at_end_of(series, window);
    assert!(incidents.is_empty(), "{of}: {incidents:?}");
    assert_eq!(direction, None, "{of}");
    assert!(lost < 2.0, "{of}: {lost}");
}

#[test]
fn the_end_of_a_rise_opens_nothing() {
    for seed in 0..32 {
        for hours in [12, 24, 72] {
            let scores = after_weeks(&[(hours, 76.0), (24, 70.0)], seed);
            assert_quiet(&scores, &format!("{hours} {seed}"));
        }
    }
}

#[test]
fn steps_up_and_down_again_open_nothing() {
    for seed in 0..16 {
        let steps = [(30, 76.0), (30, 82.0), (30, 76.0), (24, 70.0)];
        assert_quiet(&after_weeks(&steps, seed), &seed.to_string());
    }
}

#[test]
fn a_fall_below_the_held_level_counts_from_there() {
    for seed in 0..16 {
        let scores = after_weeks(&[(24, 76.0), (24, 62.0)], seed);
        let (incidents, direction, lost) = at_end(&scores);
        let [incident] = incidents.as_slice() else {
            panic!("{seed}: {incidents:?}")
        };
        assert!((incident.baseline.unwrap() - 70.0).abs() < 0.5, "{seed}");
        assert_eq!(direction, Some(ShiftDirection::Down), "{seed}");
        assert!((lost - 8.0).abs() < 2.0, "{seed}: {lost}");
    }
}

#[test]
fn the_end_of_a_dip_ends_its_incident_and_is_no_rise() {
    for seed in 0..16 {
        let scores = after_weeks(&[(24, 62.0), (24, 70.0)], seed);
        let (incidents, direction, lost) = at_end(&scores);
        assert!(
            matches!(incidents.as_slice(), [Incident { resolved: Some(end), .. }] if *end <= at(BEFORE as u64 + 30)),
            "{seed}: {incidents:?}"
        );
        assert_eq!(direction, None, "{seed}");
        assert!(lost < 2.0, "{seed}: {lost}");
    }
}

#[test]
fn a_change_stays_in_force_for_three_days_whatever_the_length_of_a_round_is() {
    for length in [1, 6, 24] {
        for level in [62.0, 76.0] {
            let before = BEFORE / 12 * usize::try_from(24 / length).unwrap();
            let scores = noisy(&[(before, 70.0), (100, level)], 1);
            let (series, window) = series(&scores, length);
            let is_in_force = |to: &Hour| {
                let rounds = series.rounds(HourRange { to: *to, ..window });
                let levels = ScoreLevels::of(rounds, series.round_length());
                drift::watch(&levels, rounds, series.round_length())
                    .signal
                    .is_some()
            };
            let hours = window.hours().filter(is_in_force).count();
            assert_eq!(hours, 72, "{length} {level}");
        }
    }
}

#[test]
fn a_new_model_that_settles_opens_nothing() {
    for seed in 0..16 {
        for hours in [30, 72] {
            let scores = noisy(&[(hours, 76.0), (60, 70.0)], seed);
            assert_quiet(&scores, &format!("{hours} {seed}"));
            let scores = noisy(&[(hours, 64.0), (60, 70.0)], seed);
            let (incidents, ..) = at_end(&scores);
            assert!(incidents.is_empty(), "{hours} {seed}: {incidents:?}");
        }
    }
}

#[test]
fn a_rise_that_is_held_for_days_is_the_level_that_falls_are_judged_by() {
    for seed in 0..16 {
        let scores = after_weeks(&[(120, 76.0), (24, 68.0)], seed);
        let (incidents, ..) = at_end(&scores);
        let [incident] = incidents.as_slice() else {
            panic!("{seed}: {incidents:?}")
        };
        assert!((incident.baseline.unwrap() - 76.0).abs() < 0.5, "{seed}");
    }
}

#[test]
fn a_suite_that_leaves_and_joins_again_opens_nothing() {
    for seed in 0..4 {
        for (gone, back) in [(48, 0), (120, 0), (48, 48), (120, 120)] {
            let scores = after_weeks(&[(gone + back, 70.0)], seed);
            let (_, window) = series(&scores, 1);
            let mut mixed = ScoreSeries::new(Arc::default(), window);
            for (place, (hour, score)) in window.hours().zip(&scores).enumerate() {
                let is_gone = (BEFORE..BEFORE + gone).contains(&place);
                for suite in Suite::DEFAULT {
                    // This suite is harder than the others.
                    let harder = if suite == Suite::TOOLING { 30.0 } else { 0.0 };
                    if !is_gone || suite != Suite::TOOLING {
                        mixed.add(&run(suite, hour, score.map(|score| score - harder)));
                    }
                }
            }
            assert_quiet_series(&mixed, window, &format!("{gone} {back} {seed}"));
        }
    }
}
