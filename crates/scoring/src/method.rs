//! The method: every constant that a score depends on, in one place, each with its reason.
//!
//! Transparency responses name [`METHOD_VERSION`], which must change with any number here, so that two scores of one
//! version are comparable.
//!
//! Performance among 150 models whose rounds vary by 1.5 points about their level, independently: a fall by 5 points is
//! reported as drift within 8 rounds and as an alert within 24; one by 8 points is also an incident within 8 rounds;
//! 6 points lost over 10 days are drift within 96 rounds and an alert within 168, in 95 % of cases. If neighbouring
//! rounds have a correlation of 0.5 or 0.8, a fall by 5 points is drift within 16 or 48 rounds at the median. A quiet
//! model has fewer than 0.1 drift signals and 0.02 alerts a month, also with outliers (Student's t with 3 degrees of
//! freedom), with correlations up to 0.8, and with a weekly cycle of 2 points. The bench `detection` prints the whole
//! table; tests verify a part of it.
//!
//! The 95 % intervals are for the level of a model in the long run. With a month of history they contain it in 93 % of
//! cases or more, up to correlations of 0.8; the bench `coverage` prints the table.
//!
//! The arithmetic is in `statistics` and `student`. The numbers of the simulator are not part of the method.

use super::noise::round_count::RoundCount;
use super::run::{Axis, Suite};

/// The version of the method with the default suite table; it changes with every constant below.
pub const METHOD_VERSION: &str = "3.2";

/// Weights of the suites in the default table: code is what most callers choose a model for, tools least.
pub(super) const SUITE_WEIGHTS: [(Suite, f64); 3] =
    [(Suite::CODING, 0.40), (Suite::REASONING, 0.35), (Suite::TOOLING, 0.25)];

/// Weights of the axes in a trial, renormalised over those that its suite declares: correctness counts as much as any two others.
pub(super) const AXIS_WEIGHTS: [(Axis, f64); 7] = [
    (Axis::Correctness, 0.30),
    (Axis::Spec, 0.15),
    (Axis::CodeQuality, 0.15),
    (Axis::Efficiency, 0.10),
    (Axis::Stability, 0.10),
    (Axis::Refusal, 0.10),
    (Axis::Recovery, 0.10),
];

/// Probability beyond each bound of a confidence interval: 2.5 %, so that 95 % are inside.
pub(super) const INTERVAL_TAIL: f64 = 0.025;

/// Resolution of a run or a round in points. Marks have steps, and a few trials are not the model: samples that agree
/// to the last digit (a cached response, a suite solved completely) are no more certain than ones that vary by this.
pub(super) const RESOLUTION: f64 = 0.5;
/// Published steps per point of a score, and per unit of a share: finer than anybody needs, coarse enough to read.
pub(super) const PUBLISHED_STEPS: [f64; 2] = [100.0, 10_000.0];
/// Digits of a published p-value after its first.
pub(super) const CHANCE_DIGITS: usize = 2;
/// The smallest published p-value: nothing is impossible, and doubles end a little below.
pub(super) const CHANCE_LEAST: f64 = 1e-300;

/// Lengths of a round in hours: the divisors of a day, so that rounds begin at the same times every day.
pub(super) const ROUND_HOURS: [u64; 8] = [1, 2, 3, 4, 6, 8, 12, 24];
/// Minimum share of complete rounds: longer rounds only for suites that run less often, not for failures…
pub(super) const ROUND_COMPLETE_SHARE: f64 = 0.75;
/// …in the newest week with scores, so that a changed schedule counts after a few days.
pub(super) const ROUND_WEEK_HOURS: u64 = 7 * 24;

/// Hours whose rounds show the noise of a score.
pub(super) const NOISE_HOURS: u64 = 30 * 24;
/// Minimum number of rounds for a measured noise, and of blocks in them.
pub(super) const NOISE_LEAST: usize = 8;
/// Maximum rounds of a block. Longer means have the variance of this one, in proportion.
pub(super) const NOISE_BLOCK: usize = 24;
/// Rounds of the short blocks that show the correlation of neighbours.
pub(super) const NOISE_SHORT_BLOCK: usize = 6;
/// Maximum correlation of neighbours.
pub(super) const NOISE_CORRELATION_MOST: f64 = 0.98;
/// Minimum distance of compared blocks in rounds: two days, so that the correlation of neighbours is over.
pub(super) const NOISE_GAP: usize = 48;
/// Limit of a difference in robust standard deviations.
pub(super) const NOISE_LIMIT: f64 = 3.0;
/// Degrees of freedom per block of the history, and the most.
pub(super) const NOISE_FREEDOM: f64 = 0.7;
pub(super) const NOISE_FREEDOM_MOST: f64 = 100.0;
/// Degrees of freedom of the noise of the peers for a model without one. They decrease to none…
pub(super) const PEERS_FREEDOM: f64 = 4.0;
/// …for a model with so many of its own, which are a week of hourly rounds: it needs no peers.
pub(super) const PEERS_FREEDOM_ENDS: f64 = 20.0;
/// The period of a cycle that cancels in the score of a week, in hours. A shorter mean contains it.
pub(super) const CYCLE_HOURS: usize = 7 * 24;
/// Periods in the spectrum that shows a cycle: all that a month contains.
pub(super) const CYCLE_PERIODS: usize = 4;
/// Minimum share of rounds with a value in these periods.
pub(super) const CYCLE_COMPLETE_SHARE: f64 = 0.75;
/// Chance of such a line in a smooth spectrum, below which a series has a cycle.
pub(super) const CYCLE_ALPHA: f64 = 0.001;
/// Minimum number of peers with a measured noise.
pub(super) const PEERS_LEAST: usize = 3;

