//! How numbers are published: rounded once, so that whatever is derived from a published number agrees with it.
//!
//! Not for: how they are computed.

use serde::Serialize;

use super::method;
use super::statistics::{Estimate, chance_of_change};

/// A score as published: `lower <= score <= upper`, all from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Score {
    /// The score.
    pub score: f64,
    /// The bounds of its interval, rounded outwards; absent where a single sample cannot tell.
    pub bounds: Option<(f64, f64)>,
}

/// Direction of movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Trend {
    /// Higher than before.
    Up,
    /// Lower than before.
    Down,
    /// Not shown to have moved.
    Stable,
    /// Nothing to tell it from.
    Unavailable,
}

/// Health label of a score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// From 80.
    Excellent,
    /// From 65.
    Good,
    /// From 50.
    Warning,
    /// Below.
    Critical,
    /// No score.
    Unavailable,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// Worth a look.
    Warning,
    /// Worth waking somebody.
    Critical,
}

impl Score {
    /// The score that an estimate is published as.
    pub(super) fn of(estimate: &Estimate) -> Self {
        let within = |points: f64| points.clamp(0.0, 100.0);
        let outwards = |(lower, upper): (f64, f64)| {
            (within((lower * 100.0).floor() / 100.0), within((upper * 100.0).ceil() / 100.0))
        };
        Self { score: within(points(estimate.mean)), bounds: estimate.interval().map(outwards) }
    }

    /// Its lower bound.
    pub(super) fn lower(&self) -> Option<f64> {
        self.bounds.map(|(lower, _)| lower)
    }

    /// Its upper bound.
    pub(super) fn upper(&self) -> Option<f64> {
        self.bounds.map(|(_, upper)| upper)
    }
}

impl Trend {
    /// The direction from `before` to `now`: told if it is both significant and large enough to notice.
    pub(super) fn between(before: Option<Estimate>, now: Option<Estimate>) -> Self {
        let Some(now) = now else {
            return Self::Unavailable;
        };
        let Some(before) = before else {
            return Self::Stable;
        };
        let gain = now.mean - before.mean;
        let told = gain.abs() >= method::TREND_MINIMUM && chance_of_change(before, now) < method::TREND_ALPHA;
        Self::of(gain, told)
    }

    /// The direction of a gain, if it is to be told.
    pub(super) fn of(gain: f64, told: bool) -> Self {
        if !told {
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
    pub(super) fn of(score: Option<Score>) -> Self {
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
    /// Critical from a limit on.
    pub(super) fn from(amount: f64, critical: f64) -> Self {
        if amount >= critical { Self::Critical } else { Self::Warning }
    }
}

/// Points, to two decimals.
pub(super) fn points(number: f64) -> f64 {
    rounded(number, 100.0)
}

/// A share from 0 to 1, to four decimals.
pub(super) fn share(number: f64) -> f64 {
    rounded(number, 10_000.0)
}

/// A chance, to six decimals.
pub(super) fn chance(number: f64) -> f64 {
    rounded(number, 1_000_000.0)
}

fn rounded(number: f64, steps: f64) -> f64 {
    // Adding zero turns a negative zero into zero.
    (number * steps).round() / steps + 0.0
}

#[cfg(test)]
mod tests {
    use super::super::statistics::Spread;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fall_is_told_only_if_it_is_sure_and_large() {
        let at = |mean, variance| Some(Estimate { mean, spread: Some(Spread { variance, df: 50.0 }) });
        assert_eq!(Trend::between(at(70.0, 0.01), at(69.0, 0.01)), Trend::Down);
        assert_eq!(Trend::between(at(69.0, 0.01), at(70.0, 0.01)), Trend::Up);
        assert_eq!(Trend::between(at(70.0, 4.0), at(69.0, 4.0)), Trend::Stable);
        assert_eq!(Trend::between(at(70.0, 1e-6), at(69.8, 1e-6)), Trend::Stable);
        assert_eq!(Trend::between(None, at(69.0, 0.01)), Trend::Stable);
        assert_eq!(Trend::between(at(70.0, 0.01), None), Trend::Unavailable);
    }

    #[test]
    fn no_number_is_published_as_negative_zero() {
        assert_eq!(points(-0.001).to_string(), "0");
    }

    proptest! {
        #[test]
        fn the_published_interval_holds_the_published_score(mean in 0.0..100.0_f64, variance in 0.0..400.0_f64, df in 1.0..500.0_f64) {
            let score = Score::of(&Estimate { mean, spread: Some(Spread { variance, df }) });
            let (lower, upper) = score.bounds.unwrap();
            prop_assert!(0.0 <= lower && lower <= score.score && score.score <= upper && upper <= 100.0, "{score:?}");
        }
    }
}
