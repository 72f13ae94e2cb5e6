//! What the detectors find, and what they raise for nothing: tried out on seeded series of rounds, hour by hour as the
//! product runs them.
//!
//! A series is a month of quiet, so that every baseline is known, and a month that is watched; what is planted begins
//! with the watch. Rounds are normal about their level and independent. Where the product corrects for the models of its
//! snapshot, 150 are taken to be there. Not for: simulated runs (`simulate.rs`), nor for figures of speed.

use super::drift;
use super::hour::{Hour, Stretch};
use super::incidents::IncidentScan;
use super::method;
use super::series::ScoreRound;
use super::statistics::{Estimate, SampleSums, chance_of_fall};

/// Models that a corrected chance is corrected for.
pub const MODELS: u32 = 150;
/// Hours that are watched: a month.
pub const WATCHED_HOURS: usize = 30 * 24;
const QUIET_HOURS: usize = 30 * 24;
const LEVEL: f64 = 70.0;
/// Tells these series from all others: the constants of the method were chosen on different ones, so that what is found
/// here was not fitted to.
const SERIES: u64 = 0x5EED_2026_1122;

/// What looks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// The Page-Hinkley test with the test of its signal: what `drifting` says.
    Drift,
    /// The rule that opens an incident.
    Incident,
    /// The last 24 hours against the 7 days before.
    Alert,
}

/// What is planted in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plant {
    /// Nothing.
    Quiet,
    /// A fall by so many points, at once.
    Step(f64),
    /// A fall by so many points, evenly over so many hours.
    Ramp(f64, u32),
}

/// What a detector made of many series.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// The detector.
    pub detector: Detector,
    /// How often it began to say that something is there.
    pub alarms: u32,
    /// For each series in which it said so: the rounds since the watch began, in order.
    pub delays: Vec<u32>,
}

/// What `method.rs` states, for this noise in points: rounds within which a plant is found by each detector. Nothing is
/// stated where the plant is no more than the rule's own limit, or is not what the rule is for.
pub const STATED: [(Plant, [Option<u32>; 3]); 3] = [
    (Plant::Step(5.0), [Some(8), None, Some(24)]),
    (Plant::Step(8.0), [Some(6), Some(8), Some(24)]),
    (Plant::Ramp(6.0, 240), [Some(96), None, Some(168)]),
];
/// Points by which rounds vary about their level where something is stated.
pub const STATED_NOISE: f64 = 1.5;

impl Detector {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Drift, Self::Incident, Self::Alert];
}

impl Findings {
    /// The delay within which this share of the findings lies; `None` without any.
    pub fn delay(&self, share: f64) -> Option<u32> {
        let mut within = 0.0;
        self.delays.iter().copied().find(|_| {
            within += 1.0;
            within >= share * f64::from(self.found())
        })
    }

    /// Series in which something was said.
    pub fn found(&self) -> u32 {
        u32::try_from(self.delays.len()).expect("the series were counted in 32 bits")
    }
}

/// Runs all detectors over so many series with noise of that many points. A quiet series is watched to its end; one with
/// something planted until everybody has found it.
pub fn try_out(plant: Plant, noise: f64, series: u32) -> [Findings; 3] {
    let mut all = Detector::ALL.map(|detector| Findings { detector, alarms: 0, delays: Vec::new() });
    for number in 0..series {
        for (findings, alarms) in all.iter_mut().zip(watched(&rounds(plant, noise, number), plant)) {
            findings.alarms += u32::try_from(alarms.len()).expect("at most one an hour");
            findings.delays.extend(alarms.first());
        }
    }
    for findings in &mut all {
        findings.delays.sort_unstable();
    }
    all
}

/// The rounds of one series.
fn rounds(plant: Plant, noise: f64, number: u32) -> Vec<(Hour, f64)> {
    let named = u64::from(number).wrapping_mul(0x2545_F491_4F6C_DD1D) ^ noise.to_bits();
    let mut random = Random(named.wrapping_add(SERIES));
    let first = Hour::of(crate::clock::Wall::default());
    let lost = |since: f64| match plant {
        Plant::Quiet => 0.0,
        Plant::Step(points) => points,
        Plant::Ramp(points, hours) => points * (since / f64::from(hours)).min(1.0),
    };
    let mut since = 0.0;
    let mut round = |(place, hour): (usize, Hour)| {
        since += if place < QUIET_HOURS { 0.0 } else { 1.0 };
        let level = if place < QUIET_HOURS { LEVEL } else { LEVEL - lost(since) };
        (hour, level + noise * random.normal())
    };
    let stretch = Stretch { from: first, to: first.plus(60 * 24) };
    stretch.hours().take(QUIET_HOURS + WATCHED_HOURS).enumerate().map(&mut round).collect()
}

