//! Decides which requests are sampled: requests whose caller sampled them, up to a limit per second, and one in N
//! requests without a trace.
//!
//! The decision about a new trace depends only on its id, as in the ratio sampler of OpenTelemetry, so programs with
//! the same ratio make the same decision.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::telemetry::per_thread::PerThread;
use scoregate_base::clock::Mono;

/// Maximum number of callers' traces that are recorded per second, so that callers cannot flood the collector.
pub const CALLERS_TRACES_PER_SECOND: u64 = 100;

const NANOS_A_SECOND: u64 = 1_000_000_000;
/// The increment of `SplitMix64`.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The sampler and the source of ids.
#[derive(Debug)]
pub struct TraceSampler {
    /// A new trace is sampled if the low 64 bits of its id, shifted right by one, are below this.
    bound: u64,
    /// States of the generators of ids. The ids are not secret.
    states: PerThread<AtomicU64>,
    /// The current second and the number of callers' traces in it, 32 bits each.
    given: AtomicU64,
}

impl TraceSampler {
    /// Samples one in `one_in` new traces; none if zero.
    pub fn new(one_in: u64, mut seed: impl FnMut() -> u64) -> Self {
        let bound = (1_u64 << 63).checked_div(one_in).unwrap_or(0);
        let states = PerThread::default();
        states
            .all()
            .for_each(|state: &AtomicU64| state.store(seed(), Ordering::Relaxed));
        Self {
            bound,
            states,
            given: AtomicU64::new(0),
        }
    }

    /// A random number, for ids.
    pub fn random(&self) -> u64 {
        // Relaxed, because the numbers only have to differ.
        let mixed = self
            .states
            .local()
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The id of a new trace, if it is sampled.
    pub fn new_trace(&self) -> Option<u128> {
        let low = self.random();
        self.is_sampled(low)
            .then(|| (u128::from(self.random()) << 64) | u128::from(low))
    }

    fn is_sampled(&self, low: u64) -> bool {
        low >> 1 < self.bound
    }

    /// Whether one more caller's trace may be recorded in this second.
    pub fn take_callers_trace(&self, now: Mono) -> bool {
        let second = (now.nanos() / NANOS_A_SECOND) & u64::from(u32::MAX);
        // The second and the count are a single number, so no ordering is needed.
        let taken = self
            .given
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |given| {
                let current = given >> 32;
                let count = given & u64::from(u32::MAX);
                if second > current {
                    return Some((second << 32) | 1);
                }
                (count < CALLERS_TRACES_PER_SECOND).then_some(given + 1)
            });
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn sampler(one_in: u64) -> TraceSampler {
        let mut seed = 0;
        TraceSampler::new(one_in, move || {
            seed += 1;
            seed
        })
    }

    #[test]
    fn one_in_n_new_traces_is_sampled() {
        for (one_in, range) in [
            (0, 0..=0),
            (1, 100_000..=100_000),
            (2, 49_000..=51_000),
            (100, 900..=1_100),
        ] {
            let sampler = sampler(one_in);
            let count = (0..100_000)
                .filter(|_| sampler.new_trace().is_some())
                .count();
            assert!(range.contains(&count), "one in {one_in}: {count}");
        }
    }

    #[test]
    fn the_decision_depends_on_the_last_eight_bytes_of_the_id() {
        let quarter = sampler(4);
        for (low, is_sampled) in [
            (0, true),
            (u64::MAX / 4, true),
            (u64::MAX / 4 + 1, false),
            (u64::MAX, false),
        ] {
            assert_eq!(quarter.is_sampled(low), is_sampled, "{low:x}");
        }
        let all = sampler(1);
        let ids: HashSet<u128> = (0..10_000).filter_map(|_| all.new_trace()).collect();
        assert_eq!(ids.len(), 10_000);
    }

    #[test]
    fn traces_of_callers_are_limited_per_second() {
        let sampler = sampler(0);
        let second = |at: u64| Mono::from_nanos(at * NANOS_A_SECOND);
        for at in [5, 6, 9] {
            let taken = (0..1_000)
                .filter(|_| sampler.take_callers_trace(second(at)))
                .count();
            assert_eq!(taken as u64, CALLERS_TRACES_PER_SECOND);
        }
        assert!(
            !sampler.take_callers_trace(second(8)),
            "an earlier second opens no new window"
        );
    }
}
