//! Published numbers. They are rounded only once, so that all numbers derived from a published number are consistent
//! with it.

use serde::Serialize;

use scoregate_base::words;

use super::{
    method,
    score_noise::{EdgeReach, UncertainScore},
    statistics::Estimate,
};

/// Differences in points below this limit are rounding errors.
const NEGLIGIBLE: f64 = 1e-9;

/// Distance from a half, in published steps, within which a number is rounded like a half.
const NEARLY_HALF: f64 = 1e-7;

/// A published score: `lower <= score <= upper`, all from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// The score.
    pub score: f64,
    /// The bounds of the interval, rounded outwards; `None` if the uncertainty is unknown.
    pub bounds: Option<(f64, f64)>,
}

/// Direction of movement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// Higher than before.
    Up,
    /// Lower than before.
    Down,
    /// No significant change.
    Stable,
    /// There is nothing to compare with.
    #[default]
    Unavailable,
}

/// Health label of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// 80 or more.
    Excellent,
    /// 65 or more.
    Good,
    /// 50 or more.
    Warning,
    /// Less than 50.
    Critical,
    /// There is no score.
    Unavailable,
}

words! {
    pub(super) enum Severity: word {
        /// Needs attention.
        Warning = "warning",
        /// Worth paging an operator.
        Critical = "critical",
    }
}

impl Score {
    /// The published score.
    pub fn of(uncertain: &UncertainScore) -> Self {
        let UncertainScore {
            estimate,
            reach,
            edge,
            ..
        } = uncertain;
        Self::with(estimate.mean, *reach, *edge)
    }

    /// The score used for ranking recommendations: the lower bound. Scores without bounds rank after all scores with
    /// bounds.
    pub fn supported(&self) -> f64 {
        self.bounds
            .map_or_else(|| self.score - 100.0, |(lower, _)| lower)
    }

    /// The published score for a mean whose interval has the half-width `reach`, before `edge` is applied.
    pub fn with(mean: f64, reach: Option<f64>, edge: EdgeReach) -> Self {
        let interval = reach.map(|reach| edge.interval(mean, reach));
        let bounds = interval.map(|(lower, upper)| outwards(lower, upper));
        Self {
            score: on_scale(points(mean)),
            bounds: bounds.map(|(lower, upper)| (on_scale(lower), on_scale(upper))),
        }
    }
}

fn on_scale(points: f64) -> f64 {
    points.clamp(0.0, 100.0)
}

impl Trend {
    /// The direction from `before` to `now`. `chance` is the corrected p-value of the difference, which must be
    /// significant and large enough to matter.
    pub fn between(before: Estimate, now: Estimate, chance: f64) -> Self {
        let gain = now.mean - before.mean;
        Self::of(
            gain,
            gain.abs() >= method::TREND_MINIMUM && chance < method::TREND_ALPHA,
        )
    }

    /// The direction of a gain, if it is significant.
    pub fn of(gain: f64, is_significant: bool) -> Self {
        if !is_significant {
            Self::Stable
        } else if gain > 0.0 {
            Self::Up
        } else {
            Self::Down
        }
    }
}

impl Status {
    /// The label of a score.
    pub fn of(score: Option<Score>) -> Self {
        let [excellent, good, warning] = method::STATUS_FROM;
        match score.map(|score| score.score) {
            None => Self::Unavailable,
            Some(score) if score >= excellent => Self::Excellent,
            Some(score) if score >= good => Self::Good,
            Some(score) if score >= warning => Self::Warning,
            Some(_) => Self::Critical,
        }
    }
}

impl Severity {
    /// Critical if `amount` is at least `critical`.
    pub(super) fn from(amount: f64, critical: f64) -> Self {
        if amount >= critical {
            Self::Critical
        } else {
            Self::Warning
        }
    }
}

/// The published bounds of an interval: rounded outwards.
pub fn outwards(lower: f64, upper: f64) -> (f64, f64) {
    let [steps, _] = method::PUBLISHED_STEPS;
    (
        ((lower + NEGLIGIBLE) * steps).floor() / steps + 0.0,
        ((upper - NEGLIGIBLE) * steps).ceil() / steps + 0.0,
    )
}

/// A number of points, rounded for publication.
pub fn points(number: f64) -> f64 {
    let [steps, _] = method::PUBLISHED_STEPS;
    rounded(number, steps)
}

/// The published value of a share from 0 to 1.
pub fn share(number: f64) -> f64 {
    let [_, steps] = method::PUBLISHED_STEPS;
    rounded(number, steps)
}

/// The published value of a p-value: it has a fixed number of significant digits and is never zero.
pub fn chance(number: f64) -> f64 {
    let digits = format!(
        "{:.*e}",
        method::CHANCE_DIGITS,
        number.max(method::CHANCE_LEAST)
    );
    digits.parse().expect("a formatted number can be parsed")
}

/// The published value of an amount in US dollars. A trial may cost far less than a cent.
pub fn dollars(number: f64) -> f64 {
    rounded(number, 1e6)
}

fn rounded(number: f64, steps: f64) -> f64 {
    // Halves are rounded away from zero, even if the arithmetic left them slightly too small. Adding zero turns a
    // negative zero into zero.
    (number.abs() * steps + 0.5 + NEARLY_HALF)
        .floor()
        .copysign(number)
        / steps
        + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;
    use crate::student::TailQuantiles;
    use proptest::prelude::*;

    #[test]
    fn a_fall_is_reported_only_if_it_is_significant_and_large() {
        let at = |mean| Estimate {
            mean,
            spread: Some(Spread {
                variance: 0.01,
                df: 50.0,
            }),
        };
        assert_eq!(Trend::between(at(70.0), at(69.0), 0.001), Trend::Down);
        assert_eq!(Trend::between(at(69.0), at(70.0), 0.001), Trend::Up);
        assert_eq!(Trend::between(at(70.0), at(69.0), 0.02), Trend::Stable);
        assert_eq!(Trend::between(at(70.0), at(69.8), 1e-9), Trend::Stable);
    }

    #[test]
    fn a_p_value_has_three_digits_and_is_never_zero() {
        for (number, published) in [
            (0.012_345, 0.0123),
            (1.0, 1.0),
            (4.567_89e-20, 4.57e-20),
            (0.0, method::CHANCE_LEAST),
            (1e-310, method::CHANCE_LEAST),
        ] {
            assert!(
                (chance(number) / published - 1.0).abs() < 1e-12,
                "{number:e}"
            );
        }
    }

    #[test]
    fn no_number_is_published_as_negative_zero() {
        assert_eq!(points(-0.001).to_string(), "0");
    }

    proptest! {
        #[test]
        fn the_published_interval_holds_the_published_score(mean in 0.0..100.0_f64, variance in 0.0..400.0_f64, df in 1.0..500.0_f64) {
            let estimate = Estimate { mean, spread: Some(Spread { variance, df }) };
            let reach = estimate.reach(&TailQuantiles::of(method::INTERVAL_TAIL));
            let score = Score::with(mean, reach, EdgeReach::default());
            let (lower, upper) = score.bounds.unwrap();
            prop_assert!(0.0 <= lower && lower <= score.score && score.score <= upper && upper <= 100.0, "{score:?}");
        }
    }
}
