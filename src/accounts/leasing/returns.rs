//! Returns units and shares of minutes to the ledger: at shutdown, after a change of terms, and when other gateways need
//! them.

use std::sync::Arc;

use crate::accounts::key_directory::KeyDirectory;
use crate::accounts::shared_minutes::SharedMinutes;
use crate::instruments::{StoreWork, UnitUse};
use scoregate_store::{LedgerExchange, LedgerReport};

use super::leases::Leases;

/// Number of applications per ledger call at shutdown. A shared ledger has one timeout for each call, and what a failed one
/// does not return is lost to the callers.
const RETURNS_AT_ONCE: usize = 256;

impl Leases {
    /// Returns what other gateways may use: all that was leased under other terms, shares of minutes that they need, and
    /// idle ones. Called several times a second.
    pub async fn return_unused(self: &Arc<Self>, key_directory: &KeyDirectory) {
        self.return_outdated(key_directory);
        self.return_shares().await;
    }

    fn return_outdated(self: &Arc<Self>, key_directory: &KeyDirectory) {
        for (account, units) in key_directory.take_changed() {
            let now = self.clock.now();
            let mut state = account.state();
            if state.call().is_some() || !self.health.may_try(now.mono) {
                drop(state);
                key_directory.list_changed(account, units);
                continue;
            }
            let report = SharedMinutes::release(&account, &mut state, false, now);
            let (day, returned) = state.day().release();
            state.set_day(day);
            self.instruments.units(UnitUse::Returned, units);
            self.begin(&account, state, LedgerReport { totals: returned.unwrap_or(report.totals), ..report });
        }
    }

    async fn return_shares(self: &Arc<Self>) {
        if !self.minutes.has_shares() || self.health.is_unreachable() {
            return;
        }
        let recalled = match self.ledger.recalled(self.node).await {
            Ok(recalled) => recalled.into_iter().collect(),
            Err(error) => {
                tracing::debug!(%error, "recalled shares of minutes cannot be read");
                return;
            }
        };
        let now = self.clock.now();
        for account in self.minutes.to_return(&recalled, now.mono) {
            let mut state = account.state();
            if state.call().is_none() && self.health.may_try(now.mono) {
                let in_use = state.uses_share(now.mono);
                let report = SharedMinutes::release(&account, &mut state, in_use, now);
                self.begin(&account, state, report);
            }
        }
    }

    /// Returns all leased and unspent units, and saves uncharged ones for the next start. Units that cannot be
    /// returned are unavailable to their application until midnight.
    pub async fn drain(&self, key_directory: &KeyDirectory) {
        // Nothing is leased from here on.
        self.failed_lease.store(None);
        let is_away = !self.return_leases(key_directory).await || self.is_unreachable();
        self.grace.finish(&*self.ledger, is_away, self.clock.now().wall.day()).await;
    }

    /// Returns whether the ledger answered, if there was anything to return.
    async fn return_leases(&self, key_directory: &KeyDirectory) -> bool {
        let (reports, units) = key_directory.drain();
        let started = self.clock.now();
        let shares = self.minutes.drain(started);
        if reports.is_empty() && shares.is_empty() {
            return true;
        }
        let returning = async {
            for reports in reports.chunks(RETURNS_AT_ONCE).chain(shares.chunks(RETURNS_AT_ONCE)) {
                let (today, reports) = (started.wall.day(), reports.to_vec());
                // A database that does not answer would delay the shutdown by its timeout for every chunk.
                self.ledger.exchange(LedgerExchange { node: self.node, today, reports }).await?;
            }
            Ok(())
        };
        let returned = self.instruments.measured(&self.clock, StoreWork::GiveBack, returning).await;
        let is_returned = returned.is_ok();
        match returned {
            Ok(()) => self.instruments.units(UnitUse::Returned, units),
            Err(error) => {
                self.instruments.units(UnitUse::Lost, units);
                tracing::error!(%error, units, "leased units could not be returned");
            }
        }
        is_returned
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::accounts::TermsByTier;
    use crate::accounts::sample::stored;
    use crate::instruments::Instruments;
    use scoregate_base::clock::{Clock, Day, Wall};
    use scoregate_base::keys::{ApplicationId, Digest, standard_tiers};
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::{Ledger, LedgerExchangeReply, StoreError, StoreFuture, StoredApplication};

    /// A ledger that cannot be reached, with the number of calls.
    #[derive(Default)]
    struct UnreachableLedger(AtomicU32);

    impl Ledger for UnreachableLedger {
        fn day(&self) -> StoreFuture<'_, Option<Day>> {
            Box::pin(std::future::ready(Ok(None)))
        }

        fn exchange(&self, _: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            self.0.fetch_add(1, Ordering::Relaxed);
            let error = StoreError::Unavailable { doing: "exchange", reason: "it is unreachable".into() };
            Box::pin(std::future::ready(Err(error)))
        }

        fn recalled(&self, _: u64) -> StoreFuture<'_, Vec<ApplicationId>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }
    }

    #[tokio::test]
    async fn a_shutdown_calls_an_unreachable_ledger_once() {
        let (clock, _) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let today = clock.now().wall.day();
        let (directory, terms) = (KeyDirectory::default(), TermsByTier::new(&standard_tiers(), 60));
        for number in 0..=2 * RETURNS_AT_ONCE as u64 {
            let id = ApplicationId::mint().unwrap();
            let application = StoredApplication { id, ..stored("pro", &[&number.to_string()]) };
            directory.apply(&application, &terms, today);
            let account = directory.find(&Digest::of(&number.to_string())).unwrap().account;
            let mut state = account.state();
            let leased = state.day().grant(today, 5, 0, 5);
            state.set_day(leased);
        }
        let ledger = Arc::new(UnreachableLedger::default());
        let instruments = Arc::new(Instruments::new(&MetricsRegistry::default(), &[]));
        let leases =
            Leases::new(Arc::clone(&ledger) as Arc<dyn Ledger>, 7, Box::new(drop), clock, instruments);
        leases.drain(&directory).await;
        assert_eq!(ledger.0.load(Ordering::Relaxed), 1);
    }
}
