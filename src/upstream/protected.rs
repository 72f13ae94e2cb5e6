//! Protects the backend: a queue by priority with limited concurrency, and a circuit breaker for each address.
//!
//! A request that may not be sent fails immediately and costs the backend nothing. A backend with one address gets no
//! retries: at such backends a GET may have side effects. (`connections` retries once on a connection that was closed
//! while idle.) With several addresses a failed request is repeated at another one, within the budget of `addresses`.
//! Failures are handled in `documents`.

use std::sync::Arc;
use std::time::Duration;

use scoregate_base::clock::Clock;
use scoregate_base::routes::DocumentKey;

use super::addresses::{AddressBook, AddressPermit, AddressRules, AddressStatus};
use super::circuit_breaker::{BreakerSignal, BreakerState};
use super::queue::{CurrentPriority, FetchQueue};
use super::{Upstream, UpstreamFailure, UpstreamRequest, UpstreamResponse};

/// Limits for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionConfig {
    /// Maximum number of concurrent requests.
    pub max_concurrent: usize,
    /// Maximum time in the queue.
    pub queue_timeout: Duration,
}

/// A backend with queue and circuit breakers.
pub struct ProtectedUpstream {
    /// In the order of the book.
    addresses: Vec<Arc<dyn Upstream>>,
    book: Arc<AddressBook>,
    protection: ProtectionConfig,
    queue: FetchQueue,
    clock: Clock,
}

/// The state of queue and circuit breakers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectionStatus {
    /// State of the circuit breaker of the address that is most usable.
    pub breaker: BreakerState,
    /// Remaining time in which no address is used.
    pub open_time_left: Duration,
    /// Consecutive failures at the address with the fewest.
    pub failures: u32,
    /// Maximum number of concurrent requests.
    pub at_once: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests in the queue.
    pub queued: usize,
    /// Requests retried because their connection was being closed.
    pub retries: u64,
    /// Requests repeated at another address.
    pub failovers: u64,
    /// Requests not repeated because the budget was used up.
    pub failovers_denied: u64,
    /// The addresses by name.
    pub addresses: Vec<(Arc<str>, AddressStatus)>,
}

impl ProtectedUpstream {
    /// Protects a backend with a single address.
    pub fn new(backend: Arc<dyn Upstream>, protection: ProtectionConfig, clock: Clock) -> Self {
        let names = [(backend.address().into(), 0)];
        let book = Arc::new(AddressBook::new(
            &names,
            AddressRules::default(),
            0,
            clock.clone(),
        ));
        Self::with_addresses(vec![backend], book, protection, clock)
    }

    /// Protects a backend with these addresses, which are those of `book` in its order.
    pub fn with_addresses(
        addresses: Vec<Arc<dyn Upstream>>,
        book: Arc<AddressBook>,
        protection: ProtectionConfig,
        clock: Clock,
    ) -> Self {
        Self {
            addresses,
            book,
            protection,
            queue: FetchQueue::new(protection.max_concurrent),
            clock,
        }
    }

    /// Requests a document; waits in the queue first. A failed request is repeated at another address until the time
    /// that callers wait has passed.
    pub async fn fetch(
        &self,
        request: UpstreamRequest<'_>,
        priority: &CurrentPriority,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        // Requests do not queue while no address may be used.
        if let Some(wait) = self.book.wait() {
            return Err(UpstreamFailure::CircuitOpen(wait));
        }
        let deadline = self.clock.now().mono.plus(self.protection.queue_timeout);
        let slot = self
            .clock
            .until(deadline, self.queue.acquire(priority.clone()))
            .await;
        let _slot = slot
            .ok()
            .and_then(Result::ok)
            .ok_or(UpstreamFailure::QueueFull)?;
        let origin = request.known.and_then(|known| known.origin.as_deref());
        let mut permit = self
            .book
            .begin(origin)
            .map_err(UpstreamFailure::CircuitOpen)?;
        let mut tried = Vec::new();
        loop {
            tried.push(permit.index());
            let fetched = self.fetch_from(permit, request).await;
            if !may_succeed_elsewhere(&fetched) || self.clock.now().mono >= deadline {
                return fetched;
            }
            match self.book.fail_over(&tried) {
                Some(next) => permit = next,
                None => return fetched,
            }
        }
    }

    async fn fetch_from(
        &self,
        mut permit: AddressPermit<'_>,
        request: UpstreamRequest<'_>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        let no_address = || UpstreamFailure::Unreachable("it has no address".into());
        let fetched = self
            .addresses
            .get(permit.index())
            .ok_or_else(no_address)?
            .fetch(request)
            .await;
        permit.signal = breaker_signal(&fetched);
        permit.failure = fetched.as_ref().err().cloned();
        fetched
    }

    /// Whether the circuit breakers of all addresses are open, so that a request would fail immediately.
    pub fn is_open(&self) -> bool {
        self.book.wait().is_some()
    }

    /// The addresses of the backend.
    pub fn address(&self) -> String {
        let all: Vec<String> = self
            .addresses
            .iter()
            .map(|address| address.address())
            .collect();
        all.join(" ")
    }

    /// The request that its first address would get.
    pub fn question(&self, request: UpstreamRequest<'_>) -> Vec<String> {
        self.addresses
            .first()
            .map(|address| address.question(request))
            .unwrap_or_default()
    }

    /// Whether its list of models is complete.
    pub fn lists_all_models(&self) -> bool {
        self.addresses
            .first()
            .is_some_and(|address| address.lists_all_models())
    }

    /// Whether the backend may have a document.
    pub fn may_have(&self, key: &DocumentKey) -> bool {
        self.addresses
            .first()
            .is_some_and(|address| address.may_have(key))
    }

    /// The current state.
    pub fn status(&self) -> ProtectionStatus {
        let addresses = self.book.status();
        let (failovers, failovers_denied) = self.book.failovers();
        let states = || addresses.iter().map(|(_, status)| status);
        let most_usable = states().min_by_key(|status| match status.breaker {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        });
        ProtectionStatus {
            breaker: most_usable.map_or(BreakerState::Closed, |status| status.breaker),
            open_time_left: states()
                .map(|status| status.open_time_left)
                .min()
                .unwrap_or_default(),
            failures: states()
                .map(|status| status.consecutive_failures)
                .min()
                .unwrap_or_default(),
            at_once: self.queue.max_concurrent(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.waiting(),
            retries: self.addresses.iter().map(|address| address.retries()).sum(),
            failovers,
            failovers_denied,
            addresses,
        }
    }
}

/// The meaning of a result for the circuit breaker. An invalid response concerns its document only.
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

fn may_succeed_elsewhere(fetched: &Result<UpstreamResponse, UpstreamFailure>) -> bool {
    match fetched {
        Ok(_) | Err(UpstreamFailure::CircuitOpen(_) | UpstreamFailure::QueueFull) => false,
        Err(
            UpstreamFailure::ErrorStatus { .. }
            | UpstreamFailure::Unreachable(_)
            | UpstreamFailure::Timeout(_)
            | UpstreamFailure::Invalid(_),
        ) => true,
    }
}
