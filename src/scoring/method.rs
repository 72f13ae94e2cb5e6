//! The method: every constant that a score depends on, in one place, each with its reason.
//!
//! The transparency answers name [`METHOD_VERSION`]; whoever changes a number here changes the version, so that two
//! scores of one version can be compared.
//!
//! What it finds among 150 models, where rounds vary by 1.5 points about their level: a fall by 5 points is called a drift
//! within 8 rounds and an alert within 24; one by 8 points is also an incident within 8 rounds; 6 points lost over 10 days
//! are a drift within 96 rounds and an alert within 168. A quiet model is called none of these in 20 months. These numbers
//! are `detection::STATED`, a test holds them, and the bench `detection` has the whole table.
//!
//! Not for: the arithmetic (`statistics.rs`, `student.rs`) nor for the simulator, whose numbers are no part of the method.

use super::run::{Axis, Suite};

/// The version of the method; it changes with every constant below.
pub const METHOD_VERSION: &str = "2.0";

/// How suites are weighed into the combined score: code is what most callers choose a model for, tools least.
pub(super) const SUITE_WEIGHTS: [(Suite, f64); 3] =
    [(Suite::Coding, 0.40), (Suite::Reasoning, 0.35), (Suite::Tooling, 0.25)];

/// How axes are weighed into a trial: being right counts as much as any two others.
pub(super) const AXIS_WEIGHTS: [(Axis, f64); 7] = [
    (Axis::Correctness, 0.30),
    (Axis::Spec, 0.15),
    (Axis::CodeQuality, 0.15),
    (Axis::Efficiency, 0.10),
    (Axis::Stability, 0.10),
    (Axis::Refusal, 0.10),
    (Axis::Recovery, 0.10),
];

/// What lies beyond each bound of a confidence interval: 2.5 %, so that 95 % lie within.
pub(super) const INTERVAL_TAIL: f64 = 0.025;

/// Points to which a run or a round is known. Its marks are given in steps, and a handful of trials is not the model: so
/// samples that agree to the last digit (a cached answer, a suite solved whole) say no more than ones that vary by this.
pub(super) const RESOLUTION: f64 = 0.5;
/// Steps to a point in which scores are published, and to one in which shares are: finer than anybody can use, coarse
/// enough to be read.
pub(super) const PUBLISHED_STEPS: [f64; 2] = [100.0, 10_000.0];
/// Digits of a published chance after its first: it is told by its size.
pub(super) const CHANCE_DIGITS: usize = 2;
/// The smallest chance that is published: nothing is impossible, and a double ends soon below.
pub(super) const CHANCE_LEAST: f64 = 1e-300;

/// Hours looked at: a month, and the month before to compare it with.
pub(super) const WINDOW_HOURS: u64 = 60 * 24;

/// Hours of each period, in their order: the newest, a day, a week, a month.
pub(super) const PERIOD_HOURS: [u64; 4] = [1, 24, 7 * 24, 30 * 24];
/// Hours that the history of each period shows, and of each of its points: the longer ago, the coarser.
pub(super) const HISTORY: [(u64, u64); 4] = [(24, 1), (24, 3), (7 * 24, 6), (30 * 24, 24)];

/// How far back the newest complete round may lie to be called latest. An older one says nothing of today.
pub(super) const LATEST_REACH_HOURS: u64 = 24;

/// Score from which a model is excellent, good, or to be warned of; below the last it is critical.
pub(super) const STATUS_FROM: [f64; 3] = [80.0, 65.0, 50.0];

/// A trend is told only if chance would make such a difference in fewer than 1 of 100 refreshes for any model at all…
pub(super) const TREND_ALPHA: f64 = 0.01;
/// …and if somebody could notice it: points. With a month of runs even a tenth of a point is significant.
pub(super) const TREND_MINIMUM: f64 = 0.5;

/// Hours of a model's own baseline: the 7 days before the last 24 hours.
pub(super) const BASELINE_HOURS: u64 = 7 * 24;
/// Hours that are held against the baseline.
pub(super) const CURRENT_HOURS: u64 = 24;
/// Corrected chance below which a model is said to be under its baseline. An alert wakes people, and it is looked for 720
/// times a month, so that one in a hundred would be too many.
pub(super) const ALERT_ALPHA: f64 = 0.001;
/// Points under the baseline below which nobody is woken.
pub(super) const ALERT_MINIMUM: f64 = 2.0;
/// Points under the baseline from which an alert is critical.
pub(super) const ALERT_CRITICAL: f64 = 8.0;

/// Corrected chance below which a model is listed as degrading. A list may err more often than an alert.
pub(super) const DEGRADATION_ALPHA: f64 = 0.05;
/// Points lost below which a model is not listed.
pub(super) const DEGRADATION_MINIMUM: f64 = 0.5;
/// Newest hours of each period whose line says where a degraded model moves now: days enough to tell a line from noise,
/// few enough that the fall itself has mostly passed.
pub(super) const MOVEMENT_HOURS: [u64; 4] = [24, 24, 2 * 24, 7 * 24];
/// Rounds such a line needs: half a day.
pub(super) const MOVEMENT_LEAST: usize = 12;
/// Points along such a line below which the model is stable at its level.
pub(super) const MOVEMENT_MINIMUM: f64 = 1.0;

