//! Leases units from the ledger: at most one call in flight per application, in a task that belongs to no request.
//! Requests that must wait share the call, each with its own deadline.
//!
//! How much to lease is decided in `limits::DayBalance`; the guarantees of the ledger are in `store`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::clock::{Clock, Day};
use crate::instruments::{Instruments, StoreWork, UnitUse, UnreachableDecision};
use crate::limits::{DayBalance, NodeReport, NodeTotals};
use crate::store::{Ledger, LedgerExchange, LedgerReport, OwedFile, OwedUnits, ReportOutcome, StoreError};

use super::account::{Account, LeaseCall};
use super::key_directory::KeyDirectory;
use super::key_freshness::KeyFreshness;
use super::leases_ahead::LeasesAhead;
use super::ledger_health::LedgerHealth;

/// How long a request waits for a lease before the ledger counts as unreachable.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Number of applications per ledger call at shutdown.
const RETURNS_AT_ONCE: usize = 1_000;

/// The ledger did not answer in time or could not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no lease from the ledger")]
pub(crate) struct LeaseUnavailable;

/// A ledger call, to be run to its end in the background.
pub type LedgerWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a ledger call in the background, independently of the request that started it.
pub type SpawnLedgerWork = Box<dyn Fn(LedgerWork) + Send + Sync>;

/// Leases units from the ledger.
pub struct Leases {
    ledger: Arc<dyn Ledger>,
    /// Identifies this process in the ledger.
    node: u64,
    spawn: SpawnLedgerWork,
    clock: Clock,
    instruments: Arc<Instruments>,
    health: LedgerHealth,
    /// Accounts that delivered units on grace and have not been charged.
    uncharged: Mutex<Vec<Arc<Account>>>,
    /// Where uncharged units are saved at shutdown.
    owed_file: Option<OwedFile>,
    /// Units delivered on grace by earlier processes and not charged. Nothing is leased before they are.
    carried: tokio::sync::Mutex<Vec<OwedUnits>>,
    /// Learns that the store is reachable again.
    key_freshness: Arc<KeyFreshness>,
    /// Units of tomorrow.
    ahead: LeasesAhead,
}

