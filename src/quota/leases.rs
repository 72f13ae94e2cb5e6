//! Units for requests: leased units, and grace while the ledger is unreachable. Requests that wait for a lease of the
//! same application share a call, but have separate deadlines.

use std::{num::NonZeroU32, sync::Arc};

use crate::instruments::{StoreWork, UnitUse, UnreachableDecision};
use scoregate_base::{clock::Now, limits::LeaseAvailability};
use scoregate_store::{LedgerExchange, LedgerReport};

use crate::accounts::{Account, KeyDirectory, LeaseCall};

use crate::quota::{ledger_access::ServingFacts, ledger_calls::LedgerCalls};

/// Number of applications per ledger call at shutdown. Each call to a shared ledger has one timeout, and applications
/// lose the units that a failed call does not return.
const RETURNS_AT_ONCE: usize = 256;

/// The ledger did not answer in time or could not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lease from the ledger")]
pub struct LeaseUnavailable;

/// Units for requests.
pub struct Leases {
    /// The calls of this process.
    pub(crate) calls: Arc<LedgerCalls>,
}

impl Leases {
    /// Uses these calls for leases.
    pub fn of(calls: LedgerCalls) -> Self {
        Self {
            calls: Arc::new(calls),
        }
    }

    /// The number of gateways that share minute limits; `None` if this is the only gateway.
    pub(crate) fn gateways(&self) -> Option<NonZeroU32> {
        self.calls.minutes.gateways()
    }

    /// Waits for the ledger call in flight for the account, or for a new one, and returns the time when the wait ended. Does not
    /// wait while the ledger is unreachable.
    pub(crate) async fn lease(&self, account: &Arc<Account>) -> Result<Now, LeaseUnavailable> {
        let Some(LeaseCall(mut call)) = self.calls.current(account) else {
            // The next probe requests units for the account that last needed units, because this account can use them.
            self.calls.health.is_needed_by(account);
            return Err(LeaseUnavailable);
        };
        self.calls.instruments.lease_waits.increment(1);
        match call.wait_for(Option::is_some).await {
            Ok(granted) if *granted == Some(true) => Ok(self.calls.clock.now()),
            Ok(_) | Err(_) => Err(LeaseUnavailable),
        }
    }

    /// Starts a ledger call for the account unless one is in flight, without waiting for it.
    pub(crate) fn lease_ahead(&self, account: &Arc<Account>) {
        drop(self.calls.current(account));
    }

    /// Facts that determine whether this gateway can serve requests for data.
    pub fn serving_facts(&self) -> ServingFacts {
        let access = &self.calls.access;
        ServingFacts {
            is_alone: self.gateways().is_none_or(|gateways| gateways.get() == 1),
            is_copied: self.calls.key_freshness.is_copied(),
            refusal: access.refusal(),
            has_leased: access.has_leased(),
            holds_grace_share: self.holds_grace_share(),
            others_hold_grace: self.is_unreachable() && self.calls.grace.others_hold(),
        }
    }

    /// Whether this gateway holds a share of today's grace, so that it can deliver to paid applications without the
    /// ledger.
    pub fn holds_grace_share(&self) -> bool {
        self.calls
            .grace
            .book
            .holds(self.calls.clock.now().wall.day())
    }

