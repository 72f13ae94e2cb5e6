//! Calls to the ledger for accounts. At most one call per account is in flight, in a task that is independent of
//! requests.
//!
//! `limits::DayBalance` decides how much to lease. The guarantees of the ledger are described in `store`.

use std::{
    future::Future,
    num::NonZeroU32,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use parking_lot::MutexGuard;
use tokio::sync::watch;

use crate::instruments::{LedgerInstruments, StoreWork, UnitUse};
use scoregate_base::{
    clock::{Clock, Day, Mono, Now},
    limits::WindowUnits,
};
use scoregate_store::{
    Ledger, LedgerExchange, LedgerReport, LocalFile, ReportOutcome, StoreResult,
};

use crate::{
    accounts::{Account, AccountState, KeyFreshness, LeaseCall},
    quota::{
        grace_charges::GraceCharges, leasing_accounts::LeasingAccounts,
        ledger_health::LedgerHealth, shared_minutes::SharedMinutes,
    },
};

use crate::quota::ledger_access::LedgerAccess;

/// Default timeout of a call, after which the ledger counts as unreachable.
// Requests wait this long only once in an outage: after the first late call, no request waits for the ledger.
const LEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of parts into which the timeout of a call is divided.
// A pause of this process uses up at most one part, so a reply that arrived during the pause is still in time.
const TIMEOUT_PARTS: u32 = 8;

/// The result of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportEnd {
    Applied,
    /// The ledger has different terms for the application and granted nothing.
    OutdatedTerms,
    Failed,
}

/// A ledger call that must be run to completion in the background.
pub type LedgerWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a ledger call in the background, independently of the request that started it.
pub type SpawnLedgerWork = Box<dyn Fn(LedgerWork) + Send + Sync>;

/// Calls to the ledger on behalf of this process.
pub struct LedgerCalls {
    pub(crate) ledger: Arc<dyn Ledger>,
    /// Identifies this process in the ledger.
    pub(crate) node: u64,
    spawn: SpawnLedgerWork,
    pub(crate) clock: Clock,
    pub(crate) instruments: Arc<LedgerInstruments>,
    pub(crate) timeout: Duration,
    /// The start of this process.
    started: Mono,
    pub(crate) health: LedgerHealth,
    pub(crate) access: LedgerAccess,
    /// Units delivered on grace, and the right to deliver them.
    pub(crate) grace: GraceCharges,
    /// Notified when the store is reachable again.
    pub(crate) key_freshness: Arc<KeyFreshness>,
    /// Tokens of minute limits.
    pub(crate) minutes: SharedMinutes,
    pub(crate) leasing: LeasingAccounts,
    /// Whether this process has returned its units. Locked while units of tomorrow are leased, so that none are leased
    /// after the return.
    pub(crate) is_drained: tokio::sync::Mutex<bool>,
}

