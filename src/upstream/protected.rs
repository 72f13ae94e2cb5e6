//! Protects the backend with a priority queue, limited concurrency, and a circuit breaker for each address. A request
//! that must not be sent fails immediately and costs the backend nothing. If the backend has one address, requests are
//! not retried, because a GET may have side effects there. (`connections` retries once if an idle connection was
//! closed.) If it has several addresses, a failed request is retried at the next address. `documents` handles failures.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use scoregate_base::{clock::Clock, routes::DocumentKey};

use super::{
    Upstream, UpstreamFailure, UpstreamRequest, UpstreamResponse,
    addresses::{AddressStatus, Addresses},
    circuit_breaker::BreakerState,
    queue::{CurrentPriority, FetchQueue},
};

/// Limits for the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionConfig {
    /// Maximum number of concurrent requests.
    pub max_concurrent: usize,
    /// Maximum time in the queue.
    pub queue_timeout: Duration,
}

/// A backend with a queue and circuit breakers.
pub struct ProtectedUpstream {
    addresses: Addresses,
    failovers: AtomicU64,
    protection: ProtectionConfig,
    queue: FetchQueue,
    clock: Clock,
}

/// The state of the queue and the circuit breakers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectionStatus {
    /// The best state among the circuit breakers of the addresses: closed, then half-open, then open.
    pub breaker: BreakerState,
    /// Remaining time for which no address is used.
    pub open_time_left: Duration,
    /// Consecutive failures at the address with the fewest failures.
    pub failures: u32,
    /// Maximum number of concurrent requests.
    pub at_once: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests in the queue.
    pub queued: usize,
    /// Number of requests that were retried because their connection was being closed.
    pub retries: u64,
    /// Number of requests that were repeated at another address.
    pub failovers: u64,
    /// The addresses, in order of preference.
    pub addresses: Vec<AddressStatus>,
}

impl ProtectedUpstream {
    /// Protects a backend with these addresses.
    pub fn new(
        addresses: Vec<Arc<dyn Upstream>>,
        protection: ProtectionConfig,
        clock: Clock,
    ) -> Self {
        Self {
            addresses: Addresses::new(addresses, clock.clone()),
            failovers: AtomicU64::new(0),
            protection,
            queue: FetchQueue::new(protection.max_concurrent),
            clock,
        }
    }

    /// Requests a document after waiting in the queue. A failed request is repeated at other addresses until the queue timeout
    /// has passed.
    pub async fn fetch(
        &self,
        request: UpstreamRequest<'_>,
        priority: &CurrentPriority,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        // Requests do not queue while the circuit breakers of all addresses are open.
        if let Some(wait) = self.addresses.wait() {
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
        let mut tried = Vec::new();
        let mut permit = self.addresses.next(&tried).ok_or_else(|| {
            UpstreamFailure::CircuitOpen(self.addresses.wait().unwrap_or_default())
        })?;
        loop {
            tried.push(permit.index);
            let fetched = permit.fetch(request).await;
            if !may_succeed_elsewhere(&fetched) || self.clock.now().mono >= deadline {
                return fetched;
            }
            permit = match self.addresses.next(&tried) {
                Some(next) => next,
                None => return fetched,
            };
            self.failovers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the circuit breakers of all addresses are open, so that a request would fail immediately.
    pub fn is_open(&self) -> bool {
        self.addresses.wait().is_some()
    }

    /// The addresses of the backend.
    pub fn address(&self) -> String {
        let all: Vec<String> = self.addresses.upstreams().map(Upstream::address).collect();
        all.join(" ")
    }

    /// The request that the backend's first address would get.
    pub fn question(&self, request: UpstreamRequest<'_>) -> Vec<String> {
        self.first()
            .map(|address| address.question(request))
            .unwrap_or_default()
    }

    /// Whether the backend's list of models is complete.
    pub fn lists_all_models(&self) -> bool {
        self.first().is_some_and(Upstream::lists_all_models)
    }

    /// Whether the backend may have a document.
    pub fn may_have(&self, key: &DocumentKey) -> bool {
        self.first().is_some_and(|address| address.may_have(key))
    }

    fn first(&self) -> Option<&dyn Upstream> {
        self.addresses.upstreams().next()
    }

    /// The current state.
    pub fn status(&self) -> ProtectionStatus {
        let addresses = self.addresses.status();
        let breakers = addresses.iter().map(|address| address.breaker);
        let most_usable = breakers.min_by_key(|breaker| match breaker {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        });
        let open_times = addresses.iter().map(|address| address.open_time_left);
        let failures = addresses.iter().map(|address| address.consecutive_failures);
        ProtectionStatus {
            breaker: most_usable.unwrap_or(BreakerState::Closed),
            open_time_left: open_times.min().unwrap_or_default(),
            failures: failures.min().unwrap_or_default(),
            at_once: self.queue.max_concurrent(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.waiting(),
            retries: self.addresses.upstreams().map(Upstream::retries).sum(),
            failovers: self.failovers.load(Ordering::Relaxed),
            addresses,
        }
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
