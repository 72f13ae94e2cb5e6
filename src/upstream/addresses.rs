//! The addresses of a backend, in order of preference. A request goes to the first address whose circuit breaker
//! permits it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use scoregate_base::clock::{Clock, Mono};

use super::{
    Upstream, UpstreamFailure, UpstreamRequest, UpstreamResponse,
    circuit_breaker::{BreakerPermission, BreakerSignal, BreakerState, CircuitBreaker},
};

/// A method of [`CircuitBreaker`] that requests permission.
type AskBreaker = fn(CircuitBreaker, Mono) -> (CircuitBreaker, BreakerPermission);

/// The addresses of a backend.
pub struct Addresses {
    all: Vec<Address>,
    clock: Clock,
}

struct Address {
    upstream: Arc<dyn Upstream>,
    state: Mutex<AddressState>,
}

#[derive(Default)]
struct AddressState {
    breaker: CircuitBreaker,
    in_flight: usize,
    requests: u64,
    failures: u64,
}

/// A request in flight. However it ends, its result is reported to the address's circuit breaker.
pub struct AddressPermit<'a> {
    address: &'a Address,
    /// The number of the address.
    pub index: usize,
    permission: BreakerPermission,
    signal: BreakerSignal,
    /// The reason why the request failed.
    failure: Option<UpstreamFailure>,
    clock: &'a Clock,
}

/// The state of an address, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressStatus {
    /// Host and port.
    pub name: Arc<str>,
    /// State of the address's circuit breaker.
    pub breaker: BreakerState,
    /// Remaining open time.
    pub open_time_left: Duration,
    /// Consecutive failures.
    pub consecutive_failures: u32,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests since startup.
    pub requests: u64,
    /// Failed requests since startup.
    pub failures: u64,
}

impl Addresses {
    pub fn new(all: Vec<Arc<dyn Upstream>>, clock: Clock) -> Self {
        let all = all.into_iter().map(|upstream| Address {
            upstream,
            state: Mutex::default(),
        });
        Self {
            all: all.collect(),
            clock,
        }
    }

    /// The backends at these addresses.
    pub fn upstreams(&self) -> impl Iterator<Item = &dyn Upstream> {
        self.all.iter().map(|address| &*address.upstream)
    }

    /// Time until a request may be sent. `None` if a request may be sent now.
    pub fn wait(&self) -> Option<Duration> {
        let now = self.clock.now().mono;
        let waits =
            self.all.iter().map(
                |address| match address.state.lock().breaker.request(now).1 {
                    BreakerPermission::Granted | BreakerPermission::Trial => None,
                    BreakerPermission::Refused(wait) => Some(wait),
                },
            );
        waits.min_by_key(|wait| wait.unwrap_or_default()).flatten()
    }

    /// Permits a request to the first address that this fetch has not tried. Addresses that have just failed come after
    /// the others, sorted by their number of failures.
    pub fn next(&self, tried: &[usize]) -> Option<AddressPermit<'_>> {
        let addresses = self.all.iter().enumerate();
        let mut untried: Vec<_> = addresses
            .filter(|(index, _)| !tried.contains(index))
            .collect();
        let preferred = untried.iter().find_map(|(index, one)| {
            self.permit(*index, one, CircuitBreaker::request_if_preferred)
        });
        preferred.or_else(|| {
            untried.sort_by_key(|(_, one)| one.state.lock().breaker.failures());
            untried
                .iter()
                .find_map(|(index, one)| self.permit(*index, one, CircuitBreaker::request))
        })
    }

    fn permit<'a>(
        &'a self,
        index: usize,
        address: &'a Address,
        ask: AskBreaker,
    ) -> Option<AddressPermit<'a>> {
        let mut state = address.state.lock();
        let (breaker, permission) = ask(state.breaker, self.clock.now().mono);
        if matches!(permission, BreakerPermission::Refused(_)) {
            return None;
        }
        state.breaker = breaker;
        state.in_flight += 1;
        state.requests += 1;
        Some(AddressPermit {
            address,
            index,
            permission,
            signal: BreakerSignal::None,
            failure: None,
            clock: &self.clock,
        })
    }

    /// The states of the addresses, for the operator.
    pub fn status(&self) -> Vec<AddressStatus> {
        let now = self.clock.now().mono;
        let all = self.all.iter();
        all.map(|address| address.status(now)).collect()
    }
}

impl Address {
    fn status(&self, now: Mono) -> AddressStatus {
        let state = self.state.lock();
        AddressStatus {
            name: self.upstream.name(),
            breaker: state.breaker.state(now),
            open_time_left: state.breaker.open_time_left(now),
            consecutive_failures: state.breaker.failures(),
            in_flight: state.in_flight,
            requests: state.requests,
            failures: state.failures,
        }
    }
}

impl AddressPermit<'_> {
    /// Sends the request.
    pub async fn fetch(
        mut self,
        request: UpstreamRequest<'_>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let fetched = self.address.upstream.fetch(request).await;
        self.signal = breaker_signal(&fetched);
        self.failure = fetched.as_ref().err().cloned();
        fetched
    }
}

impl Drop for AddressPermit<'_> {
    fn drop(&mut self) {
        let now = self.clock.now().mono;
        let mut state = self.address.state.lock();
        state.in_flight -= 1;
        if matches!(self.signal, BreakerSignal::Bad(_)) {
            state.failures += 1;
        }
        let before = state.breaker.state(now);
        state.breaker = state.breaker.record(self.permission, self.signal, now);
        let after = state.breaker.state(now);
        drop(state);
        let address = &*self.address.upstream.name();
        match (before, after) {
            (BreakerState::Closed, BreakerState::Open) => {
                let failure = self.failure.as_ref().map(ToString::to_string);
                let reason = failure.unwrap_or_default();
                tracing::warn!(address, reason, "circuit breaker opened");
            }
            (BreakerState::HalfOpen, BreakerState::Closed) => {
                tracing::info!(address, "circuit breaker closed");
            }
            (BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Open, _) => {}
        }
    }
}

/// The meaning of a result for the circuit breaker. An invalid response affects only its document.
fn breaker_signal(fetched: &Result<UpstreamResponse, UpstreamFailure>) -> BreakerSignal {
    match fetched {
        Ok(_) => BreakerSignal::Good,
        Err(UpstreamFailure::ErrorStatus { retry_after, .. }) => BreakerSignal::Bad(*retry_after),
        Err(UpstreamFailure::Unreachable(_) | UpstreamFailure::Timeout(_)) => {
            BreakerSignal::Bad(None)
        }
        Err(
            UpstreamFailure::Invalid(_)
            | UpstreamFailure::CircuitOpen(_)
            | UpstreamFailure::QueueFull,
        ) => BreakerSignal::None,
    }
}
