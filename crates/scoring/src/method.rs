//! The method: every constant that a score depends on, in one place, each with its reason.
//!
//! Transparency responses contain [`METHOD_VERSION`], which must change whenever a number here changes, so that two scores of the
//! same version are comparable.
//!
//! The performance was measured with 1,000 series whose rounds vary independently by 1.5 points about their level; p-values were
//! corrected for 150 models. With daily rounds, drift and alerts each found at least 96 % of the 5-point falls, and at least 92 % if a
//! fifth of the rounds were missing. The median delay was at most 7 rounds, and the 95th percentile at most 17. With hourly
//! rounds, they found all falls; the median delay was 5 rounds, and the 95th percentile 8.
//! Quiet series had at most 0.03 drifts and 0.02 alerts a month with correlations up to 0.8. The bench `detection` prints
//! the whole table; tests verify part of it.
//!
//! The 95 % intervals cover the long-run level of a model. With a month of history, they contained it for 93 to 100 %
//! of 160 scores per row, for correlations up to 0.95. If the noise had tripled in the last three daily rounds, they
//! contained it for only 61 % (91 % for `7d`). For models with 3 to 6 rounds that were noisier than their peers, the
//! figure was 80 to 90 % of 40 scores. The benchmark `coverage` prints the table.
//!
//! `statistics` and `student` do the arithmetic. The constants of the simulator are not part of the method.

use super::suite::{Axis, Suite};

/// A number of hourly rounds. For longer rounds, the number is divided by their length in hours, down to a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundCount {
    /// The number of one-hour rounds.
    pub hourly: usize,
    /// The minimum for longer rounds.
    pub least: usize,
}

/// The version of the method with the default suite table; it changes with every constant below.
pub const METHOD_VERSION: &str = "5.1";

/// Weights of the suites in the default table. Most callers choose a model for writing code, and the fewest for using
/// tools.
pub const SUITE_WEIGHTS: [(Suite, f64); 3] = [
    (Suite::CODING, 0.40),
    (Suite::REASONING, 0.35),
    (Suite::TOOLING, 0.25),
];

/// Weights of the axes in a trial, renormalised over the axes that its suite declares. Correctness counts at least as much as any
/// two other axes.
pub const AXIS_WEIGHTS: [(Axis, f64); 7] = [
    (Axis::Correctness, 0.30),
    (Axis::Spec, 0.15),
    (Axis::CodeQuality, 0.15),
    (Axis::Efficiency, 0.10),
    (Axis::Stability, 0.10),
    (Axis::Refusal, 0.10),
    (Axis::Recovery, 0.10),
];

/// Probability outside each bound of a confidence interval: 2.5 %, so that 95 % are inside.
pub const INTERVAL_TAIL: f64 = 0.025;

/// Resolution of a run or a round, in points. Marks are discrete, and a few trials do not fully describe a model.
/// Samples that agree to the last digit (a cached response, a suite solved completely) are no more certain than samples
/// that vary by this amount.
pub const RESOLUTION: f64 = 0.5;
/// Number of steps per point in published scores, and per unit in published shares: finer than necessary, but coarse enough to read.
pub const PUBLISHED_STEPS: [f64; 2] = [100.0, 10_000.0];
/// Digits of a published p-value after its first significant digit.
pub const CHANCE_DIGITS: usize = 2;
/// The smallest published p-value. A p-value is never zero, and the smallest double is only slightly smaller than this.
pub const CHANCE_LEAST: f64 = 1e-300;

/// Lengths of a round in hours: the divisors of a day, so that rounds begin at the same times every day.
pub const ROUND_HOURS: [u64; 8] = [1, 2, 3, 4, 6, 8, 12, 24];
/// Minimum share of complete rounds. Rounds become longer for suites that run less often, but not because of failures…
pub const ROUND_COMPLETE_SHARE: f64 = 0.75;
/// …in the newest week with scores, so that a changed schedule counts after a few days.
pub const ROUND_WEEK_HOURS: u64 = 7 * 24;

