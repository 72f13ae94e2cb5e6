//! A seeded random number generator, and the times at which the backend refreshes and callers send requests.

use std::{cmp::Reverse, collections::BinaryHeap};

const HOUR: u64 = 3_600;

/// A seeded generator.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64: short, and random enough for this.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// The seconds at which the backend refreshes: around each hour, one in twenty early by 10 to 25 minutes, one in
    /// twenty not at all.
    pub fn refreshes(&mut self, hours: u64) -> Vec<u64> {
        let of_an_hour = |hour: u64| match self.below(20) {
            0 => None,
            1 => Some(hour * HOUR - self.between(600, 1_500)),
            _ => Some(hour * HOUR - 120 + self.below(241)),
        };
        (1..=hours).filter_map(of_an_hour).collect()
    }
}

/// The schedule of the callers.
pub struct Callers {
    rng: Rng,
    /// The next time of each caller, and its interval.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

impl Callers {
    /// This many callers, each with an interval of 20 to 60 seconds.
    pub fn new(mut rng: Rng, callers: usize) -> Self {
        let mut first = |caller: usize| {
            let interval = rng.between(20, 60);
            Reverse((rng.below(interval), caller, interval))
        };
        let next = (0..callers).map(&mut first).collect();
        Self { rng, next }
    }

    /// The next caller of that second.
    pub fn next_caller_at(&mut self, second: u64) -> Option<usize> {
        let Reverse((at, caller, interval)) = *self.next.peek()?;
        if at > second {
            return None;
        }
        self.next.pop();
        // Callers are not exact to the second.
        let again = second + interval - 3 + self.rng.below(7);
        self.next.push(Reverse((again, caller, interval)));
        Some(caller)
    }
}
