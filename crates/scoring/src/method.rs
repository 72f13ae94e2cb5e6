//! The method: every constant that a score depends on, in one place, each with its reason.
//!
//! Transparency responses name [`METHOD_VERSION`], which must change with any number here, so that two scores of one
//! version are comparable.
//!
//! Performance as measured with 1,000 series, among 150 models whose rounds vary by 1.5 points about their level,
//! independently. With daily rounds, 96 % of the falls by 5 points were found by drift and by an alert, 92 % with a fifth
//! of the rounds missing, after 7 rounds at the median and 17 at the 95th percentile; with hourly rounds all, after 5 and 8.
//! Quiet series had at most 0.03 drifts and 0.02 alerts a month with correlations up to 0.8. The bench `detection` prints
//! the whole table; tests verify a part of it.
//!
//! The 95 % intervals are for the level of a model in the long run. With a month of history they contained it in 93 to
//! 100 % of 160 scores a line, up to correlations of 0.95, but if the noise had tripled in the last three daily rounds,
//! in 61 % (91 % of `7d`). For models with 3 to 6 rounds, noisier than their peers, it was 80 to 90 % of 40 scores. The
//! bench `coverage` prints the table.
//!
//! The arithmetic is in `statistics` and `student`. The numbers of the simulator are not part of the method.

use super::suite::{Axis, Suite};

/// A number of rounds for hourly ones. With longer rounds it is as many times smaller, down to a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundCount {
    /// With rounds of one hour.
    pub hourly: usize,
    /// The minimum.
    pub least: usize,
}

/// The version of the method with the default suite table; it changes with every constant below.
pub const METHOD_VERSION: &str = "5.1";

/// Weights of the suites in the default table: code is what most callers choose a model for, tools least.
pub(super) const SUITE_WEIGHTS: [(Suite, f64); 3] = [
    (Suite::CODING, 0.40),
    (Suite::REASONING, 0.35),
    (Suite::TOOLING, 0.25),
];

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
/// Minimum number of blocks in the rounds.
pub(super) const NOISE_BLOCKS: usize = 8;
/// Minimum number of rounds whose noise counts as that of a peer.
pub(super) const NOISE_LEAST: usize = 8;
/// Maximum rounds of a block. Longer means have the variance of this one, in proportion.
pub(super) const NOISE_BLOCK: usize = 24;
/// Rounds of the short blocks that show the correlation of neighbours.
pub(super) const NOISE_SHORT_BLOCK: usize = 6;
/// Maximum correlation of neighbours.
pub(super) const NOISE_CORRELATION_MOST: f64 = 0.98;
/// Minimum number of the newest rounds that show whether the noise has changed: fewer are too few to see it.
pub(super) const NOISE_LATELY: usize = 24;
/// Limit of a deviation in standard deviations: an outlier must not signal alone.
pub(super) const NOISE_LIMIT: f64 = 3.0;
/// Degrees of freedom of a noise: from two rounds, and the most.
pub(super) const NOISE_FREEDOM_LEAST: f64 = 1.0;
pub(super) const NOISE_FREEDOM_MOST: f64 = 100.0;
/// Degrees of freedom of the noise of the peers for a model without one: models differ by factors. They decrease to none…
pub(super) const PEERS_FREEDOM: f64 = 2.0;
/// …for a model with so many of its own: it needs no peers.
pub(super) const PEERS_FREEDOM_ENDS: f64 = 20.0;
/// Minimum hours of rounds that show effects of hour and weekday: three quarters of four weeks.
pub(super) const CYCLE_LEAST_HOURS: usize = 21 * 24;
/// The quotient of the variances between and within hours, or weekdays, above which a series shows their effects.
/// Independent noise reaches it in fewer than 1 of 100 series.
pub(super) const CYCLE_RATIO: f64 = 4.0;
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
/// The probability that a trend misses the minimum detectable effect of transparency: found in four of five cases.
pub(super) const TREND_MISSED: f64 = 0.2;

