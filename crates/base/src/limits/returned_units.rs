//! Decides when a gateway requests units that other gateways may have returned, once the day seems to be used up.

use std::time::Duration;

use crate::clock::Mono;

/// Minimum and maximum time between two attempts.
const WAIT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(8)];

/// The time of the next attempt. Each unsuccessful attempt doubles the wait, because gateways rarely return units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnedUnits {
    next: Mono,
    wait: Duration,
}

impl ReturnedUnits {
    /// Whether an attempt is due.
    pub fn is_due(&self, now: Mono) -> bool {
        now >= self.next
    }

    /// Whether to request units now. If so, this counts as an attempt.
    pub fn may_ask(&mut self, now: Mono) -> bool {
        if !self.is_due(now) {
            return false;
        }
        let [shortest, longest] = WAIT;
        // After a long time without attempts, earlier attempts do not matter.
        let is_recent = now.since(self.next) < longest;
        self.wait = if is_recent {
            (self.wait * 2).clamp(shortest, longest)
        } else {
            shortest
        };
        self.next = now.plus(self.wait);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rarer_and_after_a_pause_frequent_again() {
        let mut units = ReturnedUnits::default();
        let at = |seconds: u64| Mono::from_nanos(1).plus(Duration::from_secs(seconds));
        let asked: Vec<u64> = (100..130)
            .filter(|second| units.may_ask(at(*second)))
            .collect();
        assert_eq!(asked, [100, 101, 103, 107, 115, 123]);
        let asked: Vec<u64> = (200..204)
            .filter(|second| units.may_ask(at(*second)))
            .collect();
        assert_eq!(asked, [200, 201, 203]);
    }
}