    /// Whether the ledger is known to be unusable now.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.calls.is_unreachable()
    }

    /// Units that the account may use without the ledger.
    pub(crate) fn without_ledger(&self, account: &Account) -> LeaseAvailability {
        self.unreachable_with(
            self.calls
                .grace
                .book
                .part(account, self.calls.clock.now().wall.day()),
        )
    }

    fn unreachable_with(&self, grace: u32) -> LeaseAvailability {
        LeaseAvailability::Unreachable {
            grace,
            since: self.calls.unreachable_since(),
        }
    }

    /// Reserves units that the account may owe, and returns the units that it may then use. If the reservation fails, the
    /// returned units include no grace.
    pub(crate) async fn reserve_grace(&self, account: &Arc<Account>) -> LeaseAvailability {
        // The disk may hang, so a request waits for the disk no longer than for the ledger.
        let reserving = self
            .calls
            .clock
            .within(self.calls.timeout, self.calls.grace.reserve(account));
        let is_reserved = reserving.await.unwrap_or(false);
        if is_reserved {
            self.without_ledger(account)
        } else {
            self.unreachable_with(0)
        }
    }

    /// Counts a unit that is delivered on grace.
    pub(crate) fn delivers_on_grace(&self) {
        self.calls
            .instruments
            .while_unreachable
            .count(UnreachableDecision::Grace);
    }

    /// Counts a request that found no unit or no token while the ledger was unreachable.
    pub(crate) fn refused(&self) {
        self.calls
            .instruments
            .while_unreachable
            .count(UnreachableDecision::Refused);
    }

    /// Charges units delivered on grace once the ledger is reachable. Called every few seconds.
    pub async fn charge_owed(&self) {
        for account in self
            .calls
            .grace
            .uncharged_on(self.calls.clock.now().wall.day())
            .await
        {
            self.lease_ahead(&account);
        }
    }

    /// Returns all leased and unspent units, and saves uncharged units for the next start. If units cannot be returned,
    /// the application cannot use them until midnight.
    pub async fn drain(&self, key_directory: &KeyDirectory) {
        *self.calls.is_drained.lock().await = true;
        // The ledger is probed only while a failure is recorded. Clearing the failure prevents probes from leasing more units.
        let was_unreachable = self.is_unreachable();
        self.calls.health.clear();
        let is_away = !self.return_leases(key_directory).await || was_unreachable;
        let today = self.calls.clock.now().wall.day();
        self.calls
            .grace
            .finish(&*self.calls.ledger, is_away, today)
            .await;
    }

    /// Returns leased units and tokens. The result is `false` if there were any and the ledger did not answer.
    async fn return_leases(&self, key_directory: &KeyDirectory) -> bool {
        let calls = &self.calls;
        // Units are removed from the balances before they are returned, so that no unit is both spent and returned.
        let (reports, units) = key_directory.drain();
        let started = calls.clock.now();
        let shares = calls.minutes.drain(started);
        if reports.is_empty() && shares.is_empty() {
            return true;
        }
        let returning = async {
            for reports in reports
                .chunks(RETURNS_AT_ONCE)
                .chain(shares.chunks(RETURNS_AT_ONCE))
            {
                let today = started.wall.day();
                let mut reports = reports.to_vec();
                while !reports.is_empty() {
                    let exchange = LedgerExchange {
                        node: calls.node,
                        today,
                        reports: reports.clone(),
                    };
                    // A database that does not answer would delay the shutdown by one timeout per chunk.
                    let reply = calls.ledger.exchange(exchange).await?;
                    let outcomes = reports.iter().zip(&reply.outcomes);
                    reports = outcomes
                        .filter_map(|(last, outcome)| LedgerReport::of_unknown_units(last, outcome))
                        .collect();
                }
            }
            Ok(())
        };
        let returned = calls
            .instruments
            .store
            .measured(&calls.clock, StoreWork::GiveBack, returning)
            .await;
        let is_returned = returned.is_ok();
        match returned {
            Ok(()) => calls.instruments.units(UnitUse::Returned, units),
            Err(error) => {
                calls.instruments.units(UnitUse::Lost, units);
                tracing::error!(%error, units, "leased units could not be returned");
            }
        }
        is_returned
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use crate::accounts::{TermsByTier, stored};
    use crate::instruments::LedgerInstruments;
    use crate::quota::leases::*;
    use scoregate_base::clock::{Clock, Day, Wall};
    use scoregate_base::keys::{ApplicationId, Digest};
    use scoregate_base::plans::standard_tiers;
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::{
        Ledger, LedgerExchangeReply, StoreError, StoreFuture, StoredApplication,
    };

    /// An unreachable ledger that counts calls.
    #[derive(Default)]
    struct UnreachableLedger(AtomicU32);

    impl Ledger for UnreachableLedger {
        fn day(&self) -> StoreFuture<'_, Option<Day>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn exchange(&self, _: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let error = StoreError::Unavailable {
                doing: "exchange",
                reason: "it is unreachable".into(),
            };
            Box::pin(std::future::ready(Err(error)))
        }
    }

    #[tokio::test]
    async fn parts_of_a_minute_begin_when_the_ledger_becomes_unreachable() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let directory = KeyDirectory::default();
        let terms = TermsByTier::new(&standard_tiers(), 60);
        assert!(directory.apply(&stored("pro", &["key"]), &terms, clock.now().wall.day()));
        let account = directory.find(&Digest::of("key")).unwrap().account;
        let instruments = LedgerInstruments::new(&MetricsRegistry::default());
        let tasks = tokio_util::task::TaskTracker::new();
        let calls = LedgerCalls::new(
            Arc::new(UnreachableLedger::default()),
            7,
            Box::new(move |work| drop(tasks.spawn(work))),
            clock.clone(),
            Arc::new(instruments),
        );
        let timeout = Duration::from_secs(2);
        let leases = Leases::of(calls.shared(NonZeroU32::new(3).unwrap(), timeout));
        let failed_at = clock.mono();
        leases.lease(&account).await.unwrap_err();
        manual.advance(Duration::from_mins(1));
        leases.lease(&account).await.unwrap_err();
        let LeaseAvailability::Unreachable { since, .. } = leases.without_ledger(&account) else {
            panic!("it is unreachable");
        };
        assert_eq!(since, failed_at);
    }

    #[tokio::test]
    async fn a_shutdown_calls_an_unreachable_ledger_once() {
        let (clock, _) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let today = clock.now().wall.day();
        let directory = KeyDirectory::default();
        let terms = TermsByTier::new(&standard_tiers(), 60);
        for number in 0..=2 * RETURNS_AT_ONCE as u64 {
            let id = ApplicationId::mint().unwrap();
            let application = StoredApplication {
                id,
                ..stored("pro", &[&number.to_string()])
            };
            directory.apply(&application, &terms, today);
            let account = directory
                .find(&Digest::of(&number.to_string()))
                .unwrap()
                .account;
            let mut state = account.state();
            let leased = state.day().grant(today, 5, 0, 5);
            state.set_day(leased);
        }
        let ledger = Arc::new(UnreachableLedger::default());
        let instruments = Arc::new(LedgerInstruments::new(&MetricsRegistry::default()));
        let unreachable: Arc<dyn Ledger> = Arc::clone(&ledger) as _;
        let leases = Leases::of(LedgerCalls::new(
            unreachable,
            7,
            Box::new(drop),
            clock,
            instruments,
        ));
        leases.drain(&directory).await;
        assert_eq!(ledger.0.load(Ordering::Relaxed), 1);
    }
}
