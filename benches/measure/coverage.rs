//! Coverage and width of the published 95 % intervals, as a table, on seeded runs of models with a known level.
//!
//! A snapshot has models with a month of history and a constant level. An interval covers if it contains that level.
//! `cargo bench --bench measure -- coverage` is small; `SCOREGATE_FULL=1` uses 50 snapshots of 20 models per line. The figures
//! are the same on every machine.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Query, Route};
use scoregate_scoring::lab::simulated_noise::{NoiseGenerator, NoiseKind, SeededNormal};
use scoregate_scoring::{
    METHOD_VERSION, Run, RunOutcome, RunSource, Scoring, Suite, TestedModel, Trial,
};
use serde_json::Value;

/// Models in a snapshot.
pub(crate) const MODELS: u32 = 20;
/// Days of runs: a month of history, and a week.
pub(crate) const DAYS: u32 = 37;
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
const AR: fn(f64) -> NoiseKind = NoiseKind::Autoregressive;

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

fn run_effect(name: &'static str, trials: u32) -> CoverageCase {
    CoverageCase {
        name,
        period: Period::Latest,
        trials,
        deviation: 2.5,
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

fn scheduled(
    name: &'static str,
    period: Period,
    every: [(u32, u32); 3],
    missing: f64,
) -> CoverageCase {
    let schedule = every.map(|(every, first)| SuiteSchedule {
        every,
        first,
        missing,
    });
    CoverageCase {
        name,
        period,
        schedule,
        deviation: 2.5,
        ..BASE
    }
}

fn daily(period: Period) -> CoverageCase {
    scheduled("one run a day", period, [(24, 0); 3], 0.0)
}

/// Each suite at an hour of its own.
fn apart(period: Period) -> CoverageCase {
    scheduled(
        "suites at 3, 9 and 20 h",
        period,
        [(24, 3), (24, 9), (24, 20)],
        0.0,
    )
}

fn unequal(period: Period) -> CoverageCase {
    scheduled(
        "hourly, 6-hourly, daily",
        period,
        [(1, 0), (6, 2), (24, 5)],
        0.0,
    )
}

fn with_gaps(period: Period) -> CoverageCase {
    scheduled("one in five runs missing", period, [(1, 0); 3], 0.2)
}

/// With five trials per run, which add noise of their own.
fn marked(name: &'static str, period: Period, noise: NoiseKind) -> CoverageCase {
    CoverageCase {
        trials: 5,
        marks: MarkKind::Graded(4.5),
        ..graded(name, period, noise)
    }
}

/// Runs at this distance instead of every hour, with noise that changes from run to run.
fn every(hours: u32, case: CoverageCase) -> CoverageCase {
    CoverageCase {
        schedule: [SuiteSchedule {
            every: hours,
            first: 0,
            missing: 0.0,
        }; 3],
        ..case
    }
}

/// The standard deviation is three times larger in the last 72 hours.
fn tripled(period: Period) -> CoverageCase {
    graded(
        "sd x 3 in the last 72 hours",
        period,
        NoiseKind::Changed(3.0, DAYS * 24 - 72),
    )
}

fn young(name: &'static str, hours: u32, factor: f64) -> CoverageCase {
    CoverageCase {
        young: Some(YoungModels { hours, factor }),
        ..graded(name, Period::Day, NoiseKind::White)
    }
}

/// The rows about cycles, changing noise, outliers, and models unlike their peers.
fn further_cases() -> Vec<CoverageCase> {
    let mut cases = Vec::new();
    for period in [Period::Latest, Period::Day, Period::Week] {
        cases.push(graded("daily cycle ±2", period, NoiseKind::DailyCycle(2.0)));
        cases.push(tripled(period));
        cases.push(graded(
            "sd changing by day",
            period,
            NoiseKind::ChangingByDay,
        ));
        cases.push(graded(
            "2 % outliers of -20",
            period,
            NoiseKind::Outliers(0.02, 20.0),
        ));
        cases.push(every(
            6,
            graded(
                "daily cycle ±2, 6-hourly",
                period,
                NoiseKind::DailyCycle(2.0),
            ),
        ));
        cases.push(every(
            6,
            graded(
                "weekly cycle ±2, 6-hourly",
                period,
                NoiseKind::WeeklyCycle(2.0),
            ),
        ));
        cases.push(every(
            24,
            graded(
                "weekly cycle ±2, daily",
                period,
                NoiseKind::WeeklyCycle(2.0),
            ),
        ));
        cases.push(every(24, tripled(period)));
    }
    for period in [Period::Day, Period::Week, Period::Month] {
        cases.push(graded("weekend of -3", period, NoiseKind::Weekend(3.0)));
        cases.push(every(
            24,
            graded("weekend of -3, daily", period, NoiseKind::Weekend(3.0)),
        ));
    }
    for (hours, [double, fourfold]) in [
        (3, ["3 rounds, sd x 2", "3 rounds, sd x 4"]),
        (6, ["6 rounds, sd x 2", "6 rounds, sd x 4"]),
        (24, ["24 rounds, sd x 2", "24 rounds, sd x 4"]),
    ] {
        cases.extend([young(double, hours, 2.0), young(fourfold, hours, 4.0)]);
    }
    cases.push(pass_fail("pass/fail, 98 %, 5 trials", Period::Day, 98.0, 5));
    cases
}

fn cases() -> Vec<CoverageCase> {
    let cycle = NoiseKind::WeeklyCycle(2.0);
    vec![
        BASE,
        CoverageCase {
            period: Period::Week,
            ..BASE
        },
        CoverageCase {
            period: Period::Month,
            ..BASE
        },
        CoverageCase {
            name: "trials only",
            period: Period::Latest,
            deviation: 0.0,
            ..BASE
        },
        run_effect("run effect, 1 trial", 1),
        run_effect("run effect, 3 trials", 3),
        run_effect("run effect, 10 trials", 10),
        graded("t, 3 degrees", Period::Latest, NoiseKind::HeavyTailed),
        graded("t, 3 degrees", Period::Day, NoiseKind::HeavyTailed),
        graded("AR 0.3", Period::Day, AR(0.3)),
        graded("AR 0.5", Period::Day, AR(0.5)),
        graded("AR 0.8", Period::Latest, AR(0.8)),
        graded("AR 0.8", Period::Day, AR(0.8)),
        graded("AR 0.8", Period::Week, AR(0.8)),
        graded("AR 0.8", Period::Month, AR(0.8)),
        marked("AR 0.8, 5 trials", Period::Day, AR(0.8)),
        marked("AR 0.8, 5 trials", Period::Week, AR(0.8)),
        graded("AR 0.95", Period::Day, AR(0.95)),
        graded("AR 0.95", Period::Week, AR(0.95)),
        graded("weekly cycle ±2", Period::Day, cycle),
        graded("weekly cycle ±2", Period::Week, cycle),
        pass_fail("pass/fail, 50 %", Period::Day, 50.0, 1),
        pass_fail("pass/fail, 90 %", Period::Day, 90.0, 1),
        pass_fail("pass/fail, 98 %", Period::Latest, 98.0, 1),
        pass_fail("pass/fail, 98 %", Period::Day, 98.0, 1),
        pass_fail("pass/fail, 98 %", Period::Week, 98.0, 1),
        pass_fail("pass/fail, 99.9 %", Period::Day, 99.9, 1),
        pass_fail("pass/fail, 98 %, 8 trials", Period::Day, 98.0, 8),
        daily(Period::Latest),
        daily(Period::Day),
        daily(Period::Week),
        daily(Period::Month),
        apart(Period::Latest),
        apart(Period::Day),
        apart(Period::Week),
        unequal(Period::Day),
        unequal(Period::Week),
        unequal(Period::Month),
        with_gaps(Period::Latest),
        with_gaps(Period::Day),
        with_gaps(Period::Week),
        CoverageCase {
            name: "AR 0.8, every other hour",
            schedule: [TWO_HOURLY; 3],
            ..graded("", Period::Day, AR(0.8))
        },
    ]
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
pub(crate) fn items(scoring: &Scoring, key: &DocumentKey) -> Vec<Value> {
    serde_json::from_slice(&scoring.answer(key).unwrap().data).unwrap()
}

pub(crate) fn run() {
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
    for case in cases().into_iter().chain(further_cases()) {
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
