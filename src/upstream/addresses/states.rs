//! The states of all addresses of a backend: circuit breaker, health, requests in flight. Every step takes `now`; pure.

use std::time::Duration;

use scoregate_base::clock::Mono;

use super::choice::{AddressCondition, Candidate, choose};
use super::health::{AddressHealth, HealthThresholds, weight};
use super::retry_budget::RetryBudget;
use crate::upstream::circuit_breaker::{
    BreakerPermission, BreakerSignal, BreakerState, CircuitBreaker,
};

/// Time in which other addresses get the requests after a failure, for each consecutive one.
const SUSPECT_TIME: Duration = Duration::from_secs(1);
const LONGEST_SUSPECT_TIME: Duration = Duration::from_secs(5);

/// Rules for the use of several addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRules {
    /// Thresholds of the health checks.
    pub thresholds: HealthThresholds,
    /// Time in which the share of a recovered address grows.
    pub slow_start: Duration,
}

impl Default for AddressRules {
    /// For a single address, which is not checked.
    fn default() -> Self {
        Self {
            thresholds: HealthThresholds {
                healthy: 1,
                unhealthy: 1,
            },
            slow_start: Duration::ZERO,
        }
    }
}

/// The states of the addresses, in the order of the settings.
#[derive(Clone, Debug)]
pub(super) struct AddressStates {
    addresses: Vec<AddressState>,
    rules: AddressRules,
    budget: RetryBudget,
    failovers: u64,
    /// Failovers that the budget did not allow.
    denied: u64,
}

#[derive(Clone, Debug, Default)]
struct AddressState {
    priority: u8,
    breaker: CircuitBreaker,
    health: AddressHealth,
    in_flight: usize,
    /// When a request last failed there, unless one has succeeded since.
    failed_at: Option<Mono>,
    /// When it was last healthy again, or its breaker closed.
    recovered_at: Option<Mono>,
    requests: u64,
    failures: u64,
    /// The result of the last check, if it failed.
    failed_check: Option<String>,
}

/// The right to send a request to an address. Report its end to [`AddressStates::end`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressGrant {
    /// The number of the address.
    pub(super) index: usize,
    permission: BreakerPermission,
}

/// A change of the state of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressChange {
    BreakerOpened,
    BreakerClosed,
    Unhealthy,
    Healthy,
}

/// The state of an address, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    /// Its priority: 0, or 1 for a standby.
    pub priority: u8,
    /// Whether its health checks pass.
    pub is_healthy: bool,
    /// Why the last check failed.
    pub failed_check: Option<String>,
    /// State of its circuit breaker.
    pub breaker: BreakerState,
    /// Remaining open time.
    pub open_time_left: Duration,
    /// Consecutive failures.
    pub consecutive_failures: u32,
    /// Requests in flight.
    pub in_flight: usize,
    /// Share of requests, of a thousand.
    pub weight: u32,
    /// Requests since the start.
    pub requests: u64,
    /// Failed ones among them.
    pub failures: u64,
}

impl AddressStates {
    /// Addresses with these priorities, all healthy.
    pub(super) fn new(priorities: &[u8], rules: AddressRules, now: Mono) -> Self {
        let state = |priority: &u8| AddressState {
            priority: *priority,
            ..AddressState::default()
        };
        Self {
            addresses: priorities.iter().map(state).collect(),
            rules,
            budget: RetryBudget::new(priorities.len(), now),
            failovers: 0,
            denied: 0,
        }
    }

    /// How long no address may get a request; `None` if one may.
    pub(super) fn wait(&self, now: Mono) -> Option<Duration> {
        let waits = self
            .addresses
            .iter()
            .map(|address| refused(address.breaker.request(now).1));
        waits.min_by_key(|wait| wait.unwrap_or_default()).flatten()
    }

    /// Grants a request, or returns how long none may be sent.
    pub(super) fn begin(
        &mut self,
        preferred: Option<usize>,
        draws: [u32; 2],
        now: Mono,
    ) -> Result<AddressGrant, Duration> {
        let chosen = choose(&self.candidates(&[], now), preferred, draws);
        let grant = chosen.and_then(|index| self.grant(index, now));
        let grant = grant.ok_or_else(|| self.wait(now).unwrap_or_default())?;
        self.budget.add_request(now);
        Ok(grant)
    }

    /// Grants a request to an address that this fetch has not tried. `None` if there is none, or no budget.
    pub(super) fn fail_over(
        &mut self,
        tried: &[usize],
        draws: [u32; 2],
        now: Mono,
    ) -> Option<AddressGrant> {
        let chosen = choose(&self.candidates(tried, now), None, draws)?;
        if !self.budget.take(now) {
            self.denied += 1;
            return None;
        }
        self.failovers += 1;
        self.grant(chosen, now)
    }

