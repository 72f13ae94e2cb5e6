//! The Page-Hinkley test for a fall: a sum that grows while rounds lie under their running mean.
//!
//! Cheap, one number of memory, and it finds slow drifts that a comparison of two days misses. Not for: saying how bad
//! a fall is (the alerts do).

use super::method;

/// The test and its state. Feed it the rounds of one model, oldest first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PageHinkley {
    samples: u32,
    mean: f64,
    sum: f64,
    lowest: f64,
    stood: u32,
}

impl PageHinkley {
    /// Takes one more round. A signal that stood long enough ends here: the test starts anew on the new level.
    pub(super) fn feed(&mut self, score: f64) {
        if self.stood >= method::DRIFT_STANDS {
            *self = Self::default();
        }
        self.samples += 1;
        self.mean += (score - self.mean) / f64::from(self.samples);
        self.sum += self.mean - score - method::DRIFT_DELTA;
        self.lowest = self.lowest.min(self.sum);
        self.stood += u32::from(self.signalled());
    }

    /// How far the sum has risen above its lowest; `None` before the first round.
    pub(super) fn statistic(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.sum - self.lowest)
    }

    /// Rounds since it last started anew.
    pub(super) fn samples(&self) -> u32 {
        self.samples
    }

    /// Whether it has seen enough, and a fall.
    pub(super) fn signalled(&self) -> bool {
        self.samples >= method::DRIFT_LEAST && self.sum - self.lowest > method::DRIFT_LAMBDA
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(scores: impl IntoIterator<Item = f64>) -> PageHinkley {
        let mut test = PageHinkley::default();
        scores.into_iter().for_each(|score| test.feed(score));
        test
    }

    #[test]
    fn a_steady_series_signals_nothing_and_a_rise_neither() {
        let wobble = (0..500_u32).map(|n| if n % 2 == 0 { 70.0 } else { 72.0 });
        assert!(!fed(wobble.clone()).signalled());
        assert!(!fed(wobble.chain((0..20).map(|_| 80.0))).signalled());
    }

    #[test]
    fn the_statistic_is_the_one_computed_by_hand() {
        // Running means 10, 9, 8: the sum goes -0.5, 0.0, 1.5, and its lowest is -0.5.
        let test = fed([10.0, 8.0, 6.0]);
        assert!((test.statistic().unwrap() - (0.5 + 1.5)).abs() < 1e-12, "{test:?}");
        assert_eq!(fed([]).statistic(), None);
    }

    #[test]
    fn a_fall_signals_within_hours_and_the_new_level_is_learnt_after_days() {
        let fall = |hours: usize| fed(std::iter::repeat_n(70.0, 100).chain(std::iter::repeat_n(64.0, hours)));
        assert!(!fall(2).signalled());
        assert!(fall(6).signalled());
        let later = fall(200);
        assert!(!later.signalled() && later.samples() < 200);
    }
}
