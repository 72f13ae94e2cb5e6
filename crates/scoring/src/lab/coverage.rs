//! Coverage and width of the published confidence intervals, measured on seeded runs of models with a known level.
//!
//! A sample is a snapshot of [`MODELS`] models with a month of history and a constant level. An interval covers if it
//! contains that level. The bench `coverage` prints the table.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{ModelId, Period};

use super::super::model_state::ModelState;
use super::super::run::{Run, RunOutcome, Suite, TestedModel, Trial};
use super::super::snapshot::RunSource;
use super::simulated_noise::{NoiseGenerator, SeededNormal};

pub use super::simulated_noise::NoiseKind;

/// Models in a snapshot.
pub const MODELS: u32 = 20;
/// Days of runs: a month of history, and a week.
pub const DAYS: u32 = 37;
/// Seed of these runs. The constants of the method were chosen on other seeds, so these results are not fitted.
const RUNS: u64 = 0xC0DE_2027_0317;

/// How the trials of a run are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MarkKind {
    /// Normal about the level of the run, with this standard deviation in points.
    Graded(f64),
    /// Passed or failed, with the level of the run as the probability.
    PassFail,
}

/// When the runs of a suite take place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuiteSchedule {
    /// Hours from one run to the next.
    pub every: u32,
    /// The hour of the first.
    pub first: u32,
    /// Share of runs that are missing, at random.
    pub missing: f64,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoverageCase {
    /// Its name in the table.
    pub name: &'static str,
    /// The period of the interval.
    pub period: Period,
    /// When the suites run.
    pub schedule: [SuiteSchedule; 3],
    /// Trials per run.
    pub trials: u32,
    /// Marks of the trials.
    pub marks: MarkKind,
    /// The level, in points.
    pub level: f64,
    /// Noise of the runs of each suite about it.
    pub noise: NoiseKind,
    /// Its standard deviation, in points.
    pub deviation: f64,
    /// The models that are measured, if they are not all.
    pub young: Option<YoungModels>,
}

/// Models that are younger and noisier than their peers: a quarter of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct YoungModels {
    /// Hours of their runs.
    pub hours: u32,
    /// Times the standard deviation of the others.
    pub factor: f64,
}

/// The result of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Number of scores.
    pub scores: u32,
    /// Those with an interval.
    pub intervals: u32,
    /// Intervals that contain the level.
    pub covering: u32,
    /// The mean width of the intervals, in points.
    pub mean_width: f64,
}

impl Coverage {
    /// The share of intervals that contain the level.
    pub fn share(&self) -> f64 {
        f64::from(self.covering) / f64::from(self.intervals)
    }
}

/// Measures a case on that many snapshots.
pub fn measure(case: &CoverageCase, snapshots: u32) -> Coverage {
    let mut coverage = Coverage { scores: 0, intervals: 0, covering: 0, mean_width: 0.0 };
    let mut widths = 0.0;
    for number in 0..snapshots {
        for (index, state) in (0..).zip(&states(case, number)) {
            if case.young.is_some() && !is_young(index) {
                continue;
            }
            let Some(score) = state.over(case.period).score else { continue };
            coverage.scores += 1;
            let Some((lower, upper)) = score.bounds else { continue };
            coverage.intervals += 1;
            coverage.covering += u32::from((lower..=upper).contains(&case.level));
            widths += upper - lower;
        }
    }
    coverage.mean_width = widths / f64::from(coverage.intervals);
    coverage
}

fn states(case: &CoverageCase, number: u32) -> Vec<ModelState> {
    let first = Wall::from_seconds(1_000_080_000);
    let mut runs = Vec::new();
    for index in 0..MODELS {
        let seed = RUNS ^ (u64::from(number) << 32 | u64::from(index) << 16);
        runs.extend(model_runs(case, first, index, seed));
    }
    let now = first.plus(Duration::from_hours(24) * DAYS);
    RunSource::Runs(runs.into()).snapshot(now).expect("runs in memory are readable").model_states
}

fn is_young(index: u32) -> bool {
    index.is_multiple_of(4)
}

fn model_runs(case: &CoverageCase, first: Wall, index: u32, seed: u64) -> Vec<Run> {
    let young = case.young.filter(|_| is_young(index));
    let (first_hour, factor) = young.map_or((0, 1.0), |young| (DAYS * 24 - young.hours, young.factor));
    let id = format!("m{index:02}");
    let id = ModelId::new(&id).expect("it is well-formed");
    let model = Arc::new(TestedModel::new(id, "M", "p", None, None).expect("it is valid"));
    let mut runs = Vec::new();
    for ((suite, schedule), number) in Suite::DEFAULT.into_iter().zip(case.schedule).zip(0..) {
        let mut noise =
            NoiseGenerator::new(case.noise, factor * case.deviation, seed + number * 0x5_0000_0000_0000);
        let mut random = SeededNormal::new(seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for hour in 0..DAYS * 24 {
            // Noise passes hour by hour, also between runs.
            let level = case.level + noise.draw();
            let is_missing = schedule.missing > 0.0 && random.uniform() < schedule.missing;
            if hour < first_hour || hour % schedule.every != schedule.first || is_missing {
                continue;
            }
            let trials = (0..case.trials).map(|_| trial(case.marks, level, &mut random)).collect();
            let at = first.plus(Duration::from_hours(1) * hour);
            let outcome = RunOutcome::Scored(trials);
            runs.push(Run::new(Arc::clone(&model), suite, at, outcome).expect("it has trials, and few"));
        }
    }
    runs
}

fn trial(marks: MarkKind, level: f64, random: &mut SeededNormal) -> Trial {
    let mark = match marks {
        MarkKind::Graded(deviation) => ((level + deviation * random.normal()) / 100.0).clamp(0.0, 1.0),
        MarkKind::PassFail => f64::from(u8::from(random.uniform() < level / 100.0)),
    };
    Trial::new([mark; 7], 1_000.0, 0.01).expect("marks are from 0 to 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_independent_rounds_cover_the_level() {
        let case = CoverageCase {
            name: "independent",
            period: Period::Day,
            schedule: [SuiteSchedule { every: 1, first: 0, missing: 0.0 }; 3],
            trials: 2,
            marks: MarkKind::Graded(3.0),
            level: 70.0,
            noise: NoiseKind::White,
            deviation: 1.5,
            young: None,
        };
        let coverage = measure(&case, 1);
        assert_eq!((coverage.scores, coverage.intervals), (MODELS, MODELS));
        assert!(coverage.share() > 0.8 && coverage.mean_width < 2.0, "{coverage:?}");
    }

    #[test]
    fn an_interval_of_a_week_is_not_widened_by_a_weekly_cycle() {
        let case = |noise| CoverageCase {
            name: "cycle",
            period: Period::Week,
            schedule: [SuiteSchedule { every: 1, first: 0, missing: 0.0 }; 3],
            trials: 1,
            marks: MarkKind::Graded(0.0),
            level: 70.0,
            noise,
            deviation: 1.5,
            young: None,
        };
        let (cycle, white) =
            (measure(&case(NoiseKind::WeeklyCycle(2.0)), 1), measure(&case(NoiseKind::White), 1));
        assert!(cycle.mean_width < 1.3 * white.mean_width, "{cycle:?} {white:?}");
        assert!(cycle.share() > 0.8, "{cycle:?}");
    }
}
