//! The two-sided Page-Hinkley test in its published form (alpha 1): cumulative sums of the deviations of samples from their
//! running mean.
//!
//! It is published only as a statistic; `levels` detects changes. The caller chooses the unit of the samples.

use crate::method;

/// The test and its state. Samples are added in order, oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageHinkley {
    /// Minimum number of samples for a signal.
    minimum: u32,
    /// Number of samples since the last restart.
    pub samples: u32,
    mean: f64,
    /// The height of the rising sum above its minimum, and the depth of the falling sum below its maximum.
    statistics: [f64; 2],
}

impl PageHinkley {
    /// A test without samples.
    pub fn new(minimum: u32) -> Self {
        Self {
            minimum,
            samples: 0,
            mean: 0.0,
            statistics: [0.0; 2],
        }
    }

    /// Adds a sample. The first sample after a signal restarts the test.
    pub fn feed(&mut self, sample: f64) {
        if self.has_signalled() {
            *self = Self::new(self.minimum);
        }
        self.samples += 1;
        self.mean += (sample - self.mean) / f64::from(self.samples);
        let deviation = sample - self.mean;
        let [rise, fall] = self.statistics;
        self.statistics =
            [rise + deviation, fall - deviation].map(|sum| (sum - method::DRIFT_DELTA).max(0.0));
    }

    /// The larger of the two statistics.
    pub fn larger(&self) -> f64 {
        let [rise, fall] = self.statistics;
        rise.max(fall)
    }

    /// The running mean that the next sample is compared with; `None` if there are no samples yet.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0 && !self.has_signalled()).then_some(self.mean)
    }

    fn has_signalled(&self) -> bool {
        self.samples >= self.minimum && self.larger() > method::DRIFT_LAMBDA
    }
}
