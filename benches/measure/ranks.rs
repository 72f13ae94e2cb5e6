//! Ranks of the scoring backend: the share of leaderboards of which all true ranks are within their published
//! bounds, the width of
//! the bounds, and the share of neighbours that are separated. Both are compared with a paired t test of the rounds
//! of the period:
//! for the bounds with Bonferroni's correction for all pairs, for neighbours at 5 %.

use std::{sync::Arc, time::Duration};

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ModelId, Period, Query, Route},
};
use scoregate_scoring::{
    METHOD_VERSION, Run, RunOutcome, RunSource, Scoring, Suite, TestedModel, Trial,
    lab::simulated_noise::{NoiseGenerator, NoiseKind, SeededNormal},
    t_quantile,
};
use serde_json::Value;

use super::coverage::{DAYS, MODELS, items};

const WHITE: NoiseKind = NoiseKind::White;
const AR: NoiseKind = NoiseKind::Autoregressive(0.8);
/// Seed of these runs, not used for any choice of the method.
const RUNS: u64 = 0xC0DE_2027_1129;
/// A line of the table: models of which each is some points below the one before.
struct LeaderboardCase {
    name: &'static str,
    period: Period,
    /// Hours of a round.
    every: u32,
    /// Points between neighbours.
    distance: f64,
    /// The noise that all models share, and its standard deviation in points.
    shared: (NoiseKind, f64),
    /// That of each model.
    own: (NoiseKind, f64),
    /// The share of rounds that each model lacks, at random.
    missing: f64,
}

/// The rounds of a model; none where it has no run.
type Rounds = Vec<Option<f64>>;

/// The result of a case.
#[derive(Default)]
struct RankCoverage {
    /// Leaderboards, and those of which all ranks are within their bounds.
    leaderboards: u32,
    held: u32,
    models: u32,
    /// Ranks within the bounds of all models, and within those of the corrected t test.
    ranks: u32,
    ranks_by_t_test: u32,
    neighbours: u32,
    separated: u32,
    /// Separated in the wrong order.
    wrong: u32,
    separated_by_t_test: u32,
}

fn cases() -> Vec<LeaderboardCase> {
    let kinds = [
        ("shared 1.5, own 1.5", (WHITE, 1.5), (WHITE, 1.5), 0.0),
        ("shared 3, own 1", (WHITE, 3.0), (WHITE, 1.0), 0.0),
        ("a fifth is missing", (WHITE, 3.0), (WHITE, 1.0), 0.2),
        ("shared AR 0.8", (AR, 1.5), (WHITE, 1.5), 0.0),
        ("own 1.5 alone", (WHITE, 0.0), (WHITE, 1.5), 0.0),
        ("own AR 0.8", (WHITE, 1.5), (AR, 1.5), 0.0),
    ];
    let mut cases = Vec::new();
    for (every, period, distance) in [
        (1, Period::Day, 0.3),
        (1, Period::Week, 0.1),
        (24, Period::Week, 0.6),
        (24, Period::Month, 0.3),
    ] {
        for (name, shared, own, missing) in kinds {
            cases.extend([distance, 0.0].map(|distance| LeaderboardCase {
                name,
                period,
                every,
                distance,
                shared,
                own,
                missing,
            }));
        }
    }
    cases
}

fn measure(case: &LeaderboardCase, leaderboards: u32) -> RankCoverage {
    let mut coverage = RankCoverage::default();
    for number in 0..leaderboards {
        let rounds = drawn(case, number);
        let query = Query {
            period: Some(case.period),
            ..Query::default()
        };
        let ranked = items(
            &scored(case, &rounds),
            &DocumentKey::new(Route::Models, None, query, case.period),
        );
        coverage.add(case, &rounds, &ranked);
    }
    coverage
}

impl RankCoverage {
    fn add(&mut self, case: &LeaderboardCase, rounds: &[Rounds], ranked: &[Value]) {
        let hours = match case.period {
            Period::Latest => 1,
            Period::Day => 24,
            Period::Week => 168,
            Period::Month => 720,
        };
        let newest = usize::try_from(hours / case.every).unwrap();
        let level = 0.025 / f64::from(MODELS * (MODELS - 1) / 2);
        let mut is_held = true;
        for (place, model) in ranked.iter().enumerate() {
            let number = |field: &str| u32::try_from(model[field].as_u64().unwrap()).unwrap();
            let [lower, upper] = ["rankLower", "rankUpper"].map(number);
            // Identifiers are in the order of the levels. Equal models have every rank.
            is_held &= if case.distance > 0.0 {
                (lower..=upper).contains(&(index(model) + 1))
            } else {
                (lower, upper) == (1, MODELS)
            };
            self.models += 1;
            self.ranks += upper - lower + 1;
            let one = &rounds[index(model) as usize];
            let apart = |other: &Rounds, tail| differ(one, other, newest, tail);
            let sure = rounds.iter().filter(|other| apart(other, level)).count();
            self.ranks_by_t_test += MODELS - u32::try_from(sure).unwrap();
            let Some(next) = ranked.get(place + 1) else {
                continue;
            };
            let is_separated = model["tiedWithNext"] == false;
            self.neighbours += 1;
            self.separated += u32::from(is_separated);
            let is_right = case.distance > 0.0 && index(model) < index(next);
            self.wrong += u32::from(is_separated && !is_right);
            self.separated_by_t_test += u32::from(apart(&rounds[index(next) as usize], 0.025));
        }
        self.leaderboards += 1;
        self.held += u32::from(is_held);
    }
}