/// Hours whose rounds determine the noise of a score.
pub const NOISE_HOURS: u64 = 30 * 24;
/// Minimum number of blocks into which the rounds are divided.
pub const NOISE_BLOCKS: usize = 8;
/// Minimum number of rounds for a model's noise to count as the noise of a peer.
pub const NOISE_LEAST: usize = 8;
/// Maximum number of rounds in a block. For a mean of more rounds, the variance of a block is scaled in proportion.
pub const NOISE_BLOCK: usize = 24;
/// Number of rounds in the short blocks that show the correlation of neighbouring rounds.
pub const NOISE_SHORT_BLOCK: usize = 6;
/// Maximum correlation of neighbouring rounds.
pub const NOISE_CORRELATION_MOST: f64 = 0.98;
/// Minimum number of newest rounds that can show a change in the noise.
pub const NOISE_LATELY: usize = 24;
/// Limit of a deviation, in standard deviations. A single outlier must not cause a signal.
pub const NOISE_LIMIT: f64 = 3.0;
/// Degrees of freedom of a noise estimate: the minimum, from two rounds, and the maximum.
pub const NOISE_FREEDOM_LEAST: f64 = 1.0;
pub const NOISE_FREEDOM_MOST: f64 = 100.0;
/// Degrees of freedom of the peers' noise for a model that has no noise estimate. There are few, because the noise
/// differs greatly between models. They decrease to zero as the model's own degrees of freedom increase to [`PEERS_FREEDOM_ENDS`].
pub const PEERS_FREEDOM: f64 = 2.0;
/// Degrees of freedom of a model's own noise estimate from which the model needs no peers.
pub const PEERS_FREEDOM_ENDS: f64 = 20.0;
/// Minimum length in hours of a series that can show hour and weekday effects: three quarters of four weeks.
pub const CYCLE_LEAST_HOURS: usize = 21 * 24;
/// Ratio of the variances between and within hours (or weekdays) above which a series has an hour (or weekday) effect. Independent
/// noise reaches it in fewer than 1 of 100 series.
pub const CYCLE_RATIO: f64 = 4.0;
/// Minimum number of peers with measured noise.
pub const PEERS_LEAST: usize = 3;

/// Hours in the window: a month, and the previous month for comparison.
pub const WINDOW_HOURS: u64 = 60 * 24;

/// Hours in each period, in order: the newest hour, a day, a week, a month.
pub const PERIOD_HOURS: [u64; 4] = [1, 24, 7 * 24, 30 * 24];
/// For each period, the hours that its history shows and the hours per point, which are coarser for longer histories.
pub const HISTORY: [(u64, u64); 4] = [(24, 1), (24, 3), (7 * 24, 6), (30 * 24, 24)];

/// Maximum age of the newest complete round for the period `latest`. An older round is not current.
pub const LATEST_REACH_HOURS: u64 = 24;

/// Lower limits of excellent, good and warning. A score below the last limit is critical.
pub const STATUS_FROM: [f64; 3] = [80.0, 65.0, 50.0];

/// A trend is reported only if chance would cause such a difference for any model in fewer than 1 of 100 refreshes…
pub const TREND_ALPHA: f64 = 0.01;
/// …and only if it is large enough to matter, in points. With a month of runs, even a tenth of a point is significant.
pub const TREND_MINIMUM: f64 = 0.5;
/// Probability that the minimum detectable effect in transparency responses is missed: it is detected in four of five
/// cases.
pub const TREND_MISSED: f64 = 0.2;

/// Allowance of the cumulative sums that detect changes of level, in long-run standard deviations of a round.
pub const CHANGE_ALLOWANCE: f64 = 0.5;
/// Distance from the median of the surrounding rounds beyond which a round is an outlier, as a multiple of the distance that nine
/// of ten rounds do not exceed. This is about four standard deviations.
pub const OUTLIER_DISTANCE: f64 = 2.5;
/// Number of standard errors added to the measured correlation of neighbouring rounds. For a month of daily rounds, the standard
/// error of the correlation is about 0.2.
pub const CHANGE_CORRELATION_ERRORS: f64 = 2.0;
/// Value of a sum above which a change is tested. It is low, because the test decides.
pub const CHANGE_SIGNALS: f64 = 3.0;
/// A level has changed if the p-value of the test, multiplied by the number of rounds in a month, is below this limit. The test
/// does not depend on other models, so that recorded incidents do not depend on them either.
pub const CHANGE_ALPHA: f64 = 0.001;
/// Minimum number of rounds in a new level. Three outliers are not a level.
pub const CHANGE_LEAST_ROUNDS: usize = 4;
/// Maximum number of rounds in a baseline, and in an unconfirmed change: a week.
pub const BASELINE_ROUNDS: RoundCount = RoundCount {
    hourly: 168,
    least: 24,
};
/// Minimum number of rounds before a change, and in the baseline of an outage.
pub const BASELINE_LEAST: RoundCount = RoundCount {
    hourly: 24,
    least: 16,
};

/// A level counts as held if the model had it for half of these hours before a change. Eight days are long enough that the end of
/// a three-day rise does not count as a fall: a change stays in force for three days.
pub const LEVEL_HELD_HOURS: u64 = 8 * 24;

/// Hours that are compared with the baseline if the level has not changed.
pub const CURRENT_HOURS: u64 = 24;
/// Hours in that baseline.
pub const BASELINE_HOURS: u64 = 7 * 24;
/// Corrected p-value below which an alert is raised for a model. Alerts page people and are tested 720 times a month,
/// so a limit of one in a hundred would be too high.
pub const ALERT_ALPHA: f64 = 0.001;
/// Minimum loss in points for an alert.
pub const ALERT_MINIMUM: f64 = 2.0;
/// Minimum loss in points for an alert to be critical.
pub const ALERT_CRITICAL: f64 = 8.0;
/// Maximum number of hours between the falls of several models for them to count as simultaneous, or one round if that is longer.
pub const ALERT_TOGETHER_HOURS: u64 = 6;

