//! The addresses of the backend: which one gets the next request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use scoregate_base::clock::Clock;

use super::states::{AddressChange, AddressGrant, AddressStates};
use super::states::{AddressRules, AddressStatus};
use crate::upstream::UpstreamFailure;
use crate::upstream::circuit_breaker::BreakerSignal;

/// The addresses of a backend and their states.
pub struct AddressBook {
    names: Vec<Arc<str>>,
    states: Mutex<AddressStates>,
    random: AtomicU64,
    clock: Clock,
}

/// A request in flight. However it ends, the circuit breaker of its address gets its result.
pub(in crate::upstream) struct AddressPermit<'b> {
    book: &'b AddressBook,
    grant: AddressGrant,
    pub(in crate::upstream) signal: BreakerSignal,
    /// Why it failed.
    pub(in crate::upstream) failure: Option<UpstreamFailure>,
}

impl AddressBook {
    /// Addresses by name and priority. `seed` is random.
    pub fn new(addresses: &[(Arc<str>, u8)], rules: AddressRules, seed: u64, clock: Clock) -> Self {
        let priorities: Vec<u8> = addresses.iter().map(|(_, priority)| *priority).collect();
        let states = Mutex::new(AddressStates::new(&priorities, rules, clock.now().mono));
        let names = addresses.iter().map(|(name, _)| Arc::clone(name)).collect();
        Self {
            names,
            states,
            random: AtomicU64::new(seed),
            clock,
        }
    }

    /// How long no request may be sent; `None` if one may.
    pub(in crate::upstream) fn wait(&self) -> Option<Duration> {
        self.states.lock().wait(self.clock.now().mono)
    }

    /// Grants a request, if possible to the address of this name, or returns how long none may be sent.
    pub(in crate::upstream) fn begin(
        &self,
        preferred: Option<&str>,
    ) -> Result<AddressPermit<'_>, Duration> {
        let preferred = self
            .names
            .iter()
            .position(|name| Some(&**name) == preferred);
        let draws = self.draws();
        let now = self.clock.now().mono;
        let grant = self.states.lock().begin(preferred, draws, now)?;
        Ok(self.permit(grant))
    }

    /// Grants a failover to an address that this fetch has not tried.
    pub(in crate::upstream) fn fail_over(&self, tried: &[usize]) -> Option<AddressPermit<'_>> {
        let draws = self.draws();
        let now = self.clock.now().mono;
        let grant = self.states.lock().fail_over(tried, draws, now)?;
        tracing::debug!(
            address = self.name(grant.index),
            "request repeated at another address"
        );
        Some(self.permit(grant))
    }

    /// Records the result of a health check, made here or elsewhere.
    pub fn record_check(&self, index: usize, result: Result<(), String>) {
        let reason = result.clone().err().unwrap_or_default();
        let now = self.clock.now().mono;
        let changed = self.states.lock().record_check(index, result, now);
        self.report(index, changed, &reason);
    }

    /// The names and states of the addresses.
    pub(in crate::upstream) fn status(&self) -> Vec<(Arc<str>, AddressStatus)> {
        let status = self.states.lock().status(self.clock.now().mono);
        self.names.iter().cloned().zip(status).collect()
    }

    /// Failovers so far, and those that the budget did not allow.
    pub(in crate::upstream) fn failovers(&self) -> (u64, u64) {
        self.states.lock().failovers()
    }

    fn permit(&self, grant: AddressGrant) -> AddressPermit<'_> {
        AddressPermit {
            book: self,
            grant,
            signal: BreakerSignal::None,
            failure: None,
        }
    }

    fn report(&self, index: usize, changed: Option<AddressChange>, reason: &str) {
        let address = self.name(index);
        match changed {
            Some(AddressChange::BreakerOpened) => {
                tracing::warn!(address, reason, "circuit breaker opened");
            }
            Some(AddressChange::BreakerClosed) => tracing::info!(address, "circuit breaker closed"),
            Some(AddressChange::Unhealthy) => {
                tracing::warn!(address, reason, "backend address unhealthy");
            }
            Some(AddressChange::Healthy) => tracing::info!(address, "backend address healthy"),
            None => {}
        }
    }

    fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", |name| name)
    }

    /// Two random numbers: the generator `SplitMix64`.
    fn draws(&self) -> [u32; 2] {
        let mut word = self
            .random
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^= word >> 31;
        [word & u64::from(u32::MAX), word >> 32].map(|half| u32::try_from(half).unwrap_or(u32::MAX))
    }
}

impl AddressPermit<'_> {
    /// The number of the address.
    pub(in crate::upstream) fn index(&self) -> usize {
        self.grant.index
    }
}

impl Drop for AddressPermit<'_> {
    fn drop(&mut self) {
        let now = self.book.clock.now().mono;
        let changed = self.book.states.lock().end(self.grant, self.signal, now);
        let reason = self
            .failure
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        self.book.report(self.grant.index, changed, &reason);
    }
}
