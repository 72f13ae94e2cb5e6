//! The two-sided Page-Hinkley test, as published and as in river (alpha 1): cumulative sums that grow while samples
//! are above or below their running mean.
//!
//! It is a published statistic only: `levels` finds changes. Units and constants are the caller's.

/// The parameters of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageHinkleyParameters {
    /// Minimum number of samples before a signal.
    pub minimum: u32,
    /// Tolerated deviation from the mean (delta).
    pub delta: f64,
    /// Threshold of the statistic (lambda).
    pub lambda: f64,
}

/// The test and its state. Samples are added oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageHinkley {
    rule: PageHinkleyParameters,
    /// Samples since the last restart.
    pub samples: u32,
    mean: f64,
    /// The sum for a rise above its minimum, and the sum for a fall below its maximum.
    pub statistics: [f64; 2],
    has_signalled: bool,
}

impl PageHinkley {
    /// A test without samples.
    pub(crate) fn new(rule: PageHinkleyParameters) -> Self {
        Self {
            rule,
            samples: 0,
            mean: 0.0,
            statistics: [0.0; 2],
            has_signalled: false,
        }
    }

    /// Adds a sample; returns whether there is a signal. The next sample after a signal restarts the test.
    pub(crate) fn feed(&mut self, sample: f64) -> bool {
        if self.has_signalled {
            *self = Self::new(self.rule);
        }
        self.samples += 1;
        self.mean += (sample - self.mean) / f64::from(self.samples);
        let deviation = sample - self.mean;
        let [rise, fall] = self.statistics;
        self.statistics =
            [rise + deviation, fall - deviation].map(|sum| (sum - self.rule.delta).max(0.0));
        self.has_signalled = self.samples >= self.rule.minimum && self.larger() > self.rule.lambda;
        self.has_signalled
    }

    /// The larger statistic.
    pub(crate) fn larger(&self) -> f64 {
        let [rise, fall] = self.statistics;
        rise.max(fall)
    }

    /// The running mean that the next sample is compared with; `None` before the first.
    pub(crate) fn mean(&self) -> Option<f64> {
        (self.samples > 0 && !self.has_signalled).then_some(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PageHinkleyParameters = PageHinkleyParameters {
        minimum: 48,
        delta: 0.5,
        lambda: 20.0,
    };

    fn fed(samples: impl IntoIterator<Item = f64>) -> (PageHinkley, Vec<usize>) {
        let mut test = PageHinkley::new(RULE);
        let mut signals = Vec::new();
        for (index, sample) in samples.into_iter().enumerate() {
            signals.extend(test.feed(sample).then_some(index));
        }
        (test, signals)
    }

    #[test]
    fn steady_series_raises_no_signal() {
        let wobble = (0..500_u32).map(|n| if n % 2 == 0 { 70.0 } else { 72.0 });
        assert_eq!(fed(wobble).1, [0; 0]);
    }

    #[test]
    fn statistic_matches_a_manual_computation() {
        // Running means 10, 9, 8; deviations 0, -1, -2. The sum for a fall goes 0.5, 0, -1.5 and its maximum is 0.5.
        let (test, _) = fed([10.0, 8.0, 6.0]);
        assert_eq!((test.statistics, test.samples), ([0.0, 2.0], 3));
    }

    #[test]
    fn a_step_is_signalled_and_the_next_sample_restarts_the_test() {
        for level in [64.0, 76.0] {
            let steady = || std::iter::repeat_n(70.0, 100);
            let (test, signals) = fed(steady().chain(std::iter::repeat_n(level, 4)));
            assert_eq!(signals, [103]);
            assert_eq!(test.samples, 104);
            let (later, signals) = fed(steady().chain(std::iter::repeat_n(level, 60)));
            assert_eq!((later.samples, signals.len()), (56, 1));
        }
    }
}