    /// Records the result of a request.
    pub(super) fn end(
        &mut self,
        grant: AddressGrant,
        signal: BreakerSignal,
        now: Mono,
    ) -> Option<AddressChange> {
        let address = self.addresses.get_mut(grant.index)?;
        address.in_flight = address.in_flight.saturating_sub(1);
        match signal {
            BreakerSignal::Good => address.failed_at = None,
            BreakerSignal::Bad(_) => {
                address.failures += 1;
                address.failed_at = Some(now);
            }
            BreakerSignal::None => {}
        }
        let before = address.breaker.state(now);
        address.breaker = address.breaker.record(grant.permission, signal, now);
        match (before, address.breaker.state(now)) {
            (BreakerState::Closed, BreakerState::Open) => Some(AddressChange::BreakerOpened),
            (BreakerState::HalfOpen, BreakerState::Closed) => {
                address.recovered_at = Some(now);
                Some(AddressChange::BreakerClosed)
            }
            (BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Open, _) => None,
        }
    }

    /// Records the result of a health check.
    pub(super) fn record_check(
        &mut self,
        index: usize,
        result: Result<(), String>,
        now: Mono,
    ) -> Option<AddressChange> {
        let address = self.addresses.get_mut(index)?;
        let before = address.health.is_healthy();
        address.health = address.health.record(result.is_ok(), self.rules.thresholds);
        address.failed_check = result.err();
        match (before, address.health.is_healthy()) {
            (true, false) => Some(AddressChange::Unhealthy),
            (false, true) => {
                address.recovered_at = Some(now);
                Some(AddressChange::Healthy)
            }
            (true, true) | (false, false) => None,
        }
    }

    /// The states for the operator.
    pub(super) fn status(&self, now: Mono) -> Vec<AddressStatus> {
        let status = |address: &AddressState| AddressStatus {
            priority: address.priority,
            is_healthy: address.health.is_healthy(),
            failed_check: address.failed_check.clone(),
            breaker: address.breaker.state(now),
            open_time_left: address.breaker.open_time_left(now),
            consecutive_failures: address.breaker.failures(),
            in_flight: address.in_flight,
            weight: weight(address.recovered_at, self.rules.slow_start, now),
            requests: address.requests,
            failures: address.failures,
        };
        self.addresses.iter().map(status).collect()
    }

    /// Failovers so far, and those that the budget did not allow.
    pub(super) fn failovers(&self) -> (u64, u64) {
        (self.failovers, self.denied)
    }

    fn grant(&mut self, index: usize, now: Mono) -> Option<AddressGrant> {
        let address = self.addresses.get_mut(index)?;
        let (next, permission) = address.breaker.request(now);
        if refused(permission).is_some() {
            return None;
        }
        address.breaker = next;
        address.in_flight += 1;
        address.requests += 1;
        Some(AddressGrant { index, permission })
    }

    fn candidates(&self, tried: &[usize], now: Mono) -> Vec<Candidate> {
        let candidate = |(index, address): (usize, &AddressState)| Candidate {
            index,
            priority: address.priority,
            condition: address.condition(now),
            is_permitted: refused(address.breaker.request(now).1).is_none(),
            is_tried: tried.contains(&index),
            in_flight: address.in_flight,
            weight: weight(address.recovered_at, self.rules.slow_start, now),
        };
        self.addresses.iter().enumerate().map(candidate).collect()
    }
}

impl AddressState {
    fn condition(&self, now: Mono) -> AddressCondition {
        let suspect_time = (SUSPECT_TIME * self.breaker.failures()).min(LONGEST_SUSPECT_TIME);
        if !self.health.is_healthy() {
            AddressCondition::Unhealthy
        } else if self
            .failed_at
            .is_some_and(|at| now.since(at) < suspect_time)
        {
            AddressCondition::Suspect
        } else {
            AddressCondition::Good
        }
    }
}