/// Rounds whose mean is held against the rounds before: six hours outlast one odd round.
pub(super) const INCIDENT_ROUNDS: usize = 6;
/// Rounds an incident's baseline is the mean of.
pub(super) const INCIDENT_BASELINE_ROUNDS: usize = 168;
/// Rounds a baseline needs before it is trusted.
pub(super) const INCIDENT_BASELINE_LEAST: usize = 24;
/// Points under the baseline at which an incident opens.
pub(super) const INCIDENT_OPENS: f64 = 5.0;
/// Chance of such a difference between the six rounds and those before, if nothing had changed, above which none opens.
/// Fixed, so that a recorded incident does not come and go with other models: 150 models have some 1.3 million rounds a
/// year, and one in a million leaves about one incident a year to chance.
pub(super) const INCIDENT_ALPHA: f64 = 1e-6;
/// Points under the baseline within which it is resolved: half, so that it does not flap.
pub(super) const INCIDENT_RESOLVES: f64 = 2.5;
/// Points under the baseline from which it is critical.
pub(super) const INCIDENT_CRITICAL: f64 = 10.0;
/// Hours after which a lasting incident is resolved: the new level has become the model's own.
pub(super) const INCIDENT_LONGEST_HOURS: u64 = 7 * 24;
/// Hours in a row in which every run failed that make an outage.
pub(super) const OUTAGE_HOURS: u64 = 3;
/// Hours from which an outage is critical.
pub(super) const OUTAGE_CRITICAL_HOURS: u64 = 6;

/// Share of runs that must not fail for a provider to be operational; below the second it is an outage.
pub(super) const PROVIDER_AVAILABILITY: [f64; 2] = [0.95, 0.50];
/// How availability, steadiness of scores and freedom from incidents are weighed into reliability.
pub(super) const RELIABILITY_WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];
/// Points of standard deviation between rounds that count as no steadiness at all.
pub(super) const UNSTEADY_POINTS: f64 = 10.0;

/// By how much a round may differ from the running mean without weighing on the Page-Hinkley test (delta), in standard
/// deviations of the model's own rounds: half of the smallest change that is looked for, which is one of them.
pub(super) const DRIFT_DELTA: f64 = 0.5;
/// Page-Hinkley statistic above which there is a signal (lambda), in the same unit. In 900 simulated months of quiet models
/// 8 signalled 177 times, 10 signalled 25 times, 12 signalled 4 times and 15 never; 15 takes a round longer for a step of
/// three times the noise. The test of what was signalled is still to come.
pub(super) const DRIFT_LAMBDA: f64 = 12.0;
/// Rounds needed before anything is signalled: two days, so that the running mean is worth something.
pub(super) const DRIFT_LEAST: u32 = 48;
/// Rounds a signal stands: three days, in which everybody who looks once a day has seen it.
pub(super) const DRIFT_STANDS: usize = 72;
/// Points below which noise is not taken for smaller: the resolution of a round.
pub(super) const DRIFT_NOISE_LEAST: f64 = RESOLUTION;
/// Corrected chance below which a signal is called a change.
pub(super) const DRIFT_ALPHA: f64 = 0.01;
/// Hours the drift test looks at.
pub(super) const DRIFT_HOURS: u64 = 30 * 24;
/// Hours the trend of an axis is fitted to.
pub(super) const SLOPE_HOURS: u64 = 7 * 24;
/// Rounds such a fit needs.
pub(super) const SLOPE_LEAST: usize = 24;
/// Points a day below which an axis is stable, however sure the slope is.
pub(super) const SLOPE_MINIMUM: f64 = 0.2;
/// Hours after a resolved degradation in which a model is said to be recovering.
pub(super) const RECOVERY_HOURS: u64 = 48;

/// Score a model needs to be recommended for its price or its speed: cheap and wrong is no bargain.
pub(super) const RECOMMENDED_FROM: f64 = 50.0;
/// Alternatives named beside a recommendation.
pub(super) const ALTERNATIVES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;

    /// The version, and the SHA-256 of every constant as it is written here, without its comment.
    const RECORDED: (&str, &str) =
        ("2.0", "bb4c63421bc85ef2160c2253e9a41d7eea465e579f6ffc16cc17b1bf35eac246");

    /// `NAME = value` of each constant, in order, in one spelling of spaces.
    fn constants() -> Vec<String> {
        let source = include_str!("method.rs").split("#[cfg(test)]").next().unwrap();
        let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        // The type of an array holds a semicolon too: the last one ends the constant.
        let statements = code.split("const ").skip(1);
        statements.filter_map(|statement| Some(statement.rsplit_once(';')?.0.to_owned())).collect()
    }

    #[test]
    fn a_constant_does_not_change_without_the_version() {
        let own = |constant: &&String| !constant.starts_with("METHOD_VERSION");
        let constants = constants();
        assert!(constants.len() > 50, "{constants:#?}");
        let written: Vec<&str> = constants.iter().filter(own).map(String::as_str).collect();
        let mut digest = String::new();
        for byte in Sha256::digest(written.join("\n")) {
            write!(digest, "{byte:02x}").unwrap();
        }
        assert_eq!(
            (METHOD_VERSION, digest.as_str()),
            RECORDED,
            "a constant changed: raise METHOD_VERSION, say so in the changelog, and record both here"
        );
    }

    #[test]
    fn the_weights_of_a_score_add_up_to_one_and_name_everything_in_order() {
        assert_eq!(SUITE_WEIGHTS.map(|(suite, _)| suite), Suite::ALL);
        assert_eq!(AXIS_WEIGHTS.map(|(axis, _)| axis), Axis::ALL);
        let sums = [
            SUITE_WEIGHTS.iter().map(|(_, weight)| weight).sum::<f64>(),
            AXIS_WEIGHTS.iter().map(|(_, weight)| weight).sum(),
            RELIABILITY_WEIGHTS.iter().sum(),
        ];
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{sums:?}");
    }
}
