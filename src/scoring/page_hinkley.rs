//! The Page-Hinkley test on both sides, as published and as river has it (alpha 1): sums that grow while samples lie above
//! or below their running mean.
//!
//! Cheap, a few numbers of memory, and it finds slow drifts that a comparison of two days misses. A signal of it is no
//! proof: `drift.rs` tests what it points at. Not for: units and constants, which the caller brings.

use serde::Serialize;

/// How the test is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageHinkleyParameters {
    /// Samples needed before anything is signalled.
    pub minimum: u32,
    /// By how much a sample may differ from the mean without weighing (delta).
    pub delta: f64,
    /// The statistic above which there is a signal (lambda).
    pub lambda: f64,
}

/// Which way a level changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ShiftDirection {
    /// It rose.
    Up,
    /// It fell.
    Down,
}

/// The test and its state. Feed it samples, oldest first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PageHinkley {
    rule: PageHinkleyParameters,
    samples: u32,
    mean: f64,
    rise: CumulativeSum,
    fall: CumulativeSum,
    signalled: Option<ShiftDirection>,
}

/// One of the sums, and where it was at its extreme.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CumulativeSum {
    total: f64,
    extreme: f64,
    /// Samples up to the extreme, that one included: the level changed after them, if it did.
    place: u32,
}

impl PageHinkley {
    /// A test that has seen nothing.
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

    /// Takes one more sample, and says whether it brings a signal. After a signal the next sample begins anew.
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
            self.rise.marked(self.samples);
        }
        if self.samples == 1 || self.fall.total > self.fall.extreme {
            self.fall.marked(self.samples);
        }
        let (direction, statistic) = self.larger();
        let signals = self.samples >= self.rule.minimum && statistic > self.rule.lambda;
        self.signalled = signals.then_some(direction);
        self.signalled
    }

    /// How far the sum for a rise stands above its lowest, and the sum for a fall below its highest.
    pub(super) fn statistics(&self) -> [f64; 2] {
        [self.rise.total - self.rise.extreme, self.fall.extreme - self.fall.total]
    }

    /// The larger statistic, and its direction.
    pub(super) fn larger(&self) -> (ShiftDirection, f64) {
        let [rise, fall] = self.statistics();
        if rise > fall { (ShiftDirection::Up, rise) } else { (ShiftDirection::Down, fall) }
    }

    /// Samples since it last began.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// How many of them came before the change, if there was one in that direction.
    pub(super) fn before(&self, direction: ShiftDirection) -> u32 {
        match direction {
            ShiftDirection::Up => self.rise.place,
            ShiftDirection::Down => self.fall.place,
        }
    }
}

impl CumulativeSum {
    fn marked(&mut self, place: u32) {
        self.extreme = self.total;
        self.place = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: PageHinkleyParameters = PageHinkleyParameters { minimum: 48, delta: 0.5, lambda: 20.0 };

    fn fed(samples: impl IntoIterator<Item = f64>) -> (PageHinkley, Vec<(usize, ShiftDirection)>) {
        let mut test = PageHinkley::new(RULE);
        let mut signals = Vec::new();
        for (place, sample) in samples.into_iter().enumerate() {
            signals.extend(test.feed(sample).map(|direction| (place, direction)));
        }
        (test, signals)
    }

    #[test]
    fn a_steady_series_signals_nothing() {
        let wobble = (0..500_u32).map(|n| if n % 2 == 0 { 70.0 } else { 72.0 });
        assert_eq!(fed(wobble).1, []);
    }

    #[test]
    fn the_statistic_is_the_one_computed_by_hand() {
        // Running means 10, 9, 8; deviations 0, -1, -2. The sum for a fall goes 0.5, 0, -1.5 and its highest is 0.5.
        let (test, _) = fed([10.0, 8.0, 6.0]);
        assert_eq!(test.larger(), (ShiftDirection::Down, 2.0));
        assert_eq!((test.before(ShiftDirection::Down), test.samples()), (1, 3));
    }

    #[test]
    fn a_step_signals_its_direction_and_place_and_the_next_sample_begins_anew() {
        for (level, direction) in [(64.0, ShiftDirection::Down), (76.0, ShiftDirection::Up)] {
            let steady = || std::iter::repeat_n(70.0, 100);
            let (test, signals) = fed(steady().chain(std::iter::repeat_n(level, 4)));
            assert_eq!(signals, [(103, direction)]);
            assert_eq!((test.samples(), test.before(direction)), (104, 100));
            let (later, signals) = fed(steady().chain(std::iter::repeat_n(level, 60)));
            assert_eq!((later.samples(), signals.len()), (56, 1));
        }
    }
}
