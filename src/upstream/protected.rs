//! The backend behind its protection: few questions at once, the most urgent first, none while it rests.
//!
//! A question that may not go out now fails at once and costs the backend nothing. There are no second tries: a GET may
//! have effects at such backends. (`connections` makes one, where a connection was closed that had answered before.)
//! Not for: what is done about a failure (`documents`).

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::clock::Clock;

use super::circuit_breaker::{BreakerPermission, BreakerSignal, BreakerState, CircuitBreaker};
use super::queue::{CurrentPriority, FetchQueue};
use super::{Upstream, UpstreamFailure, UpstreamRequest, UpstreamResponse};

/// How the backend is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionConfig {
    /// How many questions are under way at once.
    pub at_once: usize,
    /// How long a question waits for its turn.
    pub patience: Duration,
}

/// The backend, protected.
pub struct ProtectedUpstream {
    backend: Arc<dyn Upstream>,
    protection: ProtectionConfig,
    line: FetchQueue,
    breaker: Mutex<CircuitBreaker>,
    clock: Clock,
}

/// How it stands with the backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionStatus {
    /// Whether it is asked.
    pub breaker: BreakerState,
    /// How long it still rests.
    pub rest: Duration,
    /// How often in a row it has failed.
    pub failures: u32,
    /// How many questions may be under way at once.
    pub at_once: usize,
    /// How many are.
    pub under_way: usize,
    /// How many questions wait for their turn.
    pub waiting: usize,
    /// How many have gone out once more, because their connection was being closed.
    pub asked_again: u64,
}

/// A question on its way. However it ends, the breaker hears of it.
struct RequestPermit<'p> {
    protected: &'p ProtectedUpstream,
    permission: BreakerPermission,
    sign: BreakerSignal,
}

impl ProtectedUpstream {
    /// Protects `backend`.
    pub fn new(backend: Arc<dyn Upstream>, protection: ProtectionConfig, clock: Clock) -> Self {
        let (line, breaker) = (FetchQueue::new(protection.at_once), Mutex::default());
        Self { backend, protection, line, breaker, clock }
    }

    /// Asks for a document, when its turn has come.
    pub async fn fetch(
        &self,
        question: UpstreamRequest<'_>,
        urgent: &CurrentPriority,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        // Nobody waits in line for a backend that rests.
        let now = self.clock.now().mono;
        if let BreakerPermission::Refused(wait) = self.breaker().ask(now).1 {
            return Err(UpstreamFailure::CircuitOpen(wait));
        }
        let turn = self.clock.within(self.protection.patience, self.line.turn(urgent.clone())).await;
        let _turn = turn.ok().and_then(Result::ok).ok_or(UpstreamFailure::QueueFull)?;
        let mut pass = self.pass()?;
        let fetched = self.backend.fetch(question).await;
        pass.sign = sign(&fetched);
        drop(pass);
        fetched
    }

    /// Whether it is let rest, so that a question would fail at once.
    pub fn rests(&self) -> bool {
        matches!(self.breaker().ask(self.clock.now().mono).1, BreakerPermission::Refused(_))
    }

    /// Where it is.
    pub fn place(&self) -> String {
        self.backend.place()
    }

    /// Whether its list of models names all there are.
    pub fn lists_all_models(&self) -> bool {
        self.backend.lists_all_models()
    }

    /// How it stands.
    pub fn condition(&self) -> ProtectionStatus {
        let (breaker, now) = (*self.breaker(), self.clock.now().mono);
        ProtectionStatus {
            breaker: breaker.state(now),
            rest: breaker.rest(now),
            failures: breaker.failures(),
            at_once: self.line.at_once(),
            under_way: self.line.under_way(),
            waiting: self.line.waiting(),
            asked_again: self.backend.asked_again(),
        }
    }

    fn pass(&self) -> Result<RequestPermit<'_>, UpstreamFailure> {
        let mut breaker = self.breaker();
        let (asked, permission) = breaker.ask(self.clock.now().mono);
        if let BreakerPermission::Refused(wait) = permission {
            return Err(UpstreamFailure::CircuitOpen(wait));
        }
        *breaker = asked;
        Ok(RequestPermit { protected: self, permission, sign: BreakerSignal::None })
    }

    /// A step of the breaker is one assignment, so a panic elsewhere does no harm.
    fn breaker(&self) -> MutexGuard<'_, CircuitBreaker> {
        self.breaker.lock()
    }
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        let now = self.protected.clock.now().mono;
        let mut breaker = self.protected.breaker();
        let before = *breaker;
        *breaker = before.saw(self.permission, self.sign, now);
        let after = *breaker;
        drop(breaker);
        match (before.state(now), after.state(now)) {
            (BreakerState::Closed, BreakerState::Open) => {
                tracing::warn!("circuit breaker opened");
            }
            (BreakerState::HalfOpen, BreakerState::Closed) => tracing::info!("circuit breaker closed"),
            (BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Open, _) => {}
        }
    }
}

/// What the end of a question says of the backend's health. An answer that cannot be used is about its document.
fn sign(fetched: &Result<UpstreamResponse, UpstreamFailure>) -> BreakerSignal {
    match fetched {
        Ok(_) => BreakerSignal::Good,
        Err(UpstreamFailure::ErrorStatus { retry_after, .. }) => BreakerSignal::Bad(*retry_after),
        Err(UpstreamFailure::Unreachable(_) | UpstreamFailure::Timeout(_)) => BreakerSignal::Bad(None),
        Err(UpstreamFailure::Invalid(_) | UpstreamFailure::CircuitOpen(_) | UpstreamFailure::QueueFull) => {
            BreakerSignal::None
        }
    }
}
