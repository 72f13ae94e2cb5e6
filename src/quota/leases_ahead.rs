//! Before midnight, leases tomorrow's units for applications in use. The applications' first requests of the day then do not wait
//! for the ledger, and the calls of the gateways are spread over time.

use std::{sync::Arc, time::Duration};

use crate::{
    accounts::{Account, KeyDirectory, Terms},
    instruments::UnitUse,
};
use scoregate_base::{clock::Day, keys::ApplicationId, limits::DayBalance};
use scoregate_store::{LedgerExchange, LedgerReport, ReportOutcome, StoreResult};

use crate::quota::leases::Leases;

/// How long before midnight the first leases are due. The leases of the applications are spread between this time and
/// [`TO`].
const FROM: Duration = Duration::from_mins(5);
/// How long before midnight the last leases are due. Applications that are first used later get their leases at the
/// next check.
// There is a check every few seconds, so the last half minute allows several attempts.
const TO: Duration = Duration::from_secs(30);
/// Number of applications per ledger call.
// This limits the size of an exchange, which has one timeout.
const AT_ONCE: usize = 256;

impl Leases {
    /// Settles yesterday, and leases tomorrow's first units for applications that were used today and are due. Called
    /// every few seconds.
    pub async fn lease_tomorrow(&self, key_directory: &KeyDirectory) {
        self.settle_yesterday();
        let now = self.calls.clock.now().wall;
        let today = now.day();
        let left = now.day().end().since(now);
        let is_drained = self.calls.is_drained.lock().await;
        if left > FROM || *is_drained {
            return;
        }
        let tomorrow = today.next();
        let mut due = key_directory.used_on(today);
        due.retain(|account| {
            due_before_midnight(account.id) >= left && !account.state().is_leased_ahead(tomorrow)
        });
        for accounts in due.chunks(AT_ONCE) {
            if let Err(error) = self.lease_ahead_for(accounts, today, tomorrow).await {
                tracing::debug!(%error, "tomorrow's units cannot be leased yet");
                return;
            }
        }
    }

    async fn lease_ahead_for(
        &self,
        accounts: &[Arc<Account>],
        today: Day,
        tomorrow: Day,
    ) -> StoreResult<()> {
        let due: Vec<(&Arc<Account>, Arc<Terms>)> = accounts
            .iter()
            .map(|account| (account, Arc::clone(&account.terms())))
            .collect();
        let reports = due.iter().map(|(account, terms)| {
            let limits = terms.limits;
            let totals = DayBalance::opened(tomorrow, 0).report_ahead(limits.day);
            let units = LedgerReport::of_units(account.id, tomorrow, totals);
            LedgerReport {
                windows: limits.calendar.around(tomorrow).collect(),
                terms: Some(terms.assumed()),
                ..units
            }
        });
        let exchange = LedgerExchange {
            node: self.calls.node,
            today,
            reports: reports.collect(),
        };
        let exchanged = self.calls.ledger.exchange(exchange).await;
        let reply = exchanged.inspect_err(|_| {
            for account in accounts {
                account.call_failed(tomorrow);
            }
        })?;
        for ((account, terms), outcome) in due.iter().zip(reply.outcomes) {
            if let ReportOutcome::Applied { node, granted, .. } = outcome {
                // The terms may have changed during the call, so the units are recorded with the limits of the report.
                let units = account.lease_ahead(terms.limits, tomorrow, node, granted);
                self.calls.instruments.units(UnitUse::Leased, units);
            }
        }
        Ok(())
    }
}

