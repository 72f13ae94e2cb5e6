//! Detection rates and false alarms of the detectors, measured with seeded series of rounds, hour by hour as in
//! production.
//!
//! A series consists of a quiet month, so that every baseline is known, and an observed month. Planted changes begin
//! with the observed month. The caller chooses the noise around the level. Where the product corrects for the number of
//! models, the correction for planted changes assumes [`MODELS`] models. For false alarms, it assumes [`FEW_MODELS`],
//! because fewer models make false alarms more likely.

use scoregate_base::routes::Period;

use super::simulated_noise::{NoiseGenerator, SeededNormal};
use crate::{
    drift,
    hour::{Hour, hours_of},
    levels::ScoreLevels,
    method,
    period_scores::ScoreRound,
    round_length::RoundLength,
    statistics::chance_of_fall,
};

pub use super::simulated_noise::NoiseKind;

/// Number of models for the correction of p-values in series with changes.
pub const MODELS: u32 = 150;
/// Number of models for the correction of p-values in quiet series.
pub const FEW_MODELS: u32 = 20;
/// Observed hours: a month.
pub const WATCHED_HOURS: u32 = 30 * 24;
const QUIET_HOURS: u32 = 30 * 24;
const LEVEL: f64 = 70.0;
/// Seed of the evaluated series. The constants of the method were chosen with other seeds, so the results are not
/// fitted to these series.
const SERIES: u64 = 0xC0DE_2027_0318;

/// The series to evaluate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesPlan {
    /// The planted change.
    pub scenario: Scenario,
    /// The noise around the level.
    pub noise: NoiseKind,
    /// The standard deviation of the noise, in points.
    pub deviation: f64,
    /// The length of a round in hours.
    pub hours: u32,
    /// The share of rounds that are missing.
    pub missing: f64,
    /// Number of series.
    pub series: u32,
}

/// A detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detector {
    /// A change of level: `drifting`.
    Drift,
    /// A deep fall, which opens an incident.
    Incident,
    /// The newest level compared with the level a week ago.
    Alert,
}

/// A change planted in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scenario {
    /// There is no change.
    Quiet,
    /// An immediate fall by this many points.
    Step(f64),
    /// A gradual fall of this many points, spread evenly over this many rounds.
    Ramp(f64, u32),
    /// A rise of this many points for this many hours.
    Rise(f64, u32),
}

/// The results of a detector over many series.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Number of times that the detector started to signal.
    pub alarms: u32,
    /// For each series with a signal: the rounds between the start of the observed month and the first signal, sorted.
    pub delays: Vec<u32>,
}

impl Detector {
    /// All detectors.
    pub const ALL: [Self; 3] = [Self::Drift, Self::Incident, Self::Alert];
}

impl Findings {
    /// The delay within which this share of the detected changes was found; `None` if no change was detected.
    pub fn delay(&self, share: f64) -> Option<u32> {
        let mut within = 0.0;
        self.delays.iter().copied().find(|_| {
            within += 1.0;
            within >= share * f64::from(self.found())
        })
    }

    /// Number of series with a signal.
    pub fn found(&self) -> u32 {
        u32::try_from(self.delays.len()).expect("the number of series fits in 32 bits")
    }
}

impl Scenario {
    /// Whether no detector should signal a fall. Such a series is observed to its end, not only until all detectors
    /// have signalled.
    fn is_without_fall(self) -> bool {
        match self {
            Self::Quiet | Self::Rise(..) => true,
            Self::Step(_) | Self::Ramp(..) => false,
        }
    }
}

