//! The two-sided Page-Hinkley test, as published and as in river (alpha 1): cumulative sums that grow while samples
//! are above or below their running mean.
//!
//! It is a published statistic only: `levels` finds changes. Units and constants are the caller's.

use serde::Serialize;

/// The parameters of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageHinkleyParameters {
    /// Minimum number of samples before a signal.
    pub minimum: u32,
    /// Tolerated deviation from the mean (delta).
    pub delta: f64,
    /// Threshold of the statistic (lambda).
    pub lambda: f64,
}

/// The direction of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShiftDirection {
    /// It rose.
    Up,
    /// It fell.
    Down,
}

/// The test and its state. Samples are added oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageHinkley {
    rule: PageHinkleyParameters,
    samples: u32,
    mean: f64,
    rise: CumulativeSum,
    fall: CumulativeSum,
    signalled: Option<ShiftDirection>,
}

/// One cumulative sum, and its extreme.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CumulativeSum {
    total: f64,
    extreme: f64,
}

impl PageHinkley {
    /// A test without samples.
    pub(super) fn new(rule: PageHinkleyParameters) -> Self {
        Self {
            rule,
            samples: 0,
            mean: 0.0,
            rise: CumulativeSum::default(),
            fall: CumulativeSum::default(),
            signalled: None,
        }
    }

    /// Adds a sample; returns the direction if there is a signal. The next sample after a signal restarts the test.
    pub(super) fn feed(&mut self, sample: f64) -> Option<ShiftDirection> {
        if self.signalled.is_some() {
            *self = Self::new(self.rule);
        }
        self.samples += 1;
        self.mean += (sample - self.mean) / f64::from(self.samples);
        let deviation = sample - self.mean;
        self.rise.total += deviation - self.rule.delta;
        self.fall.total += deviation + self.rule.delta;
        if self.samples == 1 || self.rise.total < self.rise.extreme {
            self.rise.extreme = self.rise.total;
        }
        if self.samples == 1 || self.fall.total > self.fall.extreme {
            self.fall.extreme = self.fall.total;
        }
        let (direction, statistic) = self.larger();
        let signals = self.samples >= self.rule.minimum && statistic > self.rule.lambda;
        self.signalled = signals.then_some(direction);
        self.signalled
    }

    /// The sum for a rise above its minimum, and the sum for a fall below its maximum.
    pub(super) fn statistics(&self) -> [f64; 2] {
        [self.rise.total - self.rise.extreme, self.fall.extreme - self.fall.total]
    }

    /// The larger statistic, and its direction.
    pub(super) fn larger(&self) -> (ShiftDirection, f64) {
        let [rise, fall] = self.statistics();
        if rise > fall { (ShiftDirection::Up, rise) } else { (ShiftDirection::Down, fall) }
    }

    /// The running mean that the next sample is compared with; `None` before the first.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.samples > 0 && self.signalled.is_none()).then_some(self.mean)
    }

    /// Samples since the last restart.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PageHinkleyParameters = PageHinkleyParameters { minimum: 48, delta: 0.5, lambda: 20.0 };

    fn fed(samples: impl IntoIterator<Item = f64>) -> (PageHinkley, Vec<(usize, ShiftDirection)>) {
        let mut test = PageHinkley::new(RULE);
        let mut signals = Vec::new();
        for (index, sample) in samples.into_iter().enumerate() {
            signals.extend(test.feed(sample).map(|direction| (index, direction)));
        }
        (test, signals)
    }

    #[test]
    fn steady_series_raises_no_signal() {
        let wobble = (0..500_u32).map(|n| if n % 2 == 0 { 70.0 } else { 72.0 });
        assert_eq!(fed(wobble).1, []);
    }

    #[test]
    fn statistic_matches_a_manual_computation() {
        // Running means 10, 9, 8; deviations 0, -1, -2. The sum for a fall goes 0.5, 0, -1.5 and its maximum is 0.5.
        let (test, _) = fed([10.0, 8.0, 6.0]);
        assert_eq!(test.larger(), (ShiftDirection::Down, 2.0));
        assert_eq!(test.samples(), 3);
    }

    #[test]
    fn a_step_is_signalled_with_direction_and_the_next_sample_restarts_the_test() {
        for (level, direction) in [(64.0, ShiftDirection::Down), (76.0, ShiftDirection::Up)] {
            let steady = || std::iter::repeat_n(70.0, 100);
            let (test, signals) = fed(steady().chain(std::iter::repeat_n(level, 4)));
            assert_eq!(signals, [(103, direction)]);
            assert_eq!(test.samples(), 104);
            let (later, signals) = fed(steady().chain(std::iter::repeat_n(level, 60)));
            assert_eq!((later.samples(), signals.len()), (56, 1));
        }
    }
}
