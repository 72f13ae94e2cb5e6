//! The published ranks of models with known levels and with shared and own noise. The bench `ranks` prints the table.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{ModelId, Period};

use super::super::hour::of_period;
use super::super::measure::Measure;
use super::super::method;
use super::super::model_state::ModelState;
use super::super::ranks::rank_bounds::rank_bounds;
use super::super::run::{Run, RunOutcome, Suite, TestedModel, Trial};
use super::super::snapshot::RunSource;
use super::super::statistics::{Estimate, SampleSums, Spread};
use super::coverage::{DAYS, MODELS};
use super::simulated_noise::{NoiseGenerator, NoiseKind};

/// Seed of these runs, not used for any choice of the method.
const RUNS: u64 = 0xC0DE_2027_0511;

/// A line of the table: [`MODELS`] models, each this many points below the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaderboardCase {
    /// Its name in the table.
    pub name: &'static str,
    /// The period of the ranks.
    pub period: Period,
    /// Hours of a round.
    pub every: u32,
    /// Points between neighbours.
    pub distance: f64,
    /// The noise that all models share, and its standard deviation in points.
    pub shared: (NoiseKind, f64),
    /// That of each model.
    pub own: (NoiseKind, f64),
}

/// The result of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankCoverage {
    /// Models with bounds.
    pub models: u32,
    /// Those whose true rank is within.
    pub inside: u32,
    /// The mean number of ranks within the bounds.
    pub mean_ranks: f64,
    /// Pairs of neighbours in the ranking.
    pub neighbours: u32,
    /// Those that the ranking tells apart.
    pub separated: u32,
    /// Those that a paired t test of their published histories tells apart.
    pub separated_by_t_test: u32,
}

/// Measures a case on that many leaderboards.
pub fn measure(case: &LeaderboardCase, leaderboards: u32) -> RankCoverage {
    let mut coverage = RankCoverage::default();
    let mut ranks = 0;
    for number in 0..leaderboards {
        let states = states(case, number);
        let score = |state: &ModelState| state.over(case.period).score.map_or(0.0, |score| score.score);
        let mut ranked: Vec<&ModelState> = states.iter().collect();
        ranked.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let bounds = rank_bounds(&ranked, case.period, Measure::Combined);
        for ((model, bounds), place) in ranked.iter().zip(&bounds).zip(0..) {
            let Some(bounds) = bounds else { continue };
            let true_rank = states.iter().take_while(|state| state.id() < model.id()).count() + 1;
            coverage.models += 1;
            coverage.inside += u32::from((bounds.lower..=bounds.upper).contains(&true_rank));
            ranks += bounds.upper - bounds.lower + 1;
            let Some((next, tied)) = ranked.get(place + 1).zip(bounds.tied_with_next) else { continue };
            coverage.neighbours += 1;
            coverage.separated += u32::from(!tied);
            coverage.separated_by_t_test += u32::from(differ(model, next, case.period));
        }
    }
    coverage.mean_ranks =
        f64::from(u32::try_from(ranks).unwrap_or(u32::MAX)) / f64::from(coverage.models.max(1));
    coverage
}

/// The paired t test of two published histories, at the same level.
fn differ(one: &ModelState, other: &ModelState, period: Period) -> bool {
    let [one, other] = [one, other].map(|state| of_period(period, &state.history));
    let pairs = one.iter().zip(other).filter_map(|(one, other)| Some(one.score?.score - other.score?.score));
    let sums: SampleSums = pairs.collect();
    let n = f64::from(sums.count);
    let spread = sums.variance().map(|variance| Spread { variance: variance / n, df: n - 1.0 });
    let difference = sums.mean().map(|mean| Estimate { mean, spread });
    difference.is_some_and(|difference| difference.chance_from_zero() < 2.0 * method::INTERVAL_TAIL)
}

fn states(case: &LeaderboardCase, number: u32) -> Vec<ModelState> {
    let first = Wall::from_seconds(1_000_080_000);
    let noise = |(kind, deviation), index: u32| {
        let seed = RUNS ^ (u64::from(number) << 32 | u64::from(index) << 16);
        NoiseGenerator::new(kind, deviation, seed).every(case.every)
    };
    let mut shared = noise(case.shared, MODELS);
    let shared: Vec<f64> = (0..DAYS * 24).step_by(step(case)).map(|_| shared.draw()).collect();
    let mut runs = Vec::new();
    for index in 0..MODELS {
        let mut own = noise(case.own, index);
        let id = ModelId::new(&format!("m{index:02}")).expect("it is well-formed");
        let model = Arc::new(TestedModel::new(id, "M", "p", None, None).expect("it is valid"));
        for (round, shared) in (0..).zip(&shared) {
            let mark = (80.0 - case.distance * f64::from(index) + shared + own.draw()) / 100.0;
            for suite in Suite::DEFAULT {
                let trial =
                    Trial::new([mark.clamp(0.0, 1.0); 7], 1_000.0, 0.01).expect("marks are from 0 to 1");
                let at = first.plus(Duration::from_hours(1) * case.every * round);
                let outcome = RunOutcome::Scored(vec![trial]);
                runs.push(Run::new(Arc::clone(&model), suite, at, outcome).expect("it has one trial"));
            }
        }
    }
    let now = first.plus(Duration::from_hours(24) * DAYS);
    RunSource::Runs(runs.into()).snapshot(now).expect("runs in memory are readable").model_states
}

fn step(case: &LeaderboardCase) -> usize {
    usize::try_from(case.every).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared_by(period: Period, shared: f64, own: f64) -> RankCoverage {
        let (shared, own) = ((NoiseKind::White, shared), (NoiseKind::White, own));
        measure(&LeaderboardCase { name: "", period, every: 1, distance: 0.4, shared, own }, 2)
    }

    #[test]
    fn true_ranks_are_within_their_bounds_and_shared_noise_cancels() {
        let (with, without) = (shared_by(Period::Day, 2.0, 0.5), shared_by(Period::Day, 0.0, 0.5));
        for coverage in [with, without] {
            assert_eq!((coverage.models, coverage.neighbours), (2 * MODELS, 2 * (MODELS - 1)));
            assert!(coverage.inside >= 2 * MODELS - 2, "{coverage:?}");
            assert!(coverage.separated + 3 >= coverage.separated_by_t_test, "{coverage:?}");
        }
        assert!(with.mean_ranks < 1.3 * without.mean_ranks, "{with:?} {without:?}");
    }
}