/// Tolerance of the cumulative sums that show changes of level, in standard deviations of a round in the long run.
pub(super) const CHANGE_ALLOWANCE: f64 = 0.5;
/// Distance from the median of the rounds around it beyond which a round is an outlier: a multiple of that within which
/// nine of ten rounds are. Four standard deviations.
pub(super) const OUTLIER_DISTANCE: f64 = 2.5;
/// Standard errors by which the correlation of neighbouring rounds may exceed the measured one: a month of days shows
/// it to 0.2 only.
pub(super) const CHANGE_CORRELATION_ERRORS: f64 = 2.0;
/// The sum from which a change is tested: low, since the test decides.
pub(super) const CHANGE_SIGNALS: f64 = 3.0;
/// p-value of a test, multiplied by the rounds of a month, below which a level has changed. It does not depend on other
/// models, so that recorded incidents do not either.
pub(super) const CHANGE_ALPHA: f64 = 0.001;
/// Minimum number of rounds of a new level: three outliers are not one.
pub(super) const CHANGE_LEAST_ROUNDS: usize = 4;
/// Maximum rounds of a baseline, and of a change that is not confirmed: a week.
pub(super) const BASELINE_ROUNDS: RoundCount = RoundCount {
    hourly: 168,
    least: 24,
};
/// Minimum number of rounds before a change, and in the baseline of an outage.
pub(super) const BASELINE_LEAST: RoundCount = RoundCount {
    hourly: 24,
    least: 16,
};

/// The days before a change, of which a model has spent half at a held level: eight, so that the end of a rise of three
/// days, in which it is in force, is no fall.
pub(super) const LEVEL_HELD_HOURS: u64 = 8 * 24;

/// Hours compared with the baseline, if the level has not changed.
pub(super) const CURRENT_HOURS: u64 = 24;
/// Hours of that baseline.
pub(super) const BASELINE_HOURS: u64 = 7 * 24;
/// Corrected p-value below which a model is reported below its baseline. An alert pages people, and is tested 720
/// times a month, so one in a hundred would be too many.
pub(super) const ALERT_ALPHA: f64 = 0.001;
/// Points below the baseline under which there is no alert.
pub(super) const ALERT_MINIMUM: f64 = 2.0;
/// Points below the baseline from which an alert is critical.
pub(super) const ALERT_CRITICAL: f64 = 8.0;
/// Hours between the falls of models, or one round, within which they fell together.
pub(super) const ALERT_TOGETHER_HOURS: u64 = 6;

/// Corrected p-value below which a model is listed as degrading. A list may err more often than an alert.
pub(super) const DEGRADATION_ALPHA: f64 = 0.05;
/// Minimum loss in points for a model to be listed.
pub(super) const DEGRADATION_MINIMUM: f64 = 0.5;

/// Rounds whose mean shows the end of an incident: six hours smooth out a single odd round.
pub(super) const INCIDENT_ROUNDS: RoundCount = RoundCount {
    hourly: 6,
    least: 2,
};
/// Rounds after a fall was found within which it may become an incident: its depth is known better then.
pub(super) const INCIDENT_REACH: RoundCount = RoundCount {
    hourly: 24,
    least: 4,
};
/// Points below the baseline at which an incident opens.
pub(super) const INCIDENT_OPENS: f64 = 5.0;
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
/// Threshold of the Page-Hinkley test (lambda), in the same unit, above which it restarts.
pub(super) const DRIFT_LAMBDA: f64 = 10.0;
/// Minimum number of rounds before it restarts, and of a model that can be called stable: two days, so that the running mean is meaningful.
pub(super) const DRIFT_LEAST: RoundCount = RoundCount {
    hourly: 48,
    least: 16,
};
/// Rounds that a change of level stays in force: three days, so that a daily look does not miss it.
pub(super) const DRIFT_STANDS: RoundCount = RoundCount {
    hourly: 72,
    least: 3,
};
/// Minimum noise in points: the resolution of a round.
pub(super) const DRIFT_NOISE_LEAST: f64 = RESOLUTION;
/// Corrected p-value below which a signal is reported as a change.
pub(super) const DRIFT_ALPHA: f64 = 0.01;
/// Hours covered by the drift test.
pub(super) const DRIFT_HOURS: u64 = 30 * 24;
/// Hours covered by the trend of an axis.
pub(super) const SLOPE_HOURS: u64 = 7 * 24;
/// Minimum number of rounds for such a fit.
pub(super) const SLOPE_LEAST: RoundCount = RoundCount {
    hourly: 24,
    least: 5,
};
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
        // Array types contain a semicolon too: the last one ends the constant.
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
