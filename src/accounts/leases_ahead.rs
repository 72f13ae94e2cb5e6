//! Leases of tomorrow's units for applications in use, taken before midnight: their first requests of the day need not
//! wait for the ledger, and gateways do not all call it at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::clock::{Clock, Day};
use crate::instruments::{Instruments, UnitUse};
use crate::keys::ApplicationId;
use crate::limits::{DayBalance, Limits};
use crate::store::{Ledger, LedgerExchange, LedgerReport, ReportOutcome, StoreError};

use super::account::Account;
use super::key_directory::KeyDirectory;
use super::terms::Terms;

/// Earliest time of a lease, before midnight. The times of the applications are spread between this and [`TO`].
const FROM: Duration = Duration::from_mins(5);
/// Latest time of a lease, before midnight.
const TO: Duration = Duration::from_secs(30);
/// Number of applications per ledger call.
const AT_ONCE: usize = 256;

/// Balances of tomorrow, until the first request of each application.
pub(super) struct LeasesAhead {
    ledger: Arc<dyn Ledger>,
    node: u64,
    clock: Clock,
    instruments: Arc<Instruments>,
    /// With the limits under which they were leased.
    balances: Mutex<HashMap<ApplicationId, (Limits, DayBalance)>>,
}

impl LeasesAhead {
    pub(super) fn new(
        ledger: Arc<dyn Ledger>,
        node: u64,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self { ledger, node, clock, instruments, balances: Mutex::default() }
    }

    /// Takes the balance of `today`, if one was leased ahead. Units leased under other limits are returned with the next
    /// report.
    pub(super) fn take(&self, id: ApplicationId, limits: &Limits, today: Day) -> Option<DayBalance> {
        let (leased_under, balance) = self.balances.lock().remove(&id)?;
        let balance = if leased_under == *limits { balance } else { balance.release(limits.grace).0 };
        (balance.day() == today).then_some(balance)
    }

    /// Takes all out, as reports that return their units.
    pub(super) fn drain(&self) -> Vec<LedgerReport> {
        let balances = std::mem::take(&mut *self.balances.lock());
        let report = |(application, (_, balance)): (ApplicationId, (Limits, DayBalance))| {
            let totals = balance.drain().1?;
            Some(LedgerReport::of_units(application, balance.day(), totals))
        };
        balances.into_iter().filter_map(report).collect()
    }

    /// Leases tomorrow's first units for applications that were used today and are due.
    pub(super) async fn lease_tomorrow(&self, key_directory: &KeyDirectory) {
        let now = self.clock.now().wall;
        let (today, left) = (now.day(), now.day().end().since(now));
        self.balances.lock().retain(|_, (_, balance)| balance.day() >= today);
        if left > FROM || left < TO {
            return;
        }
        let tomorrow = today.next();
        let known = |id: &ApplicationId| self.balances.lock().contains_key(id);
        let mut due = key_directory.used_on(today);
        due.retain(|account| due_before_midnight(account.id) >= left && !known(&account.id));
        for accounts in due.chunks(AT_ONCE) {
            if let Err(error) = self.lease_ahead_for(accounts, today, tomorrow).await {
                tracing::debug!(%error, "units of tomorrow cannot be leased yet");
                return;
            }
        }
    }

    async fn lease_ahead_for(
        &self,
        accounts: &[Arc<Account>],
        today: Day,
        tomorrow: Day,
    ) -> Result<(), StoreError> {
        let due: Vec<(&Arc<Account>, Arc<Terms>)> =
            accounts.iter().map(|account| (account, Arc::clone(&account.terms()))).collect();
        let report = |(account, terms): &(&Arc<Account>, Arc<Terms>)| {
            let limits = terms.limits;
            let totals = DayBalance::opened(tomorrow, 0).report_ahead(limits.day, limits.grace);
            let units = LedgerReport::of_units(account.id, tomorrow, totals);
            LedgerReport { terms: Some(terms.assumed()), ..units }
        };
        let reports = due.iter().map(report).collect();
        let reply = self.ledger.exchange(LedgerExchange { node: self.node, today, reports }).await?;
        let mut balances = self.balances.lock();
        for ((account, terms), outcome) in due.iter().zip(reply.outcomes) {
            if let ReportOutcome::Applied { node, granted, .. } = outcome {
                let balance = DayBalance::opened(tomorrow, 0).apply(tomorrow, node, granted);
                self.instruments.units(UnitUse::Leased, balance.leased());
                balances.insert(account.id, (terms.limits, balance));
            }
        }
        drop(balances);
        Ok(())
    }
}

/// The time before midnight at which tomorrow's units of an application are due.
fn due_before_midnight(id: ApplicationId) -> Duration {
    let span = u64::try_from(FROM.saturating_sub(TO).as_millis()).unwrap_or(u64::MAX);
    TO + Duration::from_millis(id.number() % span)
}
