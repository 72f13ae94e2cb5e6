//! Leases units from the ledger: at most one call in flight per application, in a task that belongs to no request.
//! Requests that must wait share the call, each with its own deadline.
//!
//! How much to lease is decided in `limits::DayBalance`; the guarantees of the ledger are in `store`.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::sync::watch;

use crate::clock::{Clock, Day, Now};
use crate::instruments::{Instruments, StoreWork, UnitUse, UnreachableDecision};
use crate::limits::DayBalance;
use crate::store::{Ledger, LedgerExchange, LedgerReport, OwedFile, ReportOutcome, StoreError};

use super::account::{Account, AccountState, LeaseCall};
use super::grace_charges::GraceCharges;
use super::key_directory::KeyDirectory;
use super::key_freshness::KeyFreshness;
use super::leases_ahead::LeasesAhead;
use super::ledger_health::LedgerHealth;
use super::shared_minutes::SharedMinutes;

/// How long a request waits for a lease before the ledger counts as unreachable.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between reports of an account that waits for shares of other gateways, and their number. Together shorter
/// than the timeout of a lease.
const RECALL_WAIT: Duration = Duration::from_millis(450);
const RECALL_ATTEMPTS: u32 = 2;

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
    /// Units delivered on grace.
    grace: GraceCharges,
    /// Notified when the store is reachable again.
    key_freshness: Arc<KeyFreshness>,
    /// Units of tomorrow.
    ahead: LeasesAhead,
    /// Shares of minutes.
    minutes: SharedMinutes,
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
        let ahead = LeasesAhead::new(Arc::clone(&ledger), node, clock.clone(), Arc::clone(&instruments));
        Self {
            ledger,
            node,
            spawn,
            clock,
            instruments,
            health: LedgerHealth::default(),
            grace: GraceCharges::default(),
            ahead,
            minutes: SharedMinutes::default(),
            key_freshness: Arc::default(),
        }
    }

    /// Shares minute limits with other gateways, this one included in their number.
    pub fn sharing_minutes(mut self, gateways: NonZeroU32) -> Self {
        self.minutes = SharedMinutes::among(gateways);
        self
    }

    /// The number of gateways that share minute limits; `None` if this is the only one.
    pub(crate) fn gateways(&self) -> Option<NonZeroU32> {
        self.minutes.gateways()
    }

    /// Makes requests wait for changes of keys once the store is reachable again.
    pub fn with_key_freshness(mut self, key_freshness: &Arc<KeyFreshness>) -> Self {
        self.key_freshness = Arc::clone(key_freshness);
        self
    }

    /// Reads what an earlier process saved in `file`, and saves uncharged units there at shutdown.
    pub async fn carrying(mut self, file: OwedFile) -> Self {
        self.grace = GraceCharges::carrying(file).await;
        self
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub async fn charge_carried(&self) -> Result<(), StoreError> {
        self.grace.charge_carried(&*self.ledger, self.clock.now().wall.day()).await
    }

    /// Waits until a ledger call for the account has succeeded, the one in flight or a new one, and returns the time after
    /// it. Does not wait while the ledger is unreachable.
    pub(crate) async fn lease(self: &Arc<Self>, account: &Arc<Account>) -> Result<Now, LeaseUnavailable> {
        let LeaseCall(mut call) = self.call(account).ok_or(LeaseUnavailable)?;
        self.instruments.lease_waited();
        match self.clock.within(LEASE_TIMEOUT, call.wait_for(Option::is_some)).await {
            Ok(Ok(granted)) if *granted == Some(true) => Ok(self.clock.now()),
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
        self.grace.add(account);
    }

    /// Counts a request that found no unit, no ledger and no grace.
    pub(crate) fn refused(&self) {
        self.instruments.decided_while_unreachable(UnreachableDecision::Refused);
    }

    /// Charges units delivered on grace once the ledger is reachable. Called every few seconds.
    pub fn charge_owed(self: &Arc<Self>) {
        for account in self.grace.uncharged_on(self.clock.now().wall.day()) {
            self.lease_ahead(&account);
        }
    }

    /// The call in flight for the account, or a new one. `None` while the ledger is unreachable and the next attempt
    /// is not due.
    fn call(self: &Arc<Self>, account: &Arc<Account>) -> Option<LeaseCall> {
        let mut state = account.state();
        if let Some(call) = state.call() {
            return (!self.health.is_unreachable()).then(|| LeaseCall::clone(call));
        }
        let now = self.clock.now();
        if !self.health.may_try(now.mono) {
            return None;
        }
        let report = self.next_report(account, &mut state, now);
        Some(self.begin(account, state, report))
    }

    /// The report that leases what the account needs next: units of the day, and a share of the minute.
    fn next_report(&self, account: &Account, state: &mut AccountState, now: Now) -> LedgerReport {
        let limits = account.terms().limits;
        let day = state.balance.day.on(now.wall.day());
        let totals = day.report(limits.day, limits.grace);
        let minute = self.minutes.report_if_due(state, &limits, now.mono);
        LedgerReport { application: account.id, day: day.day(), totals, minute }
    }

    /// Starts a ledger call with this report.
    fn begin(
        self: &Arc<Self>,
        account: &Arc<Account>,
        mut state: MutexGuard<'_, AccountState>,
        report: LedgerReport,
    ) -> LeaseCall {
        let (ended, call) = watch::channel(None);
        let call = LeaseCall(call);
        state.begin_call(call.clone());
        drop(state);
        let (leases, account) = (Arc::clone(self), Arc::clone(account));
        (self.spawn)(Box::pin(async move {
            let granted = leases.exchange(&account, report).await;
            // Cleared before waiters wake up, so that they can start the next call.
            account.state().end_call();
            ended.send_replace(Some(granted));
        }));
        call
    }

    /// Sends a report. If it recalls shares of the minute, waits for other gateways to return them.
    async fn exchange(&self, account: &Arc<Account>, report: LedgerReport) -> bool {
        let mut granted = self.send(account, report).await;
        if !report.minute.is_some_and(|minute| minute.recalls) {
            return granted;
        }
        for _ in 0..RECALL_ATTEMPTS {
            if !granted || !SharedMinutes::awaits_recall(account, self.clock.now().mono) {
                break;
            }
            self.clock.sleep(RECALL_WAIT).await;
            let report = self.next_report(account, &mut account.state(), self.clock.now());
            granted = self.send(account, report).await;
        }
        granted
    }

    /// Returns shares of minutes that other gateways need, and those not in use. Called several times a second.
    pub async fn return_shares(self: &Arc<Self>) {
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

    async fn send(&self, account: &Arc<Account>, report: LedgerReport) -> bool {
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
                if let (Some(minute), Some(Some(grant))) = (report.minute, reply.minutes.first()) {
                    self.minutes.apply(account, &minute, grant, started.mono, self.clock.now().mono);
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
        self.grace.save(self.node).await;
    }

    async fn return_leases(&self, key_directory: &KeyDirectory) {
        let (mut reports, units) = key_directory.drain();
        reports.append(&mut self.ahead.drain());
        let started = self.clock.now();
        let shares = self.minutes.drain(started);
        if reports.is_empty() && shares.is_empty() {
            return;
        }
        let mut returned = Ok(());
        for reports in reports.chunks(RETURNS_AT_ONCE).chain(shares.chunks(RETURNS_AT_ONCE)) {
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
}
