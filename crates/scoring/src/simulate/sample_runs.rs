//! The simulator: benchmark runs that are generated from a seed.
//!
//! Each hour of each model has a separate seed, so any hour can be generated without the previous hours, and the past
//! never changes. Only additions, multiplications and square roots are used, so that the same seed gives the same bytes
//! on every machine. Simulated data is marked as synthetic in the responses.

use std::{sync::Arc, time::Duration};

use scoregate_base::{clock::Wall, routes::ModelId};

use super::catalogue::{CATALOGUE, CatalogueModel, SimulatedHabit};
use crate::{
    hour::{Hour, HourRange},
    run::{IdentifiedRun, Run, RunFailure, RunId, RunOutcome, TestedModel, Trial},
    suite::Suite,
};

/// Trials per run.
const TRIALS: usize = 5;
/// One in this many runs fails, regardless of the behaviour.
const FAILS_ONE_IN: u64 = 70;
/// Standard deviations of a run's effect, and of a trial's effect on one axis.
const LUCK: (f64, f64) = (0.006, 0.05);
/// Number of tokens of a task.
const PROMPT_TOKENS: f64 = 3_000.0;

/// A simulated model.
#[derive(Clone, Debug)]
pub struct Simulated {
    model: Arc<TestedModel>,
    entry: CatalogueModel,
    seed: u64,
    shift: u64,
}

/// All simulated models for a seed.
pub fn models(seed: u64) -> Vec<Simulated> {
    models_named(seed, "")
}

pub fn models_named(seed: u64, ending: &str) -> Vec<Simulated> {
    // All models have the same shift, which preserves the hand-picked order of behaviours.
    let shift = SplitMix64::new(&[seed]).below(10_000);
    CATALOGUE
        .into_iter()
        .map(|entry| {
            let id = ModelId::new(&format!("{}{ending}", entry.id))
                .expect("the catalogue's identifiers are well-formed: a test checks them");
            let (input, output) = entry.prices;
            let name = format!("{}{}", entry.name, ending.replace('-', " "));
            let model = TestedModel::new(id, &name, entry.provider, Some(input), Some(output));
            let model =
                Arc::new(model.expect("the catalogue's models are valid: a test checks them"));
            let mut own = SplitMix64::new(&[seed]);
            let seed = entry.id.bytes().fold(own.next(), |sum, byte| {
                SplitMix64::new(&[sum, u64::from(byte)]).next()
            });
            Simulated {
                model,
                entry,
                seed,
                shift,
            }
        })
        .collect()
}

/// Runs of one model over the last day, as an example of a file to import.
pub fn sample_runs(now: Wall) -> impl Iterator<Item = IdentifiedRun> {
    let range = Hour::of(now).last(24);
    let first = models(0).into_iter().take(1);
    first
        .flat_map(move |model| model.runs(range).collect::<Vec<_>>())
        .map(identified)
}

/// A run with an id that consists of its model, suite and time.
pub fn identified(run: Run) -> IdentifiedRun {
    let id = format!(
        "{}-{}-{}",
        run.model().id(),
        run.suite().name(),
        run.at().seconds()
    );
    let id = RunId::new(&id).expect("its parts are short and visible");
    IdentifiedRun {
        id,
        run,
        detail: None,
    }
}

impl Simulated {
    pub fn model(&self) -> &Arc<TestedModel> {
        &self.model
    }

    /// The runs of the model in a range, oldest first.
    pub fn runs(&self, range: HourRange) -> impl Iterator<Item = Run> {
        range.hours().flat_map(|hour| self.round(hour))
    }

    /// The runs of the model in one hour, oldest first.
    pub fn round(&self, hour: Hour) -> Vec<Run> {
        let state = self.state(hour);
        if state == SimulatedState::Gone {
            return Vec::new();
        }
        let mut random = SplitMix64::new(&[self.seed, hour.number()]);
        Suite::DEFAULT
            .into_iter()
            .zip(&self.entry.level)
            .zip([2, 20, 38])
            .map(|((suite, level), minute): ((Suite, &f64), u64)| {
                let at = hour
                    .start()
                    .plus(Duration::from_secs(60 * minute + random.below(900)));
                let failed = random.below(FAILS_ONE_IN) == 0;
                let outcome = match state {
                    SimulatedState::Up { loss } if !failed => {
                        RunOutcome::Scored(self.trials(*level, hour, loss, &mut random))
                    }
                    SimulatedState::Up { .. } => RunOutcome::Failed(random.failure()),
                    SimulatedState::Failing | SimulatedState::Gone => {
                        RunOutcome::Failed(RunFailure::Unreachable)
                    }
                };
                Run::new(Arc::clone(&self.model), suite, at, outcome)
                    .expect("it has trials, and few")
            })
            .collect()
    }