/// Hours of the window: a month, and the month before to compare it with.
pub(super) const WINDOW_HOURS: u64 = 60 * 24;

/// Hours of each period, in order: the newest, a day, a week, a month.
pub(super) const PERIOD_HOURS: [u64; 4] = [1, 24, 7 * 24, 30 * 24];
/// Hours that the history of each period shows, and hours per point: coarser further back.
pub(super) const HISTORY: [(u64, u64); 4] = [(24, 1), (24, 3), (7 * 24, 6), (30 * 24, 24)];

/// Maximum age of the newest complete round to count as `latest`. An older one is not current.
pub(super) const LATEST_REACH_HOURS: u64 = 24;

/// Lower limits of excellent, good and warning; below the last a score is critical.
pub(super) const STATUS_FROM: [f64; 3] = [80.0, 65.0, 50.0];

/// A trend is reported only if chance would cause such a difference for any model in fewer than 1 of 100 refreshes…
pub(super) const TREND_ALPHA: f64 = 0.01;
/// …and if it is relevant, in points. With a month of runs even a tenth of a point is significant.
pub(super) const TREND_MINIMUM: f64 = 0.5;

/// Hours of a model's own baseline: the 7 days before the last 24 hours.
pub(super) const BASELINE_HOURS: u64 = 7 * 24;
/// Hours compared with the baseline.
pub(super) const CURRENT_HOURS: u64 = 24;
/// Corrected p-value below which a model is reported below its baseline. An alert pages people, and is tested 720
/// times a month, so one in a hundred would be too many.
pub(super) const ALERT_ALPHA: f64 = 0.001;
/// Points below the baseline under which there is no alert.
pub(super) const ALERT_MINIMUM: f64 = 2.0;
/// Minimum hours of rounds before the last 24 for a fall to be found.
pub(super) const ALERT_BASELINE_LEAST_HOURS: u64 = 24;
/// Hours that the baseline stays before a fall: after a week the new level is the normal one.
pub(super) const ALERT_LONGEST_HOURS: u64 = 7 * 24;
/// Points below the baseline from which an alert is critical.
pub(super) const ALERT_CRITICAL: f64 = 8.0;

/// Corrected p-value below which a model is listed as degrading. A list may err more often than an alert.
pub(super) const DEGRADATION_ALPHA: f64 = 0.05;
/// Minimum loss in points for a model to be listed.
pub(super) const DEGRADATION_MINIMUM: f64 = 0.5;
/// Newest hours of each period whose line gives the current movement of a degraded model: enough to tell a line from
/// noise, few enough that the fall itself is mostly outside.
pub(super) const MOVEMENT_HOURS: [u64; 4] = [24, 24, 2 * 24, 7 * 24];
/// Minimum number of rounds for such a line: half a day.
pub(super) const MOVEMENT_LEAST: RoundCount = RoundCount { hourly: 12, least: 5 };
/// Points along such a line below which the model counts as stable.
pub(super) const MOVEMENT_MINIMUM: f64 = 1.0;

/// Rounds whose mean is compared with the rounds before: six hours smooth out a single odd round.
pub(super) const INCIDENT_ROUNDS: RoundCount = RoundCount { hourly: 6, least: 2 };
/// Maximum rounds in the baseline of an incident: a week.
pub(super) const INCIDENT_BASELINE_ROUNDS: RoundCount = RoundCount { hourly: 168, least: 24 };
/// Minimum number of rounds for a valid baseline.
pub(super) const INCIDENT_BASELINE_LEAST: RoundCount = RoundCount { hourly: 24, least: 12 };
/// Points below the baseline at which an incident opens.
pub(super) const INCIDENT_OPENS: f64 = 5.0;
/// p-value of the difference between the six rounds and those before, above which no incident opens. Fixed, so that a
/// recorded incident does not depend on other models: 150 models have about 1.3 million rounds a year, and one in a
/// million leaves about one false incident a year.
pub(super) const INCIDENT_ALPHA: f64 = 1e-6;
/// Points below the baseline within which it is resolved: half, to avoid flapping.
pub(super) const INCIDENT_RESOLVES: f64 = 2.5;
/// Points below the baseline from which it is critical.
pub(super) const INCIDENT_CRITICAL: f64 = 10.0;
/// Hours after which an ongoing incident is resolved: the new level has become normal.
pub(super) const INCIDENT_LONGEST_HOURS: u64 = 7 * 24;
/// Consecutive hours with only failed runs that are an outage.
pub(super) const OUTAGE_HOURS: u64 = 3;
/// Hours from which an outage is critical.
pub(super) const OUTAGE_CRITICAL_HOURS: u64 = 6;