impl Leases {
    /// Leases from `store` in the name of `node`; `spawn` runs the calls.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        node: u64,
        spawn: SpawnLedgerWork,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        let (health, uncharged, carried) =
            (LedgerHealth::default(), Mutex::default(), tokio::sync::Mutex::default());
        let ahead = LeasesAhead::new(Arc::clone(&ledger), node, clock.clone(), Arc::clone(&instruments));
        Self {
            ledger,
            node,
            spawn,
            clock,
            instruments,
            health,
            uncharged,
            owed_file: None,
            carried,
            ahead,
            key_freshness: Arc::default(),
        }
    }

    /// Makes requests wait for changes of keys once the store is reachable again.
    pub fn with_key_freshness(mut self, key_freshness: &Arc<KeyFreshness>) -> Self {
        self.key_freshness = Arc::clone(key_freshness);
        self
    }

    /// Reads what an earlier process saved in `file`, and saves uncharged units there at shutdown.
    pub async fn carrying(mut self, file: OwedFile) -> Self {
        let read = file.clone();
        match tokio::task::spawn_blocking(move || read.read()).await {
            Ok(Ok(owed)) => self.carried = tokio::sync::Mutex::new(owed),
            Ok(Err(error)) => {
                tracing::error!(%error, "scoregate.owed cannot be read; units delivered on grace are not charged");
            }
            Err(_) => tracing::error!("reading scoregate.owed panicked"),
        }
        self.owed_file = Some(file);
        self
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub async fn charge_carried(&self) -> Result<(), StoreError> {
        let mut carried = self.carried.lock().await;
        if carried.is_empty() {
            return Ok(());
        }
        let today = self.clock.now().wall.day();
        for owed in carried.iter() {
            let totals = NodeReport {
                known: NodeTotals { granted: owed.granted, ..NodeTotals::default() },
                ..NodeReport::default()
            };
            let report = LedgerReport { application: owed.application, day: owed.day, totals };
            self.ledger.exchange(LedgerExchange { node: owed.node, today, reports: vec![report] }).await?;
        }
        let applications = carried.len();
        carried.clear();
        drop(carried);
        tracing::info!(applications, "charged the units delivered on grace before the last shutdown");
        if let Some(file) = self.owed_file.clone()
            && !matches!(tokio::task::spawn_blocking(move || file.remove()).await, Ok(Ok(())))
        {
            tracing::warn!("scoregate.owed cannot be removed; its entries are not charged again");
        }
        Ok(())
    }

    /// Saves uncharged units for the next start: those of this process and those of earlier ones.
    async fn save_owed(&self) {
        let entry = |account: &Arc<Account>| {
            let day = account.state().balance.day;
            let granted = day.charge().known.granted;
            let owed = OwedUnits { node: self.node, application: account.id, day: day.day(), granted };
            (day.owed() > 0).then_some((owed, day.owed()))
        };
        let (new, units): (Vec<OwedUnits>, Vec<u32>) = self.uncharged().iter().filter_map(entry).unzip();
        let units = units.iter().sum::<u32>();
        let Some(file) = self.owed_file.clone() else { return };
        if units == 0 {
            return; // the earlier ones are in the file already
        }
        let all = [self.carried.lock().await.clone(), new].concat();
        match tokio::task::spawn_blocking(move || file.write(&all)).await {
            Ok(Ok(())) => tracing::warn!(units, "units delivered on grace will be charged at the next start"),
            Ok(Err(error)) => {
                tracing::error!(%error, units, "units delivered on grace cannot be saved and will not be charged");
            }
            Err(_) => tracing::error!(units, "saving units delivered on grace panicked"),
        }
    }

    /// Waits until a ledger call for the account has succeeded, the one in flight or a new one. Does not wait while
    /// the ledger is unreachable.
    pub(crate) async fn lease(self: &Arc<Self>, account: &Arc<Account>) -> Result<(), LeaseUnavailable> {
        let LeaseCall(mut call) = self.call(account).ok_or(LeaseUnavailable)?;
        self.instruments.lease_waited();
        match self.clock.within(LEASE_TIMEOUT, call.wait_for(Option::is_some)).await {
            Ok(Ok(granted)) if *granted == Some(true) => Ok(()),
            Ok(_) => Err(LeaseUnavailable),
            Err(_) => {
                self.failed(&"it did not answer in time");
                Err(LeaseUnavailable)
            }
        }
    }

    /// Leases tomorrow's first units for applications in use, shortly before midnight. Called every few seconds.
    pub async fn lease_tomorrow(&self, key_directory: &KeyDirectory) {
        self.ahead.lease_tomorrow(key_directory).await;
    }

    /// The balance of `today` that was leased before the day began, for the first request of the application.
    pub(crate) fn leased_ahead(&self, account: &Account, today: Day) -> Option<DayBalance> {
        self.ahead.take(account.id, today)
    }

    /// Starts a ledger call for the account unless one is in flight, without waiting for it.
    pub(crate) fn lease_ahead(self: &Arc<Self>, account: &Arc<Account>) {
        drop(self.call(account));
    }

    /// Records that the account delivers units on grace.
    pub(crate) fn record_grace(&self, account: &Arc<Account>) {
        self.instruments.decided_while_unreachable(UnreachableDecision::Grace);
        if !std::mem::replace(&mut account.state().is_uncharged, true) {
            self.uncharged().push(Arc::clone(account));
        }
    }

    /// Counts a request that found no unit, no ledger and no grace.
    pub(crate) fn refused(&self) {
        self.instruments.decided_while_unreachable(UnreachableDecision::Refused);
    }

    /// Charges units delivered on grace once the ledger is reachable. Called every few seconds.
    pub fn charge_owed(self: &Arc<Self>) {
        let today = self.clock.now().wall.day();
        let uncharged = std::mem::take(&mut *self.uncharged());
        for account in uncharged {
            let mut state = account.state();
            // Units of a past day can no longer be charged: the ledger has closed that day.
            state.is_uncharged = state.balance.day.on(today).owed() > 0;
            let is_uncharged = state.is_uncharged;
            drop(state);
            if is_uncharged {
                self.lease_ahead(&account);
                self.uncharged().push(account);
            }
        }
    }

    /// The call in flight for the account, or a new one. `None` while the ledger is unreachable and the next attempt
    /// is not due.
    fn call(self: &Arc<Self>, account: &Arc<Account>) -> Option<LeaseCall> {
        let limits = account.terms().limits;
        let mut state = account.state();
        if let Some(call) = state.leasing.as_ref().filter(|call| call.is_under_way()) {
            return (!self.health.is_unreachable()).then(|| LeaseCall::clone(call));
        }
        let now = self.clock.now();
        if !self.health.may_try(now.mono) {
            return None;
        }
        let (ended, call) = watch::channel(None);
        let call = LeaseCall(call);
        state.leasing = Some(Box::new(call.clone()));
        let day = state.balance.day.on(now.wall.day());
        let totals = day.report(limits.day, limits.grace);
        let report = LedgerReport { application: account.id, day: day.day(), totals };
        drop(state);
        let (leases, account) = (Arc::clone(self), Arc::clone(account));
        (self.spawn)(Box::pin(async move {
            let granted = leases.send(&account, report).await;
            // Cleared before waiters wake up, so that they can start the next call.
            account.state().leasing = None;
            ended.send_replace(Some(granted));
        }));
        Some(call)
    }

    async fn send(&self, account: &Account, report: LedgerReport) -> bool {
        let started = self.clock.now();
        let exchange = LedgerExchange { node: self.node, today: started.wall.day(), reports: vec![report] };
        let reply = match self.charge_carried().await {
            Ok(()) => self.ledger.exchange(exchange).await,
            Err(error) => Err(error),
        };
        self.instruments.store_operation(StoreWork::Lease, self.clock.now().mono.since(started.mono));
        match reply {
            Ok(reply) => {
                if self.health.succeeded() {
                    self.key_freshness.store_reached();
                    self.instruments.ledger_unreachable(false);
                    tracing::info!("ledger reachable again");
                }
                reply
                    .outcomes
                    .first()
                    .is_some_and(|outcome| self.apply(account, &report, reply.today, *outcome))
            }
            Err(error) => {
                self.instruments.store_failed(StoreWork::Lease);
                self.failed(&error);
                false
            }
        }
    }

    /// Applies the outcome of a report. Returns whether the account can be used.
    fn apply(&self, account: &Account, report: &LedgerReport, today: Day, outcome: ReportOutcome) -> bool {
        let mut state = account.state();
        match outcome {
            ReportOutcome::Applied { node, granted } => {
                let before = state.balance.day.leased();
                state.balance.day = state.balance.day.apply(report.day, node, granted);
                let after = state.balance.day;
                drop(state);
                let is_late = after.day() != report.day;
                let units = if is_late { node.held() } else { after.leased().saturating_sub(before) };
                self.instruments.units(UnitUse::Leased, units);
                if is_late {
                    self.instruments.units(UnitUse::Lost, units);
                }
                true
            }
            // The wall clock was set back; the current day of the ledger remains in force.
            ReportOutcome::Closed => {
                state.balance.day = state.balance.day.on(today);
                true
            }
            // It has no units; the ledger itself works.
            ReportOutcome::UnknownApplication => {
                tracing::error!(application = %account.id, "application with a key is missing in the ledger");
                false
            }
        }
    }

    fn failed(&self, reason: &dyn std::fmt::Display) {
        if self.health.failed(self.clock.now().mono) {
            self.instruments.ledger_unreachable(true);
            tracing::error!(
                %reason,
                "ledger unreachable; leased units can still be used, then paid applications run on grace and all \
                 others get 503"
            );
        } else {
            tracing::debug!(%reason, "ledger still unreachable");
        }
    }

    /// Returns all leased and unspent units, and saves uncharged ones for the next start. Units that cannot be
    /// returned are unavailable to their application until midnight.
    pub async fn drain(&self, key_directory: &KeyDirectory) {
        self.return_leases(key_directory).await;
        self.save_owed().await;
    }

    async fn return_leases(&self, key_directory: &KeyDirectory) {
        let (mut reports, units) = key_directory.drain();
        reports.append(&mut self.ahead.drain());
        if reports.is_empty() {
            return;
        }
        let started = self.clock.now();
        let mut returned = Ok(());
        for reports in reports.chunks(RETURNS_AT_ONCE) {
            let (today, reports) = (started.wall.day(), reports.to_vec());
            let exchange = LedgerExchange { node: self.node, today, reports };
            returned = returned.and(self.ledger.exchange(exchange).await.map(drop));
        }
        self.instruments.store_operation(StoreWork::GiveBack, self.clock.now().mono.since(started.mono));
        match returned {
            Ok(()) => self.instruments.units(UnitUse::Returned, units),
            Err(error) => {
                self.instruments.store_failed(StoreWork::GiveBack);
                self.instruments.units(UnitUse::Lost, units);
                tracing::error!(%error, units, "leased units could not be returned");
            }
        }
    }

    fn uncharged(&self) -> MutexGuard<'_, Vec<Arc<Account>>> {
        // The list is consistent after every step.
        self.uncharged.lock()
    }
}