    fn trials(&self, level: f64, hour: Hour, loss: f64, random: &mut SplitMix64) -> Vec<Trial> {
        let level = level - loss + LUCK.0 * random.normal();
        // Axes differ between models, and a loss affects them differently: code most, style least.
        let mut lasting = SplitMix64::new(&[self.seed]);
        let tilt: [f64; 7] = std::array::from_fn(|_| 0.03 * lasting.normal());
        let hit = [1.2, 1.0, 1.3, 0.9, 0.9, 0.4, 0.7];
        let busy = 1.0 + 0.2 * busyness(hour);
        let (input, output) = self.entry.prices;
        let trials = (0..TRIALS).map(|_| {
            let mut scores = [0.0; 7];
            for ((score, tilt), hit) in scores.iter_mut().zip(tilt).zip(hit) {
                let own = level + tilt - loss * (hit - 1.0) + LUCK.1 * random.normal();
                *score = own.clamp(0.0, 1.0);
            }
            let latency = self.entry.latency_ms * busy * (1.0 + 0.15 * random.normal()).max(0.2);
            let tokens = self.entry.tokens * (1.0 + 0.2 * random.normal()).max(0.1);
            let cost = (PROMPT_TOKENS * input + tokens * output) / 1e6;
            Trial::new(scores, latency, cost).expect("scores are clamped, the rest is positive")
        });
        trials.collect()
    }

    fn state(&self, hour: Hour) -> SimulatedState {
        let phase_of = |cycle: u64, phase: u64| (hour.number() + self.shift + phase) % cycle;
        match self.entry.habit {
            SimulatedHabit::Drifts { cycle, phase, loss } => {
                let loss = loss * share(phase_of(cycle, phase), cycle);
                SimulatedState::Up { loss }
            }
            SimulatedHabit::Breaks {
                cycle,
                phase,
                hours,
                loss,
            } if phase_of(cycle, phase) < hours => SimulatedState::Up { loss },
            SimulatedHabit::Fails {
                cycle,
                phase,
                hours,
            } if phase_of(cycle, phase) < hours => SimulatedState::Failing,
            SimulatedHabit::Visits {
                cycle,
                phase,
                hours,
            } if phase_of(cycle, phase) >= hours => SimulatedState::Gone,
            SimulatedHabit::Steady
            | SimulatedHabit::Breaks { .. }
            | SimulatedHabit::Fails { .. }
            | SimulatedHabit::Visits { .. } => SimulatedState::Up { loss: 0.0 },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SimulatedState {
    Up { loss: f64 },
    Failing,
    Gone,
}

/// The load of the hour, from 0 at midnight to 1 at noon UTC.
fn busyness(hour: Hour) -> f64 {
    let of_day = hour.number() % 24;
    share(of_day.min(24 - of_day), 12)
}

fn share(part: u64, whole: u64) -> f64 {
    float(part) / float(whole)
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Splitmix64: small, fast, and permanently the same on every machine, which no library guarantees.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// A generator seeded by these numbers.
    fn new(named: &[u64]) -> Self {
        named.iter().fold(Self(0x5C0_2E6A7E), |random, number| {
            let mut next = Self(random.0 ^ number);
            Self(next.next())
        })
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `limit`. The bias of the remainder is negligible.
    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A value with mean 0 and standard deviation 1, never beyond 3.5: the sum of four uniform numbers, which is close
    /// enough to a normal one.
    fn normal(&mut self) -> f64 {
        let bits = self.next();
        let sum: u32 = [bits, bits >> 16, bits >> 32, bits >> 48]
            .iter()
            .map(|b| (*b & 0xFFFF) as u32)
            .sum();
        (f64::from(sum) / 65_536.0 - 2.0) * 3.0_f64.sqrt()
    }

    /// A failure of the provider. There are no timeouts, because they would count as zero, and only the behaviours
    /// determine the scores.
    fn failure(&mut self) -> RunFailure {
        if self.below(4) == 1 {
            RunFailure::Throttled
        } else {
            RunFailure::Unreachable
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::statistics::SampleSums;

    use super::*;

    fn noon() -> Hour {
        Hour::of(Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap())
    }

    #[test]
    fn hours_are_simulated_independently() {
        for simulated in models(7) {
            let whole: Vec<Run> = simulated.runs(noon().last(48)).collect();
            let half: Vec<Run> = simulated.runs(noon().last(24)).collect();
            assert!(whole.ends_with(&half), "{}", simulated.entry.id);
        }
    }

    #[test]
    fn runs_are_determined_by_the_seed() {
        let runs = |seed| {
            models(seed)
                .iter()
                .flat_map(|m| m.round(noon()))
                .collect::<Vec<_>>()
        };
        assert_eq!(runs(1), runs(1));
        assert_ne!(runs(1), runs(2));
    }

    #[test]
    fn runs_are_within_their_hour_and_some_fail() {
        let mut failed = 0;
        for simulated in models(1) {
            for run in simulated.runs(noon().last(240)) {
                failed += u32::from(matches!(run.outcome(), RunOutcome::Failed(_)));
            }
            for run in simulated.round(noon()) {
                assert_eq!(Hour::of(run.at()), noon());
            }
        }
        assert!((50..1_000).contains(&failed), "{failed}");
    }

    #[test]
    fn at_any_time_one_preview_is_absent() {
        for day in 0..60 {
            let now = noon().plus(24 * day);
            let away = models(3)
                .into_iter()
                .filter(|m| m.runs(now.last(24)).next().is_none())
                .count();
            assert!((1..=2).contains(&away), "{day}");
        }
    }

    #[test]
    fn the_run_effect_has_mean_zero_and_unit_variance() {
        let mut random = SplitMix64::new(&[42]);
        let drawn: SampleSums = (0..20_000).map(|_| random.normal()).collect();
        assert!(drawn.mean().unwrap().abs() < 0.03);
        assert!((drawn.variance().unwrap() - 1.0).abs() < 0.03);
    }
}