/// Minimum share of trials that did not fail for a provider to be operational; below the second it has an outage.
pub(super) const PROVIDER_AVAILABILITY: [f64; 2] = [0.95, 0.50];
/// Weights of availability, score stability and freedom from incidents in reliability.
pub(super) const RELIABILITY_WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];
/// Standard deviation between rounds, in points, that counts as zero stability.
pub(super) const UNSTEADY_POINTS: f64 = 10.0;

/// Tolerance of the Page-Hinkley test (delta), in standard deviations of the model's own rounds in the long run: half
/// of the smallest change to detect, which is one of them.
pub(super) const DRIFT_DELTA: f64 = 0.5;
/// Threshold of the Page-Hinkley test (lambda), in the same unit. By Siegmund's approximation a quiet model reaches it
/// once in about eight years; signals are tested before they are reported. On seeds other than the reported ones, 12
/// found planted changes up to a round later, and 9 at most a round earlier.
pub(super) const DRIFT_LAMBDA: f64 = 10.0;
/// Minimum number of rounds before a signal: two days, so that the running mean is meaningful.
pub(super) const DRIFT_LEAST: RoundCount = RoundCount { hourly: 48, least: 12 };
/// Rounds that a signal stays in force: three days, so that a daily look does not miss it.
pub(super) const DRIFT_STANDS: RoundCount = RoundCount { hourly: 72, least: 3 };
/// Minimum noise in points: the resolution of a round.
pub(super) const DRIFT_NOISE_LEAST: f64 = RESOLUTION;
/// Places of a change that count as one test. Tests of neighbouring places are nearly the same: the largest of n such
/// statistics, this far out, behaves as that of at most a quarter as many independent ones.
pub(super) const DRIFT_PLACES_PER_TEST: f64 = 4.0;
/// Corrected p-value below which a signal is reported as a change.
pub(super) const DRIFT_ALPHA: f64 = 0.01;
/// Hours covered by the drift test.
pub(super) const DRIFT_HOURS: u64 = 30 * 24;
/// Hours covered by the trend of an axis.
pub(super) const SLOPE_HOURS: u64 = 7 * 24;
/// Minimum number of rounds for such a fit.
pub(super) const SLOPE_LEAST: RoundCount = RoundCount { hourly: 24, least: 5 };
/// Points a day below which an axis is stable, however significant the slope.
pub(super) const SLOPE_MINIMUM: f64 = 0.2;
/// Hours after a resolved degradation in which a model counts as recovering.
pub(super) const RECOVERY_HOURS: u64 = 48;

/// Minimum score to be recommended for price or speed: cheap and wrong is no bargain.
pub(super) const RECOMMENDED_FROM: f64 = 50.0;
/// Number of alternatives named beside a recommendation.
pub(super) const ALTERNATIVES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;

    /// The version, and the SHA-256 of every constant as written here, without comments.
    const RECORDED: (&str, &str) =
        ("3.2", "78bc057c3b334fbdf207bb86ae722df4774872b558e9167de52c647d0c9694a6");

    /// `NAME = value` of each constant, in order, with normalized spaces.
    fn constants() -> Vec<String> {
        let source = include_str!("method.rs").split("#[cfg(test)]").next().unwrap();
        let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        // Array types contain a semicolon too: the last one ends the constant.
        let statements = code.split("const ").skip(1);
        statements.filter_map(|statement| Some(statement.rsplit_once(';')?.0.to_owned())).collect()
    }

    #[test]
    fn changed_constants_require_a_new_method_version() {
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
    fn weights_sum_to_one_and_cover_all_parts_in_order() {
        assert_eq!(SUITE_WEIGHTS.map(|(suite, _)| suite), Suite::DEFAULT);
        assert_eq!(AXIS_WEIGHTS.map(|(axis, _)| axis), Axis::ALL);
        let sums = [
            SUITE_WEIGHTS.iter().map(|(_, weight)| weight).sum::<f64>(),
            AXIS_WEIGHTS.iter().map(|(_, weight)| weight).sum(),
            RELIABILITY_WEIGHTS.iter().sum(),
        ];
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-12), "{sums:?}");
    }
}
