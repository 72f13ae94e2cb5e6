//! Coverage and width of the published 95 % intervals, as a table, on seeded runs of models with a known level.
//!
//! A snapshot has models with a month of history and a constant level. An interval covers if it contains that level.
//! `cargo bench --bench measure -- coverage` is small; `SCOREGATE_FULL=1` uses 50 snapshots of 20 models per line. The figures
//! are the same on every machine.

use std::{sync::Arc, time::Duration};

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ModelId, Period, Query, Route},
};
use scoregate_scoring::{
    METHOD_VERSION, Run, RunOutcome, RunSource, Scoring, Suite, TestedModel, Trial,
    lab::simulated_noise::{NoiseGenerator, NoiseKind, SeededNormal},
};
use serde_json::Value;

/// Models in a snapshot.
pub const MODELS: u32 = 20;
/// Days of runs: a month of history, and a week.
pub const DAYS: u32 = 37;
/// Seed of these runs. The constants of the method were chosen on other seeds, so these results are not fitted.
const RUNS: u64 = 0xC0DE_2027_0317;

/// How the trials of a run are marked.
#[derive(Clone, Copy)]
enum MarkKind {
    /// Normal about the level of the run, with this standard deviation in points.
    Graded(f64),
    /// Passed or failed, with the level of the run as the probability.
    PassFail,
}

/// When the runs of a suite take place.
#[derive(Clone, Copy)]
struct SuiteSchedule {
    /// Hours from one run to the next.
    every: u32,
    /// The hour of the first.
    first: u32,
    /// Share of runs that are missing, at random.
    missing: f64,
}

/// A line of the table.
#[derive(Clone, Copy)]
struct CoverageCase {
    /// Its name in the table.
    name: &'static str,
    /// The period of the interval.
    period: Period,
    /// When the suites run.
    schedule: [SuiteSchedule; 3],
    /// Trials per run.
    trials: u32,
    /// Marks of the trials.
    marks: MarkKind,
    /// The level, in points.
    level: f64,
    /// Noise of the runs of each suite about it.
    noise: NoiseKind,
    /// Its standard deviation, in points.
    deviation: f64,
    /// The models that are measured, if they are not all.
    young: Option<YoungModels>,
}

/// Models that are younger and noisier than their peers: a quarter of all.
#[derive(Clone, Copy)]
struct YoungModels {
    /// Hours of their runs.
    hours: u32,
    /// Times the standard deviation of the others.
    factor: f64,
}

/// The result of a case.
#[derive(Clone, Copy)]
struct Coverage {
    /// Number of scores.
    scores: u32,
    /// Those with an interval.
    intervals: u32,
    /// Intervals that contain the level.
    covering: u32,
    /// The mean width of the intervals, in points.
    mean_width: f64,
}

const HOURLY: SuiteSchedule = SuiteSchedule {
    every: 1,
    first: 0,
    missing: 0.0,
};
const BASE: CoverageCase = CoverageCase {
    name: "independent",
    period: Period::Day,
    schedule: [HOURLY; 3],
    trials: 5,
    marks: MarkKind::Graded(4.5),
    level: 70.0,
    noise: NoiseKind::White,
    deviation: 1.0,
    young: None,
};
const TWO_HOURLY: SuiteSchedule = SuiteSchedule {
    every: 2,
    first: 1,
    missing: 0.0,
};

fn graded(name: &'static str, period: Period, noise: NoiseKind) -> CoverageCase {
    CoverageCase {
        name,
        period,
        noise,
        deviation: 1.5,
        trials: 1,
        marks: MarkKind::Graded(0.0),
        ..BASE
    }
}

fn pass_fail(name: &'static str, period: Period, level: f64, trials: u32) -> CoverageCase {
    CoverageCase {
        name,
        period,
        level,
        trials,
        marks: MarkKind::PassFail,
        deviation: 0.0,
        ..BASE
    }
}

/// Runs at this distance instead of every hour, with noise that changes from run to run.
fn every(hours: u32, case: CoverageCase) -> CoverageCase {
    let schedule = SuiteSchedule {
        every: hours,
        ..HOURLY
    };
    CoverageCase {
        schedule: [schedule; 3],
        ..case
    }
}