impl LedgerCalls {
    /// Calls to `ledger` on behalf of `node`. `spawn` runs the calls.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        node: u64,
        spawn: SpawnLedgerWork,
        clock: Clock,
        instruments: Arc<LedgerInstruments>,
    ) -> Self {
        let started = clock.now().mono;
        Self {
            ledger,
            node,
            spawn,
            clock,
            instruments,
            timeout: LEASE_TIMEOUT,
            started,
            health: LedgerHealth::default(),
            access: LedgerAccess::default(),
            grace: GraceCharges::default(),
            key_freshness: Arc::default(),
            minutes: SharedMinutes::default(),
            leasing: LeasingAccounts::default(),
            is_drained: tokio::sync::Mutex::default(),
        }
    }

    /// Sets the number of gateways that share the ledger and minute limits, and the timeout of a call.
    pub fn shared(mut self, gateways: NonZeroU32, timeout: Duration) -> Self {
        self.timeout = timeout;
        self.minutes = SharedMinutes::among(gateways);
        self
    }

    /// Makes requests wait for key changes once the store is reachable again.
    pub fn with_key_freshness(mut self, key_freshness: &Arc<KeyFreshness>) -> Self {
        self.key_freshness = Arc::clone(key_freshness);
        self
    }

    /// Reads the state that an earlier process saved in `file`, and saves uncharged units there. If the ledger is
    /// shared, this process continues the grace shares of the earlier process.
    pub async fn carrying(mut self, file: Arc<LocalFile>) -> Self {
        self.grace = GraceCharges::opened(file, self.node, self.minutes.gateways().is_some()).await;
        let today = self.clock.now().wall.day();
        self.instruments
            .holds_grace_share(self.grace.book.holds(today));
        self
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub async fn charge_carried(&self) -> StoreResult<()> {
        self.grace
            .charge_carried(&*self.ledger, self.clock.now().wall.day())
            .await
    }

    /// The time from which this gateway uses only its part of a minute limit, because the ledger is unreachable.
    pub(crate) fn unreachable_since(&self) -> Mono {
        if self.key_freshness.is_copied() {
            return self.started;
        }
        let failure = self.health.failure();
        failure.map_or_else(|| self.clock.mono(), |failure| failure.at)
    }

    /// Whether the ledger is known to be unusable now.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.health.is_unreachable() || self.key_freshness.is_copied()
    }

    /// The call in flight for the account, or a new one. `None` while the ledger is unreachable and,
    /// after a start from the local copy, until the keys have been read again.
    pub(crate) fn current(self: &Arc<Self>, account: &Arc<Account>) -> Option<LeaseCall> {
        (!self.is_unreachable()).then(|| self.attempt(account))
    }

    /// The call in flight for the account, or a new one.
    pub(crate) fn attempt(self: &Arc<Self>, account: &Arc<Account>) -> LeaseCall {
        let mut state = account.state();
        // This is checked under the lock that `begin` keeps until the call is recorded, so that concurrent requests
        // share one call.
        if let Some(call) = state.call() {
            return LeaseCall::clone(call);
        }
        let report = self.next_report(account, &mut state, self.clock.now());
        self.begin(account, state, report)
    }

    /// The report that leases the units of the day and the tokens of the minute that the account needs next.
    fn next_report(&self, account: &Account, state: &mut AccountState, now: Now) -> LedgerReport {
        let terms = account.terms();
        let limits = terms.limits;
        let before = state.open_day(now.wall.day(), &limits);
        let day = before.without_excess(limits.day);
        self.instruments
            .units(UnitUse::Returned, before.leased() - day.leased());
        state.set_day(day);
        let totals = day
            .report(limits.day)
            .within(day.owed(), state.unleased_in_windows(&limits));
        let windows = limits.calendar.around(day.day()).collect();
        let minute = self.minutes.report_if_due(state, &limits, now.mono);
        let terms = Some(terms.assumed());
        LedgerReport {
            application: account.id,
            day: day.day(),
            totals,
            windows,
            minute,
            terms,
        }
    }

    /// Starts a ledger call with this report.
    pub(crate) fn begin(
        self: &Arc<Self>,
        account: &Arc<Account>,
        mut state: MutexGuard<'_, AccountState>,
        report: LedgerReport,
    ) -> LeaseCall {
        let (ended, call) = watch::channel(None);
        let call = LeaseCall(call);
        state.begin_call(call.clone());
        let is_new = state.mark_listed();
        // The account is unlocked before it is listed, because `LeasingAccounts` locks its list first and then the
        // accounts.
        drop(state);
        if is_new {
            self.leasing.list(account);
        }
        let calls = Arc::clone(self);
        let account = Arc::clone(account);
        // The call runs in a separate task, because a client that disconnects must not end a call that other requests
        // wait for.
        (self.spawn)(Box::pin(async move {
            let mut exchange = pin!(calls.exchange(&account, report));
            let in_time = calls.in_time(&ended, exchange.as_mut()).await;
            let granted = if let Some(granted) = in_time {
                granted
            } else {
                calls.failed(&account, &"it did not answer in time");
                ended.send_replace(Some(false));
                // Requests no longer wait for the call. The ledger may still have granted units, so its reply is
                // applied.
                exchange.await
            };
            // The call is cleared before waiters wake up, so that they can start the next call.
            account.state().end_call();
            ended.send_replace(Some(granted));
        }));
        call
    }

    /// The reply to a call, or `None` if it is late. While no request is waiting, a pause of this process uses up at
    /// most one of the `TIMEOUT_PARTS` of the timeout, because the reply may have arrived during the pause.
    async fn in_time(
        &self,
        ended: &watch::Sender<Option<bool>>,
        mut exchange: Pin<&mut impl Future<Output = bool>>,
    ) -> Option<bool> {
        let deadline = self.clock.mono().plus(self.timeout);
        for _ in 0..TIMEOUT_PARTS {
            let part = self.timeout / TIMEOUT_PARTS;
            if let Ok(granted) = self.clock.within(part, exchange.as_mut()).await {
                return Some(granted);
            }
            // The account itself holds one receiver.
            let is_awaited = ended.receiver_count() > 1;
            if is_awaited && self.clock.mono() >= deadline {
                return None;
            }
        }
        None
    }

    /// Sends a report. If the terms were changed elsewhere, waits until this process has read the change.
    async fn exchange(&self, account: &Arc<Account>, report: LedgerReport) -> bool {
        let mut end = self.send(account, &report).await;
        if end == ReportEnd::OutdatedTerms {
            // Another report with the known terms would also be refused.
            self.key_freshness.require_reading();
            let read = self
                .key_freshness
                .ensure(&self.clock, self.clock.now())
                .await;
            end = if read.is_ok() {
                self.send_next(account).await
            } else {
                ReportEnd::Failed
            };
        }
        end == ReportEnd::Applied
    }

    async fn send_next(&self, account: &Arc<Account>) -> ReportEnd {
        let report = self.next_report(account, &mut account.state(), self.clock.now());
        self.send(account, &report).await
    }

    async fn send(&self, account: &Arc<Account>, report: &LedgerReport) -> ReportEnd {
        let started = self.clock.now();
        let exchange = LedgerExchange {
            node: self.node,
            today: started.wall.day(),
            reports: vec![report.clone()],
        };
        let exchanging = async {
            // Units of earlier processes are charged first. Otherwise a new lease could take the rest of the quota that
            // these units need.
            self.charge_carried().await?;
            self.ledger.exchange(exchange).await
        };
        match self
            .instruments
            .store
            .measured(&self.clock, StoreWork::Lease, exchanging)
            .await
        {
            Ok(reply) => {
                self.access.leased();
                if self.health.clear() {
                    // During the outage, keys may have changed, and shares of grace may have become free.
                    self.key_freshness.require_reading();
                    self.grace.book.claim_soon();
                    self.instruments.store.ledger_unreachable(false);
                    tracing::info!("ledger reachable again");
                }
                if let Some(minute) = report.minute
                    && let Some(Some(grant)) = reply.minutes.first()
                {
                    self.minutes.apply(
                        account,
                        &minute,
                        grant,
                        started.mono,
                        self.clock.now().mono,
                    );
                }
                let windows = reply.windows.first().map_or(&[][..], Vec::as_slice);
                reply.outcomes.first().map_or(ReportEnd::Failed, |outcome| {
                    self.apply(account, report, reply.today, *outcome, windows)
                })
            }
            Err(error) => {
                account.call_failed(report.day);
                self.failed(account, &error);
                ReportEnd::Failed
            }
        }
    }

    fn apply(
        &self,
        account: &Account,
        report: &LedgerReport,
        today: Day,
        outcome: ReportOutcome,
        windows: &[WindowUnits],
    ) -> ReportEnd {
        let mut state = account.state();
        match outcome {
            ReportOutcome::Applied {
                node,
                granted,
                has_outdated_terms,
            } => {
                let before = state.day();
                let after = before.apply(report.day, node, granted);
                state.set_day(after);
                state.apply_to_windows(report, node, granted, windows);
                drop(state);
                // A new day of the account began during the call, so these units can no longer be spent.
                let is_late = after.day() != report.day && report.totals.quota > 0;
                let units = if is_late {
                    node.held()
                } else {
                    after.leased().saturating_sub(before.leased())
                };
                self.instruments.units(UnitUse::Leased, units);
                if is_late {
                    self.instruments.units(UnitUse::Lost, units);
                }
                // A report that only returns units has a quota of zero, and is not refused.
                let is_refused = has_outdated_terms && report.totals.quota > 0;
                if is_refused {
                    ReportEnd::OutdatedTerms
                } else {
                    ReportEnd::Applied
                }
            }
            // The wall clock was set back; the current day of the ledger remains in force. An earlier attempt to deliver the report
            // may have been in time.
            ReportOutcome::Closed => {
                state.call_failed(report.day, &account.terms().limits);
                state.open_day(today, &account.terms().limits);
                ReportEnd::Applied
            }
            // The ledger does not contain the application, so there are no units. The ledger itself works.
            ReportOutcome::UnknownApplication => {
                tracing::error!(application = %account.id, "application with a key is missing from the ledger");
                ReportEnd::Failed
            }
        }
    }

    /// Records that the ledger did not answer a call for the account in time, or could not write.
    pub(crate) fn failed(&self, account: &Arc<Account>, reason: &dyn std::fmt::Display) {
        let now = self.clock.mono();
        if self.health.failed(account, now) {
            self.instruments.store.ledger_unreachable(true);
            tracing::error!(
                %reason,
                "ledger unreachable; leased units can still be used, then paid applications run on grace and all \
                 others get 503"
            );
        } else {
            tracing::debug!(%reason, "ledger still unreachable");
        }
    }
}
