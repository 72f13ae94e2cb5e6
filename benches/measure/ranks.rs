//! Ranks of the scoring backend: the share of true ranks within their published bounds, and the share of neighbours that are
//! separated, compared with a paired t test of the published histories.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Query, Route};
use scoregate_scoring::lab::simulated_noise::{NoiseGenerator, NoiseKind};
use scoregate_scoring::{
    METHOD_VERSION, Run, RunOutcome, RunSource, Scoring, Suite, TestedModel, Trial,
};
use serde_json::Value;

use super::coverage::{DAYS, MODELS, items};

const WHITE: NoiseKind = NoiseKind::White;
const AR: NoiseKind = NoiseKind::Autoregressive(0.8);
/// Seed of these runs, not used for any choice of the method.
const RUNS: u64 = 0xC0DE_2027_0511;
/// Two-sided 5 % quantiles of Student's t by degrees of freedom, from one on.
const QUANTILES: [f64; 29] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045,
];

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
}

/// The result of a case: numbers of models and of pairs of neighbours.
#[derive(Default)]
struct RankCoverage {
    models: u32,
    /// Those whose true rank is within their bounds.
    inside: u32,
    /// Ranks within the bounds of all models.
    ranks: u64,
    neighbours: u32,
    separated: u32,
    separated_by_t_test: u32,
}

fn cases() -> Vec<LeaderboardCase> {
    let mut cases = Vec::new();
    for every in [1, 24] {
        let [name, shared, correlated, none, slow] = match every {
            1 => [
                "shared 1.5, own 1.5",
                "shared 3, own 1",
                "own AR 0.8",
                "own 1.5 alone",
                "shared AR 0.8",
            ],
            _ => [
                "the same, daily",
                "shared 3, daily",
                "own AR 0.8, daily",
                "own 1.5, daily",
                "shared AR 0.8, daily",
            ],
        };
        // At these distances a part of the neighbours is separated.
        let further = if every == 1 { 1.0 } else { 4.0 };
        for (period, distance) in [
            (Period::Latest, 1.5),
            (Period::Day, 0.5),
            (Period::Week, 0.3),
        ] {
            let distance = if period == Period::Latest {
                distance
            } else {
                further * distance
            };
            let case = |name, shared, own| LeaderboardCase {
                name,
                period,
                every,
                distance,
                shared,
                own,
            };
            cases.extend([
                case(name, (WHITE, 1.5), (WHITE, 1.5)),
                case(shared, (WHITE, 3.0), (WHITE, 1.0)),
                case(correlated, (WHITE, 1.5), (AR, 1.5)),
                case(slow, (AR, 1.5), (WHITE, 1.5)),
                case(none, (WHITE, 0.0), (WHITE, 1.5)),
            ]);
        }
    }
    cases
}

fn measure(case: &LeaderboardCase, leaderboards: u32) -> RankCoverage {
    let mut coverage = RankCoverage::default();
    for number in 0..leaderboards {
        let scoring = scored(case, number);
        let query = Query {
            period: Some(case.period),
            ..Query::default()
        };
        let ranked = items(
            &scoring,
            &DocumentKey::new(Route::Models, None, query, case.period),
        );
        for (place, model) in ranked.iter().enumerate() {
            let number = |field: &str| model[field].as_u64().unwrap();
            // Identifiers are in the order of the levels.
            let true_rank = model["id"]
                .as_str()
                .unwrap()
                .trim_start_matches('m')
                .parse::<u64>()
                .unwrap()
                + 1;
            coverage.models += 1;
            coverage.inside +=
                u32::from((number("rankLower")..=number("rankUpper")).contains(&true_rank));
            coverage.ranks += number("rankUpper") - number("rankLower") + 1;
            let Some(next) = ranked.get(place + 1) else {
                continue;
            };
            coverage.neighbours += 1;
            coverage.separated += u32::from(model["tiedWithNext"] == false);
            coverage.separated_by_t_test += u32::from(differ(&scoring, [model, next], case.period));
        }
    }
    coverage
}

/// The paired t test of two published histories, at 5 %.
fn differ(scoring: &Scoring, models: [&Value; 2], period: Period) -> bool {
    let [one, other] = models.map(|model| {
        let id = ModelId::new(model["id"].as_str().unwrap());
        items(
            scoring,
            &DocumentKey {
                id,
                ..DocumentKey::over(Route::History, period)
            },
        )
    });
    let pairs = one.iter().zip(&other);
    let differences: Vec<f64> = pairs
        .filter_map(|(one, other)| Some(one["score"].as_f64()? - other["score"].as_f64()?))
        .collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences
        .iter()
        .map(|one| (one - mean).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    let quantile = QUANTILES.get(differences.len().wrapping_sub(2));
    quantile.is_some_and(|quantile| mean.abs() > quantile * (variance / n).sqrt())
}

fn scored(case: &LeaderboardCase, number: u32) -> Scoring {
    let first = Wall::from_seconds(1_000_080_000);
    let noise = |(kind, deviation), index: u32| {
        let seed = RUNS ^ (u64::from(number) << 32 | u64::from(index) << 16);
        NoiseGenerator::new(kind, deviation, seed).every(case.every)
    };
    let mut shared = noise(case.shared, MODELS);
    let rounds = DAYS * 24 / case.every;
    let shared: Vec<f64> = (0..rounds).map(|_| shared.draw()).collect();
    let mut runs = Vec::new();
    for index in 0..MODELS {
        let mut own = noise(case.own, index);
        let id = ModelId::new(&format!("m{index:02}")).unwrap();
        let model = Arc::new(TestedModel::new(id, "M", "p", None, None).unwrap());
        for (round, shared) in (0..rounds).zip(&shared) {
            let mark = (80.0 - case.distance * f64::from(index) + shared + own.draw()) / 100.0;
            for suite in Suite::DEFAULT {
                let trial = Trial::new([mark.clamp(0.0, 1.0); 7], 1_000.0, 0.01).unwrap();
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

pub(crate) fn run() {
    let leaderboards = if std::env::var_os("SCOREGATE_FULL").is_some() {
        50
    } else {
        1
    };
    println!(
        "method {METHOD_VERSION}; {leaderboards} leaderboards a line, of {MODELS} models with 37 days of runs"
    );
    println!(
        "{:>22} {:>7} {:>9} {:>10} {:>6} {:>10} {:>8}",
        "", "period", "distance", "inside", "ranks", "separated", "t test"
    );
    for case in cases() {
        let found = measure(&case, leaderboards);
        let share = |count: u32, of: u32| f64::from(count) / f64::from(of.max(1));
        // The history of `latest` is that of a day, which tells more models apart than one round.
        let t_test = share(found.separated_by_t_test, found.neighbours);
        let t_test = if case.period == Period::Latest {
            "-".to_owned()
        } else {
            format!("{t_test:.3}")
        };
        println!(
            "{:>22} {:>7} {:>9} {:>10.3} {:>6.1} {:>10.3} {t_test:>8}",
            case.name,
            case.period.word(),
            case.distance,
            share(found.inside, found.models),
            found.ranks as f64 / f64::from(found.models),
            share(found.separated, found.neighbours)
        );
    }
}