/// The rows about noise: cycles, changes, outliers, and correlation of each run with the one before.
fn cases_of_noise() -> Vec<CoverageCase> {
    use NoiseKind::{
        Autoregressive, ChangingByDay, DailyCycle, HeavyTailed, Outliers, WeeklyCycle,
    };
    use Period::{Day, Latest, Month, Week};
    // The standard deviation is three times larger in the last 72 hours.
    let tripled = NoiseKind::Changed(3.0, DAYS * 24 - 72);
    let mut cases = Vec::new();
    for (name, noise, hours, periods) in [
        ("t, 3 degrees", HeavyTailed, 1, &[Latest, Day][..]),
        ("AR 0.3", Autoregressive(0.3), 1, &[Day]),
        ("AR 0.5", Autoregressive(0.5), 1, &[Day]),
        (
            "AR 0.8",
            Autoregressive(0.8),
            1,
            &[Latest, Day, Week, Month],
        ),
        ("AR 0.95", Autoregressive(0.95), 1, &[Day, Week]),
        ("weekly cycle ±2", WeeklyCycle(2.0), 1, &[Day, Week]),
        ("daily cycle ±2", DailyCycle(2.0), 1, &[Latest, Day, Week]),
        (
            "sd x 3 in the last 72 hours",
            tripled,
            1,
            &[Latest, Day, Week],
        ),
        ("sd changing by day", ChangingByDay, 1, &[Latest, Day, Week]),
        (
            "2 % outliers of -20",
            Outliers(0.02, 20.0),
            1,
            &[Latest, Day, Week],
        ),
        (
            "daily cycle ±2, 6-hourly",
            DailyCycle(2.0),
            6,
            &[Latest, Day, Week],
        ),
        (
            "weekly cycle ±2, 6-hourly",
            WeeklyCycle(2.0),
            6,
            &[Latest, Day, Week],
        ),
        (
            "weekly cycle ±2, daily",
            WeeklyCycle(2.0),
            24,
            &[Latest, Day, Week],
        ),
        (
            "sd x 3 in the last 72 hours, daily",
            tripled,
            24,
            &[Latest, Day, Week],
        ),
        (
            "weekend of -3",
            NoiseKind::Weekend(3.0),
            1,
            &[Day, Week, Month],
        ),
        (
            "weekend of -3, daily",
            NoiseKind::Weekend(3.0),
            24,
            &[Day, Week, Month],
        ),
    ] {
        let case = |period: &Period| every(hours, graded(name, *period, noise));
        cases.extend(periods.iter().map(case));
    }
    let noise = Autoregressive(0.8);
    cases.extend([Day, Week].map(|period| CoverageCase {
        trials: BASE.trials,
        marks: BASE.marks,
        ..graded("AR 0.8, 5 trials", period, noise)
    }));
    cases.push(CoverageCase {
        schedule: [TWO_HOURLY; 3],
        ..graded("AR 0.8, every other hour", Day, noise)
    });
    cases
}

/// The rows about the schedules of suites.
fn cases_of_schedules() -> Vec<CoverageCase> {
    use Period::{Day, Latest, Month, Week};
    let mut cases = Vec::new();
    for (name, every, missing, periods) in [
        (
            "one run a day",
            [(24, 0); 3],
            0.0,
            &[Latest, Day, Week, Month][..],
        ),
        (
            "suites at 3, 9 and 20 h",
            [(24, 3), (24, 9), (24, 20)],
            0.0,
            &[Latest, Day, Week],
        ),
        (
            "hourly, 6-hourly, daily",
            [(1, 0), (6, 2), (24, 5)],
            0.0,
            &[Day, Week, Month],
        ),
        (
            "one in five runs missing",
            [(1, 0); 3],
            0.2,
            &[Latest, Day, Week],
        ),
    ] {
        let schedule = every.map(|(every, first)| SuiteSchedule {
            every,
            first,
            missing,
        });
        cases.extend(periods.iter().map(|period| CoverageCase {
            name,
            period: *period,
            schedule,
            deviation: 2.5,
            ..BASE
        }));
    }
    cases
}

fn cases() -> Vec<CoverageCase> {
    use Period::{Day, Latest, Month, Week};
    let mut cases: Vec<CoverageCase> = [Day, Week, Month]
        .map(|period| CoverageCase { period, ..BASE })
        .into();
    for (name, trials, deviation) in [
        ("trials only", BASE.trials, 0.0),
        ("run effect, 1 trial", 1, 2.5),
        ("run effect, 3 trials", 3, 2.5),
        ("run effect, 10 trials", 10, 2.5),
    ] {
        cases.push(CoverageCase {
            name,
            period: Latest,
            trials,
            deviation,
            ..BASE
        });
    }
    cases.extend([
        pass_fail("pass/fail, 50 %", Day, 50.0, 1),
        pass_fail("pass/fail, 90 %", Day, 90.0, 1),
        pass_fail("pass/fail, 98 %", Latest, 98.0, 1),
        pass_fail("pass/fail, 98 %", Day, 98.0, 1),
        pass_fail("pass/fail, 98 %", Week, 98.0, 1),
        pass_fail("pass/fail, 99.9 %", Day, 99.9, 1),
        pass_fail("pass/fail, 98 %, 5 trials", Day, 98.0, 5),
        pass_fail("pass/fail, 98 %, 8 trials", Day, 98.0, 8),
    ]);
    for (name, hours, factor) in [
        ("3 rounds, sd x 2", 3, 2.0),
        ("3 rounds, sd x 4", 3, 4.0),
        ("6 rounds, sd x 2", 6, 2.0),
        ("6 rounds, sd x 4", 6, 4.0),
        ("24 rounds, sd x 2", 24, 2.0),
        ("24 rounds, sd x 4", 24, 4.0),
    ] {
        cases.push(CoverageCase {
            young: Some(YoungModels { hours, factor }),
            ..graded(name, Day, NoiseKind::White)
        });
    }
    cases.extend(cases_of_noise());
    cases.extend(cases_of_schedules());
    cases
}

