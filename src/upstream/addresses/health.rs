//! The health of an address by its checks, and its share of requests after a recovery. Pure. Checks are made in
//! `health_checks`.

use std::time::Duration;

use scoregate_base::clock::Mono;

use super::choice::FULL_WEIGHT;

/// The smallest share in slow start, of a thousand.
const MIN_WEIGHT: u32 = 100;

/// When the state of an address changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthThresholds {
    /// Consecutive checks that an unhealthy address must pass.
    pub healthy: u32,
    /// Consecutive failed checks of a healthy address.
    pub unhealthy: u32,
}

/// The health of an address; healthy before the first check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AddressHealth {
    is_unhealthy: bool,
    /// Consecutive results that contradict the state.
    contradicting: u32,
}

impl AddressHealth {
    /// The state after a check.
    pub(super) fn record(self, has_passed: bool, thresholds: HealthThresholds) -> Self {
        if has_passed != self.is_unhealthy {
            return Self {
                contradicting: 0,
                ..self
            };
        }
        let contradicting = self.contradicting + 1;
        let needed = if self.is_unhealthy {
            thresholds.healthy
        } else {
            thresholds.unhealthy
        };
        if contradicting >= needed {
            Self {
                is_unhealthy: !self.is_unhealthy,
                contradicting: 0,
            }
        } else {
            Self {
                contradicting,
                ..self
            }
        }
    }

    pub(super) fn is_healthy(self) -> bool {
        !self.is_unhealthy
    }
}

/// The share of requests, of [`FULL_WEIGHT`], at a time after a recovery: it grows linearly over `slow_start`.
pub(super) fn weight(recovered_at: Option<Mono>, slow_start: Duration, now: Mono) -> u32 {
    let Some(passed) = recovered_at
        .map(|at| now.since(at))
        .filter(|passed| *passed < slow_start)
    else {
        return FULL_WEIGHT;
    };
    let share = passed.as_nanos() * u128::from(FULL_WEIGHT) / slow_start.as_nanos().max(1);
    u32::try_from(share)
        .unwrap_or(FULL_WEIGHT)
        .clamp(MIN_WEIGHT, FULL_WEIGHT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const THRESHOLDS: HealthThresholds = HealthThresholds {
        healthy: 2,
        unhealthy: 3,
    };

    fn after(results: &[bool]) -> Vec<bool> {
        let mut health = AddressHealth::default();
        let step = |passed: &bool| {
            health = health.record(*passed, THRESHOLDS);
            health.is_healthy()
        };
        results.iter().map(step).collect()
    }

    #[test]
    fn three_failed_checks_make_an_address_unhealthy_and_two_passed_ones_healthy_again() {
        let results = [
            false, false, true, false, false, false, true, false, true, true, true,
        ];
        let healthy = [
            true, true, true, true, true, false, false, false, false, true, true,
        ];
        assert_eq!(after(&results), healthy);
    }

    #[test]
    fn the_share_grows_from_a_tenth_to_all_of_it() {
        let at = |seconds: u64| Mono::from_nanos((100 + seconds) * 1_000_000_000);
        let half_minute = Duration::from_secs(30);
        let share = |seconds| weight(Some(at(0)), half_minute, at(seconds));
        assert_eq!(
            [0, 3, 15, 29, 30, 900].map(share),
            [100, 100, 500, 966, 1_000, 1_000]
        );
        assert_eq!(weight(None, half_minute, at(0)), FULL_WEIGHT);
        assert_eq!(weight(Some(at(0)), Duration::ZERO, at(0)), FULL_WEIGHT);
    }

    proptest! {
        #[test]
        fn a_change_follows_exactly_as_many_equal_results(results in proptest::collection::vec(any::<bool>(), 0..60)) {
            let states = after(&results);
            for (number, state) in states.iter().enumerate() {
                let before = number.checked_sub(1).is_none_or(|last| states[last]);
                let against = results[..=number].iter().rev().take_while(|passed| **passed != before).count();
                let needed = if before { THRESHOLDS.unhealthy } else { THRESHOLDS.healthy } as usize;
                // Results before the last change do not count.
                let since = states[..number].iter().rev().take_while(|state| **state == before).count() + 1;
                prop_assert_eq!(before != *state, against.min(since) >= needed);
            }
        }
    }
}