/// For each detector, the rounds of the watch with which it began to say that something is there.
fn watched(rounds: &[(Hour, f64)], plant: Plant) -> [Vec<u32>; 3] {
    let mut alarms: [Vec<u32>; 3] = Default::default();
    let mut said = [false; 3];
    let mut incidents = IncidentScan::default();
    for (known, (hour, score)) in (1..).zip(rounds) {
        incidents.look_for_degradation(ScoreRound { hour: *hour, score: *score, axes: [*score; 7] });
        let Some(since) = known_since(known) else { continue };
        let past = rounds.get(..known).unwrap_or_default();
        for ((detector, alarms), said) in Detector::ALL.into_iter().zip(&mut alarms).zip(&mut said) {
            if plant != Plant::Quiet && !alarms.is_empty() {
                continue;
            }
            let says = match detector {
                Detector::Drift => drifts(past),
                Detector::Incident => incidents.has_opened(),
                Detector::Alert => alerts(past),
            };
            if says && !*said {
                alarms.push(since);
            }
            *said = says;
        }
        if plant != Plant::Quiet && alarms.iter().all(|alarms| !alarms.is_empty()) {
            break;
        }
    }
    alarms
}

/// Rounds of the watch among those known; `None` before it.
fn known_since(known: usize) -> Option<u32> {
    u32::try_from(known.checked_sub(QUIET_HOURS)?).ok().filter(|since| *since > 0)
}

fn drifts(past: &[(Hour, f64)]) -> bool {
    let signal = drift::watch(newest(past, method::DRIFT_HOURS)).signal;
    signal.is_some_and(|signal| signal.chance * f64::from(MODELS) < method::DRIFT_ALPHA)
}

fn alerts(past: &[(Hour, f64)]) -> bool {
    let current = newest(past, method::CURRENT_HOURS);
    let before = past.get(..past.len() - current.len()).unwrap_or_default();
    let Some((before, now)) = estimate(newest(before, method::BASELINE_HOURS)).zip(estimate(current)) else {
        return false;
    };
    let chance = chance_of_fall(before, now) * f64::from(MODELS);
    chance < method::ALERT_ALPHA && before.mean - now.mean >= method::ALERT_MINIMUM
}

fn estimate(rounds: &[(Hour, f64)]) -> Option<Estimate> {
    let tally: SampleSums = rounds.iter().map(|(_, score)| *score).collect();
    tally.estimate().map(|estimate| estimate.no_finer(method::RESOLUTION))
}

/// The last so many rounds: there is one an hour.
fn newest(past: &[(Hour, f64)], hours: u64) -> &[(Hour, f64)] {
    let hours = usize::try_from(hours).unwrap_or(usize::MAX);
    past.get(past.len().saturating_sub(hours)..).unwrap_or_default()
}

/// Splitmix64, as the simulator has it.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Mean 0, standard deviation 1, never beyond 6: the sum of twelve even numbers, whose tails are near enough.
    fn normal(&mut self) -> f64 {
        let evenly =
            |bits: u64| [bits, bits >> 16, bits >> 32, bits >> 48].map(|bits| (bits & 0xFFFF) as u32);
        let sum: u32 = [self.next(), self.next(), self.next()].into_iter().flat_map(evenly).sum();
        (f64::from(sum) + 6.0) / 65_536.0 - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_is_centred_and_of_the_size_asked_for() {
        let drawn: SampleSums =
            (0..10).flat_map(|n| rounds(Plant::Quiet, 1.5, n)).map(|(_, score)| score).collect();
        assert!((drawn.mean().unwrap() - LEVEL).abs() < 0.05);
        assert!((drawn.variance().unwrap().sqrt() - 1.5).abs() < 0.03);
    }

    #[test]
    fn a_quiet_model_is_left_in_peace() {
        for findings in try_out(Plant::Quiet, STATED_NOISE, 20) {
            assert_eq!((findings.alarms, findings.delays.len()), (0, 0), "{findings:?}");
        }
    }

    #[test]
    fn what_is_planted_is_found_within_the_stated_rounds() {
        for (plant, bounds) in STATED {
            for (findings, bound) in try_out(plant, STATED_NOISE, 14).into_iter().zip(bounds) {
                let Some(bound) = bound else { continue };
                let last = findings.delay(1.0).unwrap();
                assert!(findings.delays.len() == 14 && last <= bound, "{plant:?} {bound}: {findings:?}");
            }
        }
    }

    #[test]
    fn a_delay_is_the_one_within_which_a_share_lies() {
        let findings = Findings { detector: Detector::Drift, alarms: 4, delays: vec![1, 2, 3, 9] };
        assert_eq!([0.5, 0.95].map(|share| findings.delay(share)), [Some(2), Some(9)]);
        assert_eq!(Findings { delays: vec![], ..findings }.delay(0.5), None);
    }
}
