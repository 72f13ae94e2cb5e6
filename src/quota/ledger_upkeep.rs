//! Periodic work with the ledger, independent of requests: returns unused units, claims grace shares, probes an unreachable
//! ledger, leases tomorrow's units, and deletes outdated records.

use std::num::NonZeroU32;

use crate::{accounts::KeyDirectory, instruments::UnitUse, quota::shared_minutes::SharedMinutes};
use scoregate_store::LedgerReport;

use crate::quota::leases::Leases;

/// Maximum number of batches of outdated records that are deleted per run.
// This limits a run after a long outage. The next run follows within minutes.
const BATCHES: u32 = 200;

impl Leases {
    /// Returns units and tokens that other gateways may use: units that were leased under previous terms, and unused
    /// tokens of minute limits. Called several times a second.
    pub fn return_unused(&self, key_directory: &KeyDirectory) {
        if !self.is_unreachable() {
            self.return_outdated(key_directory);
            self.return_idle_minutes();
        }
    }

    /// Settles yesterday if longer windows contain it: units that were not spent are returned.
    pub(crate) fn settle_yesterday(&self) {
        if self.is_unreachable() {
            return;
        }
        let today = self.calls.clock.now().wall.day();
        for account in self.calls.leasing.all() {
            let limits = account.terms().limits;
            if limits.calendar.is_empty() {
                continue;
            }
            let mut state = account.state();
            // An account with nothing to settle keeps its old day, so that it is removed from the list.
            if state.is_unsettled() {
                state.open_day(today, &limits);
            }
            let last = state.last_report().filter(|_| state.call().is_none());
            if let Some((day, totals)) = last.filter(|(day, _)| day.next() == today) {
                let report = LedgerReport {
                    windows: limits.calendar.around(day).collect(),
                    ..LedgerReport::of_units(account.id, day, totals)
                };
                self.calls.begin(&account, state, report);
            }
        }
    }

    fn return_outdated(&self, key_directory: &KeyDirectory) {
        for (account, units) in key_directory.take_changed() {
            let now = self.calls.clock.now();
            let mut state = account.state();
            // An account has only one call at a time, so its units are returned in a later run.
            if state.call().is_some() {
                drop(state);
                key_directory.list_changed(account, units);
                continue;
            }
            let report = SharedMinutes::release(&account, &mut state, now);
            let (day, returned) = state.day().release();
            state.set_day(day);
            self.calls.instruments.units(UnitUse::Returned, units);
            self.calls.begin(
                &account,
                state,
                LedgerReport {
                    totals: returned.unwrap_or(report.totals),
                    ..report
                },
            );
        }
    }

    fn return_idle_minutes(&self) {
        let now = self.calls.clock.now();
        for account in self.calls.minutes.idle(now.mono) {
            let mut state = account.state();
            // A call in flight already reports the tokens. If they stay idle, they are returned in a later run.
            if state.call().is_none() {
                let report = SharedMinutes::release(&account, &mut state, now);
                self.calls.begin(&account, state, report);
            }
        }
    }

    /// Claims shares of today's and tomorrow's grace. Called every second.
    pub async fn keep_grace_share(&self) {
        let calls = &self.calls;
        let grace = &self.calls.grace;
        if !calls.is_unreachable() {
            let gateways = calls.minutes.gateways().map_or(1, NonZeroU32::get);
            grace
                .claim(&*calls.ledger, gateways, calls.clock.now())
                .await;
        }
        calls
            .instruments
            .holds_grace_share(grace.book.holds(calls.clock.now().wall.day()));
    }

    /// Probes an unreachable ledger with a lease. Called every second.
    pub fn probe(&self) {
        if let Some(failure) = self.calls.health.failure() {
            drop(self.calls.attempt(&failure.account));
        }
    }

    /// Tests the connection to a shared store until a connection and a lease have succeeded. While a gateway is not
    /// ready, it gets no requests that could test the connection. Called every second.
    pub async fn check_access(&self) {
        self.calls
            .access
            .check(&*self.calls.ledger, &self.calls.instruments.store)
            .await;
    }

    /// Deletes outdated records of the ledger. Called every few minutes.
    pub async fn delete_outdated(&self) {
        for _ in 0..BATCHES {
            match self.calls.ledger.delete_outdated().await {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "outdated ledger records were not deleted; the next attempt follows in a few minutes");
                    return;
                }
            }
        }
    }
}