/// Corrected p-value below which a model is listed as degrading. Errors in a list matter less than errors in alerts.
pub const DEGRADATION_ALPHA: f64 = 0.05;
/// Minimum loss in points for a model to be listed.
pub const DEGRADATION_MINIMUM: f64 = 0.5;

/// Number of rounds whose mean shows the end of an incident. Six hours smooth out a single unusual round.
pub const INCIDENT_ROUNDS: RoundCount = RoundCount {
    hourly: 6,
    least: 2,
};
/// Number of rounds after the detection of a fall during which the fall can still become an incident, as its depth
/// becomes better known.
pub const INCIDENT_REACH: RoundCount = RoundCount {
    hourly: 24,
    least: 4,
};
/// Points below the baseline at which an incident begins.
pub const INCIDENT_OPENS: f64 = 5.0;
/// Points below the baseline at which an incident is resolved: half of the above, to avoid flapping.
pub const INCIDENT_RESOLVES: f64 = 2.5;
/// Minimum number of points below the baseline for an incident to be critical.
pub const INCIDENT_CRITICAL: f64 = 10.0;
/// Hours after which an ongoing incident is resolved, because the new level has become normal.
pub const INCIDENT_LONGEST_HOURS: u64 = 7 * 24;
/// Number of consecutive hours with only failed runs that count as an outage.
pub const OUTAGE_HOURS: u64 = 3;
/// Hours after which an outage is critical.
pub const OUTAGE_CRITICAL_HOURS: u64 = 6;

/// Minimum availability (the share of trials that did not fail) for a provider to be operational, and to be degraded. Below the second value, it has an outage.
pub const PROVIDER_AVAILABILITY: [f64; 2] = [0.95, 0.50];
/// Weights of availability, score stability and absence of incidents in the reliability.
pub const RELIABILITY_WEIGHTS: [f64; 3] = [0.5, 0.3, 0.2];
/// Standard deviation between rounds, in points, at which the stability is zero.
pub const UNSTEADY_POINTS: f64 = 10.0;

/// Tolerance of the Page-Hinkley test (delta), in long-run standard deviations of the model's rounds: half of the
/// smallest change to detect, which is one standard deviation.
pub const DRIFT_DELTA: f64 = 0.5;
/// Threshold of the Page-Hinkley test (lambda), in the same unit as the tolerance. The test restarts when its statistic exceeds this threshold.
pub const DRIFT_LAMBDA: f64 = 10.0;
/// Minimum number of rounds before the test restarts and before a model can be called stable: two days, so that the
/// running mean is meaningful.
pub const DRIFT_LEAST: RoundCount = RoundCount {
    hourly: 48,
    least: 16,
};
/// Number of rounds for which a change of level stays in force: three days, so that a daily check does not miss it.
pub const DRIFT_STANDS: RoundCount = RoundCount {
    hourly: 72,
    least: 3,
};
/// Minimum noise in points: the resolution of a round.
pub const DRIFT_NOISE_LEAST: f64 = RESOLUTION;
/// Corrected p-value below which a signal is reported as drift.
pub const DRIFT_ALPHA: f64 = 0.01;
/// Hours covered by the drift test.
pub const DRIFT_HOURS: u64 = 30 * 24;
/// Hours covered by the trend of an axis.
pub const SLOPE_HOURS: u64 = 7 * 24;
/// Minimum number of rounds for the trend of an axis.
pub const SLOPE_LEAST: RoundCount = RoundCount {
    hourly: 24,
    least: 5,
};
/// Slope in points per day below which an axis is stable, even if the slope is significant.
pub const SLOPE_MINIMUM: f64 = 0.2;
/// Hours after the end of a degradation in which a model counts as recovering.
pub const RECOVERY_HOURS: u64 = 48;

/// Minimum score for a recommendation by price or speed: a cheap model with wrong answers is no bargain.
pub const RECOMMENDED_FROM: f64 = 50.0;
/// Number of alternatives listed in a recommendation.
pub const ALTERNATIVES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;

    /// The version, and the SHA-256 of every constant in this file, without comments.
    const RECORDED: (&str, &str) = (
        "5.1",
        "252e72d1c4873f760a5162b6fca0cab9bc7775f4463c1fc5c4c3672b6bb05cb4",
    );

    /// `NAME=value` of each constant, in order, independent of formatting.
    fn constants() -> Vec<String> {
        let source = include_str!("method.rs")
            .split("#[cfg(test)]")
            .next()
            .unwrap();
        let code: Vec<&str> = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect();
        let code = code
            .join(" ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        // Array types contain a semicolon too, so the last one ends the constant.
        let statements = code.split("const ").skip(1);
        statements
            .filter_map(|statement| Some(statement.rsplit_once(';')?.0))
            .map(|constant| {
                [",]", ",)", ",}"]
                    .iter()
                    .fold(constant.replace(' ', ""), |text, end| {
                        text.replace(end, end.trim_start_matches(','))
                    })
            })
            .collect()
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