/// How long a request is refused; `None` if it is not.
fn refused(permission: BreakerPermission) -> Option<Duration> {
    match permission {
        BreakerPermission::Granted | BreakerPermission::Trial => None,
        BreakerPermission::Refused(wait) => Some(wait),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: AddressRules = AddressRules {
        thresholds: HealthThresholds {
            healthy: 2,
            unhealthy: 3,
        },
        slow_start: Duration::from_secs(30),
    };

    fn at(seconds: u64) -> Mono {
        Mono::from_nanos((1 + seconds) * 1_000_000_000)
    }

    fn fail(states: &mut AddressStates, index: usize, times: u32, now: Mono) {
        for _ in 0..times {
            let grant = states.grant(index, now).unwrap();
            states.end(grant, BreakerSignal::Bad(None), now);
        }
    }

    #[test]
    fn a_single_address_has_no_failover_and_waits_for_its_own_circuit_breaker() {
        let mut states = AddressStates::new(&[0], RULES, at(0));
        for _ in 0..5 {
            let grant = states.begin(None, [0, 0], at(0)).unwrap();
            states.end(grant, BreakerSignal::Bad(None), at(0));
            assert_eq!(states.fail_over(&[0], [0, 0], at(0)), None);
        }
        assert_eq!(states.wait(at(0)), Some(Duration::from_secs(1)));
        assert_eq!(
            states.begin(None, [0, 0], at(0)),
            Err(Duration::from_secs(1))
        );
        assert_eq!(states.failovers(), (0, 0));
        assert!(states.begin(None, [0, 0], at(1)).is_ok());
    }

    #[test]
    fn each_address_has_its_own_circuit_breaker_and_the_shortest_wait_counts() {
        let mut states = AddressStates::new(&[0, 0], RULES, at(0));
        fail(&mut states, 0, 5, at(0));
        assert_eq!(states.wait(at(0)), None);
        for draw in [0, u32::MAX] {
            assert_eq!(states.begin(Some(0), [draw, draw], at(0)).unwrap().index, 1);
        }
        fail(&mut states, 1, 5, at(0));
        let grant = states.grant(0, at(1)).unwrap();
        states.end(
            grant,
            BreakerSignal::Bad(Some(Duration::from_mins(1))),
            at(1),
        );
        let trial = states.grant(1, at(1)).unwrap();
        states.end(trial, BreakerSignal::Bad(None), at(1));
        assert_eq!(
            states.wait(at(1)),
            Some(Duration::from_secs(2)),
            "not the minute of the other"
        );
    }

    #[test]
    fn after_a_failure_other_addresses_get_the_requests_for_a_second() {
        let mut states = AddressStates::new(&[0, 0], RULES, at(0));
        fail(&mut states, 0, 1, at(0));
        assert_eq!(states.begin(Some(0), [0, 0], at(0)).unwrap().index, 1);
        assert_eq!(states.begin(Some(0), [0, 0], at(1)).unwrap().index, 0);
        fail(&mut states, 0, 2, at(1));
        assert_eq!(
            states.begin(Some(0), [0, 0], at(3)).unwrap().index,
            1,
            "three seconds after three"
        );
        let grant = states.grant(0, at(3)).unwrap();
        states.end(grant, BreakerSignal::Good, at(3));
        assert_eq!(states.begin(Some(0), [0, 0], at(3)).unwrap().index, 0);
    }

    #[test]
    fn a_recovered_address_starts_slowly() {
        let mut states = AddressStates::new(&[0, 0], RULES, at(0));
        for _ in 0..3 {
            states.record_check(0, Err("no".into()), at(0));
        }
        assert!(!states.status(at(0))[0].is_healthy);
        assert_eq!(states.begin(Some(0), [0, 0], at(0)).unwrap().index, 1);
        assert_eq!(states.record_check(0, Ok(()), at(60)), None);
        assert_eq!(
            states.record_check(0, Ok(()), at(60)),
            Some(AddressChange::Healthy)
        );
        assert_eq!(
            [60, 75, 90].map(|now| states.status(at(now))[0].weight),
            [100, 500, 1_000]
        );
        fail(&mut states, 1, 5, at(100));
        let trial = states.grant(1, at(101)).unwrap();
        assert_eq!(
            states.end(trial, BreakerSignal::Good, at(101)),
            Some(AddressChange::BreakerClosed)
        );
        assert_eq!(states.status(at(101))[1].weight, 100);
    }

    proptest! {
        #[test]
        fn requests_in_flight_are_counted_and_a_refused_address_gets_none(
            priorities in proptest::collection::vec(0..2_u8, 1..4),
            steps in proptest::collection::vec((0..5_u8, any::<[u32; 2]>(), 0..4_u64), 0..200),
        ) {
            let mut states = AddressStates::new(&priorities, RULES, at(0));
            let mut open: Vec<AddressGrant> = Vec::new();
            let mut now = 0_u64;
            for (step, draws, seconds) in steps {
                now += seconds;
                let permitted: Vec<bool> =
                    states.candidates(&[], at(now)).iter().map(|one| one.is_permitted).collect();
                let granted = match (step, open.last().copied()) {
                    (0, _) => states.begin(None, draws, at(now)).ok(),
                    (1, Some(last)) => states.fail_over(&[last.index], draws, at(now)),
                    (2, Some(_)) => {
                        states.end(open.remove(0), BreakerSignal::Bad(None), at(now));
                        None
                    }
                    (3, Some(_)) => {
                        states.end(open.remove(0), BreakerSignal::Good, at(now));
                        None
                    }
                    _ => {
                        let index = draws[0] as usize % priorities.len();
                        states.record_check(index, if draws[1] % 2 == 0 { Ok(()) } else { Err(String::new()) }, at(now));
                        None
                    }
                };
                if let Some(grant) = granted {
                    prop_assert!(permitted[grant.index]);
                    open.push(grant);
                }
                let in_flight: usize = states.status(at(now)).iter().map(|one| one.in_flight).sum();
                prop_assert_eq!(in_flight, open.len());
            }
        }
    }
}