/// How long before midnight the lease of tomorrow's units is due for an application.
fn due_before_midnight(id: ApplicationId) -> Duration {
    let span = u64::try_from(FROM.saturating_sub(TO).as_millis()).unwrap_or(u64::MAX);
    TO + Duration::from_millis(id.number() % span)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};
    use std::num::NonZeroU32;

    use parking_lot::Mutex;
    use tokio::sync::Semaphore;
    use tokio_util::task::TaskTracker;

    use crate::accounts::{TermsByTier, stored};
    use crate::instruments::LedgerInstruments;
    use crate::quota::leases_ahead::*;
    use crate::quota::ledger_calls::LedgerCalls;
    use scoregate_base::clock::{Clock, ManualClock, Wall};
    use scoregate_base::keys::Digest;
    use scoregate_base::limits::{
        AdmissionVerdict, DayTotals, LeaseAvailability, MinuteGrant, MinuteReport, NodeTotals,
    };
    use scoregate_base::plans::standard_tiers;
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::{Ledger, LedgerExchangeReply, StoreFuture};

    const KEY: &str = "key";

    /// A ledger for one application, which grants the whole minute limit to one gateway. Replies about days ahead wait for a
    /// permit.
    struct OneNodeLedger {
        days: Mutex<BTreeMap<Day, (DayTotals, NodeTotals)>>,
        ahead: Semaphore,
    }

    impl Ledger for OneNodeLedger {
        fn day(&self) -> StoreFuture<'_, Option<Day>> {
            Box::pin(async { Ok(None) })
        }

        fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            let LedgerExchange { today, reports, .. } = exchange;
            let days: HashSet<Day> = reports.iter().map(|report| report.day).collect();
            assert_eq!(days.len(), reports.len(), "a day is reported twice");
            let outcome = |report: &LedgerReport| {
                let mut days = self.days.lock();
                let row = days.entry(report.day).or_default();
                *row = row.0.apply(row.1, &report.totals);
                ReportOutcome::Applied {
                    node: row.1,
                    granted: row.0.granted,
                    has_outdated_terms: false,
                }
            };
            let outcomes = reports.iter().map(outcome).collect();
            let minutes = reports
                .iter()
                .map(|report| report.minute.as_ref().map(granted))
                .collect();
            Box::pin(async move {
                if days.iter().any(|day| *day > today) {
                    drop(self.ahead.acquire().await);
                }
                Ok(LedgerExchangeReply {
                    today,
                    outcomes,
                    windows: Vec::new(),
                    minutes,
                })
            })
        }
    }

    /// A grant from a pool that is always full.
    fn granted(report: &MinuteReport) -> MinuteGrant {
        MinuteGrant {
            tokens: report.wanted,
            elsewhere: i64::from(report.limit) * 1_000_000,
            next: Duration::ZERO,
        }
    }

    struct MidnightGateway {
        ledger: Arc<OneNodeLedger>,
        leases: Leases,
        directory: KeyDirectory,
        account: Arc<Account>,
        clock: Clock,
        manual: ManualClock,
    }

    impl MidnightGateway {
        /// A gateway with a paid application at a time when tomorrow's units are due.
        fn new(replies_ahead: usize) -> Self {
            let (clock, manual) =
                Clock::manual(Wall::parse_rfc3339("2026-11-21T23:59:30Z").unwrap());
            let directory = KeyDirectory::default();
            let terms = TermsByTier::new(&standard_tiers(), 60);
            assert!(directory.apply(&stored("pro", &[KEY]), &terms, clock.now().wall.day()));
            let account = directory.find(&Digest::of(KEY)).unwrap().account;
            let ahead = Semaphore::new(replies_ahead);
            let ledger = Arc::new(OneNodeLedger {
                days: Mutex::default(),
                ahead,
            });
            let tasks = TaskTracker::new();
            let spawn = Box::new(move |work| drop(tasks.spawn(work)));
            let instruments = Arc::new(LedgerInstruments::new(&MetricsRegistry::default()));
            let engine = Arc::clone(&ledger) as Arc<dyn Ledger>;
            let calls = LedgerCalls::new(engine, 7, spawn, clock.clone(), instruments);
            let leases = Leases::of(calls.shared(NonZeroU32::MIN, Duration::from_secs(2)));
            Self {
                ledger,
                leases,
                directory,
                account,
                clock,
                manual,
            }
        }

        async fn deliver(&self, units: u32) {
            let limits = self.account.terms().limits;
            let mut delivered = 0;
            while delivered < units {
                let now = self.clock.now();
                let gateways = self.leases.gateways();
                let reachable = LeaseAvailability::Reachable;
                let verdict = self
                    .account
                    .state()
                    .admit(&limits, gateways, now, false, reachable);
                if let AdmissionVerdict::Admitted { day, .. } = verdict {
                    self.account.state().settle(day, true);
                    delivered += 1;
                } else {
                    assert_eq!(verdict, AdmissionVerdict::LeaseFirst);
                    self.leases.lease(&self.account).await.unwrap();
                }
            }
        }

        async fn ends_calls(&self) {
            while self.account.is_leasing() {
                tokio::task::yield_now().await;
            }
        }

        /// Shuts down. Returns the number of units granted today that were not given back.
        async fn charged(&self) -> u64 {
            self.ends_calls().await;
            self.leases.drain(&self.directory).await;
            self.ledger
                .days
                .lock()
                .get(&self.clock.now().wall.day())
                .map_or(0, |row| row.0.granted)
        }
    }

    #[tokio::test]
    async fn units_leased_ahead_are_charged_once_if_tokens_of_the_minute_are_returned_first() {
        let gateway = MidnightGateway::new(1);
        gateway.deliver(1).await;
        gateway.leases.lease_tomorrow(&gateway.directory).await;
        let tomorrow = gateway.clock.now().wall.day().next();
        assert!(gateway.account.state().is_leased_ahead(tomorrow));
        gateway.manual.advance(Duration::from_mins(1));
        gateway.leases.return_unused(&gateway.directory);
        assert!(gateway.account.is_leasing(), "the tokens are idle");
        gateway.ends_calls().await;
        gateway.deliver(3).await;
        assert_eq!(gateway.charged().await, 3);
    }

    #[tokio::test]
    async fn units_leased_ahead_are_charged_once_if_the_reply_arrives_after_midnight() {
        let gateway = MidnightGateway::new(0);
        gateway.deliver(1).await;
        let ahead = gateway.leases.lease_tomorrow(&gateway.directory);
        let requests = async {
            gateway.manual.advance(Duration::from_mins(1));
            gateway.deliver(3).await;
            gateway.ledger.ahead.add_permits(1);
        };
        tokio::join!(ahead, requests);
        gateway.deliver(1).await;
        assert_eq!(gateway.charged().await, 4);
    }

    #[tokio::test]
    async fn after_a_shutdown_returned_its_units_none_are_leased_ahead() {
        let gateway = MidnightGateway::new(1);
        gateway.deliver(1).await;
        gateway.leases.drain(&gateway.directory).await;
        gateway.leases.lease_tomorrow(&gateway.directory).await;
        let tomorrow = gateway.clock.now().wall.day().next();
        assert!(!gateway.ledger.days.lock().contains_key(&tomorrow));
    }
}
