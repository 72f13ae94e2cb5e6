//! Protects the backend: a queue by priority with limited concurrency, and a circuit breaker.
//!
//! A request that may not be sent fails at once and costs the backend nothing. There are no retries: at such backends
//! a GET may have side effects. (`connections` retries once on a connection that was closed while idle.) Failures are
//! handled in `documents`.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::clock::Clock;
use crate::routes::DocumentKey;

use super::circuit_breaker::{BreakerPermission, BreakerSignal, BreakerState, CircuitBreaker};
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

/// A backend with queue and circuit breaker.
pub struct ProtectedUpstream {
    backend: Arc<dyn Upstream>,
    protection: ProtectionConfig,
    queue: FetchQueue,
    breaker: Mutex<CircuitBreaker>,
    clock: Clock,
}

/// The state of queue and circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionStatus {
    /// State of the circuit breaker.
    pub breaker: BreakerState,
    /// Remaining open time.
    pub open_time_left: Duration,
    /// Consecutive failures.
    pub failures: u32,
    /// Maximum number of concurrent requests.
    pub at_once: usize,
    /// Requests in flight.
    pub in_flight: usize,
    /// Requests in the queue.
    pub queued: usize,
    /// Requests retried because their connection was being closed.
    pub retries: u64,
}

/// A request in flight. However it ends, the breaker gets its result.
struct RequestPermit<'p> {
    protected: &'p ProtectedUpstream,
    permission: BreakerPermission,
    signal: BreakerSignal,
    failure: Option<UpstreamFailure>,
}

impl ProtectedUpstream {
    /// Protects `backend`.
    pub fn new(backend: Arc<dyn Upstream>, protection: ProtectionConfig, clock: Clock) -> Self {
        let (queue, breaker) = (FetchQueue::new(protection.max_concurrent), Mutex::default());
        Self { backend, protection, queue, breaker, clock }
    }

    /// Requests a document; waits in the queue first.
    pub async fn fetch(
        &self,
        request: UpstreamRequest<'_>,
        priority: &CurrentPriority,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        // Requests do not queue while the breaker is open.
        let now = self.clock.now().mono;
        if let BreakerPermission::Refused(wait) = self.breaker().request(now).1 {
            return Err(UpstreamFailure::CircuitOpen(wait));
        }
        let slot =
            self.clock.within(self.protection.queue_timeout, self.queue.acquire(priority.clone())).await;
        let _slot = slot.ok().and_then(Result::ok).ok_or(UpstreamFailure::QueueFull)?;
        let mut permit = self.permit()?;
        let fetched = self.backend.fetch(request).await;
        permit.signal = breaker_signal(&fetched);
        permit.failure = fetched.as_ref().err().cloned();
        drop(permit);
        fetched
    }

    /// Whether the circuit breaker is open, so that a request would fail at once.
    pub fn is_open(&self) -> bool {
        matches!(self.breaker().request(self.clock.now().mono).1, BreakerPermission::Refused(_))
    }

    /// The address of the backend.
    pub fn address(&self) -> String {
        self.backend.address()
    }

    /// Whether its list of models is complete.
    pub fn lists_all_models(&self) -> bool {
        self.backend.lists_all_models()
    }

    /// Whether the backend may have a document.
    pub fn may_have(&self, key: &DocumentKey) -> bool {
        self.backend.may_have(key)
    }

    /// The current state.
    pub fn status(&self) -> ProtectionStatus {
        let (breaker, now) = (*self.breaker(), self.clock.now().mono);
        ProtectionStatus {
            breaker: breaker.state(now),
            open_time_left: breaker.open_time_left(now),
            failures: breaker.failures(),
            at_once: self.queue.max_concurrent(),
            in_flight: self.queue.in_flight(),
            queued: self.queue.waiting(),
            retries: self.backend.retries(),
        }
    }

    fn permit(&self) -> Result<RequestPermit<'_>, UpstreamFailure> {
        let mut breaker = self.breaker();
        let (next, permission) = breaker.request(self.clock.now().mono);
        if let BreakerPermission::Refused(wait) = permission {
            return Err(UpstreamFailure::CircuitOpen(wait));
        }
        *breaker = next;
        Ok(RequestPermit { protected: self, permission, signal: BreakerSignal::None, failure: None })
    }

    /// A step of the breaker is one assignment, so a panic leaves nothing half changed.
    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock()
    }
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        let now = self.protected.clock.now().mono;
        let mut breaker = self.protected.breaker();
        let before = *breaker;
        *breaker = before.record(self.permission, self.signal, now);
        let after = *breaker;
        drop(breaker);
        match (before.state(now), after.state(now)) {
            (BreakerState::Closed, BreakerState::Open) => {
                let reason = self.failure.as_ref().map(ToString::to_string).unwrap_or_default();
                tracing::warn!(reason, "circuit breaker opened");
            }
            (BreakerState::HalfOpen, BreakerState::Closed) => tracing::info!("circuit breaker closed"),
            (BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Open, _) => {}
        }
    }
}

/// The meaning of a result for the breaker. An invalid response concerns its document only.
fn breaker_signal(fetched: &Result<UpstreamResponse, UpstreamFailure>) -> BreakerSignal {
    match fetched {
        Ok(_) => BreakerSignal::Good,
        Err(UpstreamFailure::ErrorStatus { retry_after, .. }) => BreakerSignal::Bad(*retry_after),
        Err(UpstreamFailure::Unreachable(_) | UpstreamFailure::Timeout(_)) => BreakerSignal::Bad(None),
        Err(UpstreamFailure::Invalid(_) | UpstreamFailure::CircuitOpen(_) | UpstreamFailure::QueueFull) => {
            BreakerSignal::None
        }
    }
}