/// Runs all detectors on all series. A series with a planted fall is observed until all detectors have found it. The
/// others are observed to their end.
pub fn evaluate(plan: SeriesPlan) -> [Findings; 3] {
    let mut all = Detector::ALL.map(|_| Findings {
        alarms: 0,
        delays: Vec::new(),
    });
    for number in 0..plan.series {
        for (findings, alarms) in all.iter_mut().zip(watched(&rounds(&plan, number), plan)) {
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
fn rounds(plan: &SeriesPlan, number: u32) -> Vec<ScoreRound> {
    let seed = u64::from(number).wrapping_mul(0x2545_F491_4F6C_DD1D) ^ plan.deviation.to_bits();
    let noise = NoiseGenerator::new(plan.noise, plan.deviation, seed.wrapping_add(SERIES));
    let mut noise = noise.every(plan.hours);
    let lost = |since: u32| match plan.scenario {
        Scenario::Step(points) => points,
        Scenario::Ramp(points, rounds) => points * (f64::from(since) / f64::from(rounds)).min(1.0),
        Scenario::Rise(points, hours) if (since - 1) * plan.hours < hours => -points,
        Scenario::Quiet | Scenario::Rise(..) => 0.0,
    };
    let mut gaps = SeededNormal::new(seed);
    let first = Hour::of(scoregate_base::clock::Wall::default());
    let round = |number: u32| {
        let since = known_since(number + 1, plan.hours).map_or(0.0, lost);
        let hour = first.plus(u64::from(number * plan.hours));
        ScoreRound {
            hour,
            score: LEVEL - since + noise.draw(),
        }
    };
    (0..(QUIET_HOURS + WATCHED_HOURS) / plan.hours)
        .map(round)
        .filter(|_| gaps.uniform() >= plan.missing)
        .collect()
}

/// For each detector, the observed rounds in which it started to signal, in chronological order.
fn watched(rounds: &[ScoreRound], plan: SeriesPlan) -> [Vec<u32>; 3] {
    let mut alarms: [Vec<u32>; 3] = Default::default();
    let mut signalled = [false; 3];
    let length = RoundLength::of(u64::from(plan.hours));
    let to_end = plan.scenario.is_without_fall();
    let models = f64::from(if to_end { FEW_MODELS } else { MODELS });
    for (place, round) in rounds.iter().enumerate() {
        let number = u32::try_from(round.hour.number()).unwrap_or(u32::MAX) / plan.hours;
        let Some(since) = known_since(number + 1, plan.hours) else {
            continue;
        };
        let past = rounds.get(..=place).unwrap_or_default();
        let levels = ScoreLevels::of(past, length);
        for ((detector, alarms), signalled) in Detector::ALL
            .into_iter()
            .zip(&mut alarms)
            .zip(&mut signalled)
        {
            if !to_end && !alarms.is_empty() {
                continue;
            }
            let signals = signals(detector, &levels, past, length, models);
            if signals && !*signalled {
                alarms.push(since);
            }
            *signalled = signals;
        }
        if !to_end && alarms.iter().all(|alarms| !alarms.is_empty()) {
            break;
        }
    }
    alarms
}

/// Number of observed rounds among the first `known` ones; `None` before the observed month.
fn known_since(known: u32, hours: u32) -> Option<u32> {
    known
        .checked_sub(QUIET_HOURS / hours)
        .filter(|since| *since > 0)
}

/// Whether a detector signals for these levels, with the p-value corrected for this number of models.
fn signals(
    detector: Detector,
    levels: &ScoreLevels,
    past: &[ScoreRound],
    length: RoundLength,
    models: f64,
) -> bool {
    match detector {
        Detector::Drift => {
            let signal = drift::watch(levels, past, length).signal;
            signal.is_some_and(|signal| signal.chance * models < method::DRIFT_ALPHA)
        }
        Detector::Alert => {
            let end = past
                .last()
                .map_or(Hour::numbered(0), |round| length.round_of(round.hour).to);
            levels
                .since(end.minus(hours_of(Period::Week)))
                .is_some_and(|levels| {
                    let chance = chance_of_fall(levels.before, levels.now) * models;
                    chance < method::ALERT_ALPHA
                        && levels.before.mean - levels.now.mean >= method::ALERT_MINIMUM
                })
        }
        Detector::Incident => levels
            .changes
            .last()
            .is_some_and(|change| change.incident.is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum delays in rounds until each detector finds a change, with [`STATED_NOISE`]. `None` if the change does
    /// not exceed the limit of the detector, or the detector is not meant for it.
    const STATED: [(Scenario, [Option<u32>; 3]); 3] = [
        (Scenario::Step(5.0), [Some(8), None, Some(24)]),
        (Scenario::Step(8.0), [Some(6), Some(8), Some(24)]),
        (Scenario::Ramp(6.0, 240), [Some(120), None, Some(240)]),
    ];
    /// The standard deviation of rounds, in points, that the stated delays assume.
    const STATED_NOISE: f64 = 1.5;
    /// The kinds of noise with which quiet models have few signals.
    const QUIET: [NoiseKind; 6] = [
        NoiseKind::White,
        NoiseKind::HeavyTailed,
        NoiseKind::Autoregressive(0.3),
        NoiseKind::Autoregressive(0.5),
        NoiseKind::Autoregressive(0.8),
        NoiseKind::WeeklyCycle(2.0),
    ];
    /// Maximum median delays, in rounds, until drift is detected after a fall of 5 points, for each correlation of neighbouring rounds.
    const STATED_MEDIANS: [(f64, u32); 2] = [(0.5, 16), (0.8, 48)];

    fn plan(scenario: Scenario, series: u32) -> SeriesPlan {
        SeriesPlan {
            scenario,
            noise: NoiseKind::White,
            deviation: STATED_NOISE,
            hours: 1,
            missing: 0.0,
            series,
        }
    }

    #[test]
    fn the_end_of_a_temporary_rise_is_no_fall() {
        for hours in [12, 24, 72] {
            let [_, incident, alert] = evaluate(plan(Scenario::Rise(6.0, hours), 8));
            assert_eq!((incident.alarms, alert.alarms), (0, 0), "{hours}");
        }
    }

    #[test]
    fn quiet_models_cause_few_signals_under_every_stated_noise() {
        for noise in QUIET {
            let plan = SeriesPlan {
                noise,
                ..plan(Scenario::Quiet, 12)
            };
            for findings in evaluate(plan) {
                // A single signal would be a rate of 0.1 per month.
                assert!(findings.alarms <= 1, "{noise:?} {findings:?}");
            }
        }
    }

    #[test]
    fn a_fall_is_found_under_correlated_noise() {
        for (correlation, median) in STATED_MEDIANS {
            let noise = NoiseKind::Autoregressive(correlation);
            let plan = SeriesPlan {
                noise,
                ..plan(Scenario::Step(5.0), 20)
            };
            let [drift, ..] = evaluate(plan);
            assert_eq!(drift.found(), 20, "{drift:?}");
            assert!(
                drift.delay(0.5).unwrap() <= median,
                "{correlation}: {drift:?}"
            );
        }
    }

    #[test]
    fn simulated_changes_are_detected_within_the_stated_rounds() {
        for (scenario, bounds) in STATED {
            for (findings, bound) in evaluate(plan(scenario, 14)).into_iter().zip(bounds) {
                let Some(bound) = bound else { continue };
                let last = findings.delay(1.0).unwrap();
                assert!(
                    findings.delays.len() == 14 && last <= bound,
                    "{scenario:?} {bound}: {findings:?}"
                );
            }
        }
    }

    #[test]
    fn missing_rounds_and_outliers_hide_few_falls() {
        let outliers = NoiseKind::Outliers(0.01, 20.0);
        for (noise, missing) in [(NoiseKind::White, 0.2), (outliers, 0.0)] {
            for hours in [6, 24] {
                let plan = SeriesPlan {
                    noise,
                    hours,
                    missing,
                    ..plan(Scenario::Step(5.0), 100)
                };
                let [drift, _, alert] = evaluate(plan).map(|findings| findings.found());
                assert!(drift.min(alert) >= 90, "{plan:?}: {drift} {alert}");
            }
        }
    }

    #[test]
    fn correlated_days_are_seldom_changes_of_level() {
        let plan = SeriesPlan {
            noise: NoiseKind::Autoregressive(0.8),
            hours: 24,
            ..plan(Scenario::Quiet, 200)
        };
        let [drift, _, alert] = evaluate(plan).map(|findings| findings.alarms);
        assert!(drift <= 9 && alert <= 6, "{drift} {alert}");
    }

    #[test]
    fn delay_is_the_quantile_of_the_detections() {
        let findings = Findings {
            alarms: 4,
            delays: vec![1, 2, 3, 9],
        };
        assert_eq!(
            [0.5, 0.95].map(|share| findings.delay(share)),
            [Some(2), Some(9)]
        );
        assert_eq!(
            Findings {
                delays: vec![],
                ..findings
            }
            .delay(0.5),
            None
        );
    }
}
