//! Whether this gateway can lease units. Readiness, which is decided in `admin::readiness`, depends on this.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwapOption;

use crate::instruments::StoreInstruments;
use scoregate_store::Ledger;

/// This process's access to a shared store.
#[derive(Debug, Default)]
pub struct LedgerAccess {
    /// Whether an exchange has succeeded since startup.
    has_leased: AtomicBool,
    /// The reason why a reachable store refuses connections.
    refusal: ArcSwapOption<String>,
}

/// Facts that determine whether this gateway can serve requests for data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts from different places"
)]
pub struct ServingFacts {
    /// No other gateway uses the store.
    pub is_alone: bool,
    /// The keys are from the local copy, because the store has not been read since startup.
    pub is_copied: bool,
    /// The reason why a reachable store refuses the connections of this gateway.
    pub refusal: Option<String>,
    /// An exchange with the ledger has succeeded since startup.
    pub has_leased: bool,
    /// This gateway holds a share of the grace of the day.
    pub holds_grace_share: bool,
    /// The ledger cannot be used, and according to the last claims, only other gateways hold grace shares.
    pub others_hold_grace: bool,
}

impl LedgerAccess {
    /// Records an exchange with the ledger.
    pub fn leased(&self) {
        // The flag is only ever set, and no other value is read with it, so no ordering is needed.
        self.has_leased.store(true, Ordering::Relaxed);
    }

    pub fn has_leased(&self) -> bool {
        self.has_leased.load(Ordering::Relaxed)
    }

    /// The reason why a reachable store refuses connections.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.load().as_deref().cloned()
    }

    /// Tests the connection to the store until a connection and a lease have succeeded.
    pub async fn check(&self, ledger: &dyn Ledger, instruments: &StoreInstruments) {
        if self.refusal.load().is_none() && self.has_leased() {
            return;
        }
        // If the store is unreachable, nothing changes, because it may be unreachable for every gateway.
        let Ok(refusal) = ledger.refusal().await else {
            return;
        };
        // The refusal is compared with the previous one, so that only changes are logged, although the check runs every
        // second.
        let before = self.refusal.swap(refusal.clone().map(Arc::new));
        match (before, refusal) {
            (None, Some(reason)) => {
                instruments.ledger_unreachable(true);
                tracing::error!(
                    %reason,
                    "the database is up but refuses connections from this gateway; no units leased yet, retrying every second"
                );
            }
            (Some(_), None) => {
                instruments.ledger_unreachable(false);
                tracing::info!("the database accepts the connections of this gateway");
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use parking_lot::Mutex;

    use crate::instruments::LedgerInstruments;
    use crate::quota::leases::Leases;
    use crate::quota::ledger_access::*;
    use crate::quota::ledger_calls::LedgerCalls;
    use scoregate_base::clock::{Clock, Day, Wall};
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::{LedgerExchange, LedgerExchangeReply, StoreError, StoreFuture};

    /// A ledger that answers attempts to connect with these results, starting with the last.
    struct ScriptedLedger(Mutex<Vec<Result<Option<String>, ()>>>);

    fn unreachable() -> StoreError {
        StoreError::Unavailable {
            doing: "connect",
            reason: "no answer".into(),
        }
    }

    impl Ledger for ScriptedLedger {
        fn day(&self) -> StoreFuture<'_, Option<Day>> {
            Box::pin(async { Err(unreachable()) })
        }

        fn exchange(&self, _: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            Box::pin(async { Err(unreachable()) })
        }

        fn refusal(&self) -> StoreFuture<'_, Option<String>> {
            let answer = self.0.lock().pop().expect("no further attempt");
            Box::pin(async move { answer.map_err(|()| unreachable()) })
        }
    }

    #[tokio::test]
    async fn a_refusal_lasts_until_a_connection_succeeds_and_after_a_lease_no_other_attempt_is_made()
     {
        let refused = || Some("no connection is left".to_owned());
        let script = vec![Ok(None), Err(()), Ok(refused()), Err(())];
        let calls = LedgerCalls::new(
            Arc::new(ScriptedLedger(Mutex::new(script))),
            7,
            Box::new(|_| ()),
            Clock::manual(Wall::from_seconds(0)).0,
            Arc::new(LedgerInstruments::new(&MetricsRegistry::default())),
        );
        let leases = Leases::of(calls.shared(NonZeroU32::new(2).unwrap(), Duration::from_secs(2)));
        for expected in [None, refused(), refused()] {
            leases.check_access().await;
            let facts = leases.serving_facts();
            assert_eq!(
                (facts.refusal, facts.is_alone, facts.has_leased),
                (expected, false, false)
            );
        }
        leases.calls.access.leased();
        for _ in 0..2 {
            leases.check_access().await;
            assert_eq!(leases.serving_facts().refusal, None);
        }
        assert!(leases.serving_facts().has_leased);
    }
}
