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