fn index(model: &Value) -> u32 {
    let id = model["id"].as_str().unwrap();
    id.trim_start_matches('m').parse().unwrap()
}

/// The paired t test of the newest rounds, with this probability beyond each bound.
fn differ(one: &Rounds, other: &Rounds, newest: usize, tail: f64) -> bool {
    let pairs = one.iter().zip(other).rev().take(newest);
    let differences: Vec<f64> = pairs
        .filter_map(|(one, other)| Some((*one)? - (*other)?))
        .collect();
    let n = differences.len() as f64;
    if n < 2.0 {
        return false;
    }
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences
        .iter()
        .map(|one| (one - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    mean.abs() > t_quantile(tail, n - 1.0) * (variance / n).sqrt()
}

/// The rounds of each model, in points.
fn drawn(case: &LeaderboardCase, number: u32) -> Vec<Rounds> {
    let seed = |index: u32| RUNS ^ (u64::from(number) << 32 | u64::from(index) << 16);
    let noise = |(kind, deviation), index| {
        NoiseGenerator::new(kind, deviation, seed(index)).every(case.every)
    };
    let mut shared = noise(case.shared, MODELS);
    let rounds = DAYS * 24 / case.every;
    let shared: Vec<f64> = (0..rounds).map(|_| shared.draw()).collect();
    let of_model = |index: u32| {
        let mut own = noise(case.own, index);
        let mut chance = SeededNormal::new(seed(index + MODELS + 1));
        let level = 80.0 - case.distance * f64::from(index);
        let round = |shared: &f64| {
            let score = level + shared + own.draw();
            (chance.uniform() >= case.missing).then_some(score)
        };
        shared.iter().map(round).collect()
    };
    (0..MODELS).map(of_model).collect()
}

fn scored(case: &LeaderboardCase, rounds: &[Rounds]) -> Scoring {
    let first = Wall::from_seconds(1_000_080_000);
    let mut runs = Vec::new();
    for (index, rounds) in rounds.iter().enumerate() {
        let id = ModelId::new(&format!("m{index:02}")).unwrap();
        let model = Arc::new(TestedModel::new(id, "M", "p", None, None).unwrap());
        let known = (0..).zip(rounds);
        for (round, score) in known.filter_map(|(round, score)| Some((round, (*score)?))) {
            let mark = (score / 100.0).clamp(0.0, 1.0);
            for suite in Suite::DEFAULT {
                let trial = Trial::new([mark; 7], 1_000.0, 0.01).unwrap();
                let at = first.plus(Duration::from_hours(1) * case.every * round);
                let outcome = RunOutcome::Scored(vec![trial]);
                runs.push(Run::new(Arc::clone(&model), suite, at, outcome).unwrap());
            }
        }
    }
    Scoring::open(
        RunSource::Runs(runs.into()),
        first.plus(Duration::from_hours(24) * DAYS),
    )
    .unwrap()
}

pub fn run() {
    let leaderboards = if std::env::var_os("SCOREGATE_FULL").is_some() {
        50
    } else {
        1
    };
    println!(
        "method {METHOD_VERSION}; {leaderboards} leaderboards a line, of {MODELS} models with {DAYS} days of runs"
    );
    println!(
        "{:>20} {:>5} {:>6} {:>8} {:>5} {:>6} {:>10} {:>9} {:>6} {:>6}",
        "",
        "every",
        "period",
        "distance",
        "held",
        "ranks",
        "Bonferroni",
        "separated",
        "wrong",
        "t test"
    );
    for case in cases() {
        let found = measure(&case, leaderboards);
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of.max(1));
        println!(
            "{:>20} {:>4}h {:>6} {:>8} {:>5.2} {:>6.2} {:>10.2} {:>9.3} {:>6.3} {:>6.3}",
            case.name,
            case.every,
            case.period.word(),
            case.distance,
            share(found.held, found.leaderboards),
            share(found.ranks, found.models),
            share(found.ranks_by_t_test, found.models),
            share(found.separated, found.neighbours),
            share(found.wrong, found.neighbours),
            share(found.separated_by_t_test, found.neighbours),
        );
    }
}
