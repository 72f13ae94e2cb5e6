//! Limits failovers to a tenth of the requests, plus one for each address in ten seconds, so that a failing address does
//! not double the load of the others. Pure.

use std::time::Duration;

use scoregate_base::clock::Mono;

/// Time in which each address adds a failover.
const WINDOW: Duration = Duration::from_secs(10);
/// Requests that add a failover.
const REQUESTS: u64 = 10;
/// More failovers of requests are not saved up.
const MAX_SAVED: u64 = 10;

/// Saved failovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RetryBudget {
    addresses: u64,
    /// In nanoseconds of one address: the window is the cost of a failover, so nothing is rounded.
    saved: u64,
    /// When time was last added.
    at: Mono,
}

impl RetryBudget {
    /// One failover for each address.
    pub(super) fn new(addresses: usize, now: Mono) -> Self {
        let addresses = addresses as u64;
        Self {
            addresses,
            saved: addresses * cost(),
            at: now,
        }
    }

    /// A request was sent that is not a failover.
    pub(super) fn add_request(&mut self, now: Mono) {
        self.add_time(now);
        self.add(cost() / REQUESTS);
    }

    /// Takes a failover. `false` if there is none.
    pub(super) fn take(&mut self, now: Mono) -> bool {
        self.add_time(now);
        let rest = self.saved.checked_sub(cost());
        self.saved = rest.unwrap_or(self.saved);
        rest.is_some()
    }

    fn add_time(&mut self, now: Mono) {
        let passed = u64::try_from(now.since(self.at).as_nanos()).unwrap_or(u64::MAX);
        self.at = self.at.max(now);
        self.add(passed.saturating_mul(self.addresses));
    }

    fn add(&mut self, amount: u64) {
        self.saved = self
            .saved
            .saturating_add(amount)
            .min((self.addresses + MAX_SAVED) * cost());
    }
}

fn cost() -> u64 {
    WINDOW.as_secs() * 1_000_000_000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Mono {
        Mono::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    fn taken(budget: &mut RetryBudget, now: Mono) -> usize {
        (0..1_000).take_while(|_| budget.take(now)).count()
    }

    #[test]
    fn each_address_adds_a_failover_in_ten_seconds_and_ten_requests_add_another() {
        let mut budget = RetryBudget::new(3, at(0));
        assert_eq!(taken(&mut budget, at(0)), 3);
        for _ in 0..25 {
            budget.add_request(at(0));
        }
        assert_eq!(taken(&mut budget, at(0)), 2);
        assert_eq!(taken(&mut budget, at(10_000)), 3, "and half of one is left");
        for _ in 0..5 {
            budget.add_request(at(10_000));
        }
        assert_eq!(taken(&mut budget, at(10_000)), 1);
        assert_eq!(
            taken(&mut budget, at(86_400_000)),
            13,
            "no more is saved up"
        );
    }

    proptest! {
        #[test]
        fn failovers_never_exceed_the_budget(
            addresses in 1..5_usize,
            steps in proptest::collection::vec((0..3_000_u64, any::<bool>()), 0..200),
        ) {
            let mut budget = RetryBudget::new(addresses, at(0));
            let mut now = 0;
            let mut requests = 0;
            let mut failovers = 0;
            for (millis, is_request) in steps {
                now += millis;
                if is_request {
                    budget.add_request(at(now));
                    requests += 1;
                } else if budget.take(at(now)) {
                    failovers += 1;
                }
                let allowed = requests * 1_000 + addresses as u64 * (10_000 + now);
                prop_assert!(failovers * 10_000 <= allowed, "{failovers} after {requests} requests, {now} ms");
            }
        }
    }
}