impl Coverage {
    /// The share of intervals that contain the level.
    fn share(&self) -> f64 {
        f64::from(self.covering) / f64::from(self.intervals)
    }
}

fn measure(case: &CoverageCase, snapshots: u32) -> Coverage {
    let mut coverage = Coverage {
        scores: 0,
        intervals: 0,
        covering: 0,
        mean_width: 0.0,
    };
    let mut widths = 0.0;
    let query = Query {
        period: Some(case.period),
        ..Query::default()
    };
    let list = DocumentKey::new(Route::Models, None, query, case.period);
    for number in 0..snapshots {
        let scoring = scored(case, number);
        for model in items(&scoring, &list) {
            let index = model["id"]
                .as_str()
                .unwrap()
                .trim_start_matches('m')
                .parse()
                .unwrap();
            if (case.young.is_some() && !is_young(index))
                || model["currentScore"].as_f64().is_none()
            {
                continue;
            }
            coverage.scores += 1;
            let bounds = ["confidenceLower", "confidenceUpper"].map(|field| model[field].as_f64());
            let [Some(lower), Some(upper)] = bounds else {
                continue;
            };
            coverage.intervals += 1;
            coverage.covering += u32::from((lower..=upper).contains(&case.level));
            widths += upper - lower;
        }
    }
    assert!(
        coverage.intervals > 0,
        "{}: no interval is published",
        case.name
    );
    coverage.mean_width = widths / f64::from(coverage.intervals);
    coverage
}

fn scored(case: &CoverageCase, number: u32) -> Scoring {
    let first = Wall::from_seconds(1_000_080_000);
    let mut runs = Vec::new();
    for index in 0..MODELS {
        let seed = RUNS ^ (u64::from(number) << 32 | u64::from(index) << 16);
        runs.extend(model_runs(case, first, index, seed));
    }
    Scoring::open(
        RunSource::Runs(runs.into()),
        first.plus(Duration::from_hours(24) * DAYS),
    )
    .unwrap()
}

fn is_young(index: u32) -> bool {
    index.is_multiple_of(4)
}

fn model_runs(case: &CoverageCase, first: Wall, index: u32, seed: u64) -> Vec<Run> {
    let young = case.young.filter(|_| is_young(index));
    let (first_hour, factor) =
        young.map_or((0, 1.0), |young| (DAYS * 24 - young.hours, young.factor));
    let id = format!("m{index:02}");
    let id = ModelId::new(&id).unwrap();
    let model = Arc::new(TestedModel::new(id, "M", "p", None, None).unwrap());
    let mut runs = Vec::new();
    for ((suite, schedule), number) in Suite::DEFAULT.into_iter().zip(case.schedule).zip(0..) {
        let mut noise = NoiseGenerator::new(
            case.noise,
            factor * case.deviation,
            seed + number * 0x5_0000_0000_0000,
        );
        let mut random = SeededNormal::new(seed ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for hour in 0..DAYS * 24 {
            // Noise passes hour by hour, also between runs.
            let level = case.level + noise.draw();
            let is_missing = schedule.missing > 0.0 && random.uniform() < schedule.missing;
            if hour < first_hour || hour % schedule.every != schedule.first || is_missing {
                continue;
            }
            let trials = (0..case.trials)
                .map(|_| trial(case.marks, level, &mut random))
                .collect();
            let at = first.plus(Duration::from_hours(1) * hour);
            let outcome = RunOutcome::Scored(trials);
            runs.push(Run::new(Arc::clone(&model), suite, at, outcome).unwrap());
        }
    }
    runs
}

fn trial(marks: MarkKind, level: f64, random: &mut SeededNormal) -> Trial {
    let mark = match marks {
        MarkKind::Graded(deviation) => {
            ((level + deviation * random.normal()) / 100.0).clamp(0.0, 1.0)
        }
        MarkKind::PassFail => f64::from(u8::from(random.uniform() < level / 100.0)),
    };
    Trial::new([mark; 7], 1_000.0, 0.01).unwrap()
}

/// The items of a document.
pub fn items(scoring: &Scoring, key: &DocumentKey) -> Vec<Value> {
    serde_json::from_slice(&scoring.answer(key).unwrap().data).unwrap()
}

pub fn run() {
    let snapshots = if std::env::var_os("SCOREGATE_FULL").is_some() {
        50
    } else {
        1
    };
    println!(
        "method {METHOD_VERSION}; {} scores a line, of models with 37 days of runs",
        snapshots * MODELS
    );
    println!(
        "{:>28} {:>8} {:>10} {:>10} {:>10}",
        "", "period", "intervals", "covering", "width"
    );
    for case in cases() {
        let found = measure(&case, snapshots);
        let present = f64::from(found.intervals) / f64::from(found.scores.max(1));
        println!(
            "{:>28} {:>8} {present:>10.3} {:>10.3} {:>10.2}",
            case.name,
            case.period.word(),
            found.share(),
            found.mean_width
        );
    }
}
