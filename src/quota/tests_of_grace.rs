//! Tests of grace with a ledger that can be unreachable, several gateways, and their data directories.

use std::{collections::BTreeMap, num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::task::TaskTracker;

use crate::{
    accounts::{Account, KeyDirectory, TermsByTier, stored},
    instruments::LedgerInstruments,
    quota::{grace_charges::GraceCharges, leases::Leases, ledger_calls::LedgerCalls},
};
use scoregate_base::{
    clock::{Clock, Day, ManualClock, Now, Wall},
    keys::Digest,
    limits::{
        DayBalance, DayTotals, GraceClaim, GraceHolder, GraceShare, LimitSetting, NodeReport,
        NodeTotals, OwnLimits,
    },
    plans::standard_tiers,
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{
    HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply, LedgerReport, LocalFile,
    OwedRecords, ReportOutcome, StoreError, StoreFuture, StoredApplication,
};

const QUOTA: u32 = 10_000;
const KEY: &str = "key";

/// The day and the grace shares of one application.
#[derive(Default)]
struct ShareLedger(Mutex<LedgerState>);

#[derive(Default)]
struct LedgerState {
    is_away: bool,
    total: DayTotals,
    nodes: BTreeMap<u64, NodeTotals>,
    holders: BTreeMap<Day, Vec<GraceHolder>>,
}

impl ShareLedger {
    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut LedgerState) -> T,
    ) -> StoreFuture<'_, T> {
        let mut state = self.0.lock();
        let error = || StoreError::Unavailable {
            doing: "answer",
            reason: "it is unreachable".into(),
        };
        let answer = if state.is_away {
            Err(error())
        } else {
            Ok(work(&mut state))
        };
        Box::pin(std::future::ready(answer))
    }

    fn set_away(&self, is_away: bool) {
        self.0.lock().is_away = is_away;
    }

    fn holders(&self) -> usize {
        self.0.lock().holders.values().map(Vec::len).sum()
    }
}

impl Ledger for ShareLedger {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        self.answer(|_| None)
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        self.answer(|state| {
            let LedgerExchange {
                node,
                today,
                reports,
            } = exchange;
            let outcomes = reports.iter().map(|report| {
                let totals = state.nodes.entry(node).or_default();
                (state.total, *totals) = state.total.apply(*totals, &report.totals);
                let granted = state.total.granted;
                ReportOutcome::Applied {
                    node: *totals,
                    granted,
                    has_outdated_terms: false,
                }
            });
            LedgerExchangeReply {
                today,
                outcomes: outcomes.collect(),
                ..LedgerExchangeReply::default()
            }
        })
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        self.answer(|state| {
            let holders = state.holders.entry(claim.day).or_default();
            let applied = claim.applied_to(holders)?;
            holders.retain(|other| other.share.number != applied.share.number);
            holders.push(applied);
            Some(applied.share)
        })
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        self.answer(|state| {
            let holders = state.holders.entry(share.day).or_default();
            holders.retain(|holder| (holder.token, holder.life) != (share.token, share.life));
        })
    }
}

/// The paid application, as a new process loads it.
fn loaded(now: Now) -> Arc<Account> {
    let own = OwnLimits::NONE.with(LimitSetting::Day, QUOTA);
    let stored = StoredApplication {
        own,
        ..stored("pro", &[KEY])
    };
    let directory = KeyDirectory::default();
    assert!(directory.apply(
        &stored,
        &TermsByTier::new(&standard_tiers(), 60),
        now.wall.day()
    ));
    directory.find(&Digest::of(KEY)).unwrap().account
}

/// The file of a data directory.
fn local(directory: &Path) -> Arc<LocalFile> {
    Arc::new(LocalFile::open(directory).unwrap())
}

/// A process of a gateway.
struct GraceProcess {
    charges: GraceCharges,
    account: Arc<Account>,
    now: Now,
}

impl GraceProcess {
    async fn start(directory: &Path, node: u64, now: Now) -> Self {
        let charges = GraceCharges::opened(local(directory), node, true).await;
        Self {
            charges,
            account: loaded(now),
            now,
        }
    }

    fn today(&self) -> Day {
        self.now.wall.day()
    }

    async fn claim(&self, ledger: &ShareLedger) {
        let now = Now {
            mono: self.now.mono.plus(Duration::from_mins(2)),
            ..self.now
        };
        self.charges.claim(ledger, 2, now).await;
    }

    /// Delivers units without the ledger until the share is used up. Returns their number.
    async fn deliver_on_grace(&self) -> u32 {
        let mut delivered = 0;
        loop {
            let part = self.charges.book.part(&self.account, self.today());
            let day = self.account.state().day();
            if let Some(held) = day.hold_on_grace(QUOTA, part) {
                self.account
                    .state()
                    .set_day(held.settle(self.today(), true));
                delivered += 1;
            } else if !day.may_owe(QUOTA, part) || !self.charges.reserve(&self.account).await {
                return delivered;
            }
        }
    }

    async fn stop(self, ledger: &ShareLedger) {
        self.charges.finish(ledger, false, self.today()).await;
    }
}

fn now() -> Now {
    Clock::manual(Wall::from_seconds(1_763_726_400)).0.now()
}

#[tokio::test]
async fn units_charged_beyond_the_quota_remain_on_their_share_until_the_day_ends() {
    let ledger = ShareLedger::default();
    let now = now();
    let [first, second, third] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let a = GraceProcess::start(first.path(), 1, now).await;
    let e = GraceProcess::start(second.path(), 2, now).await;
    let d = GraceProcess::start(third.path(), 3, now).await;
    for process in [&a, &e, &d] {
        process.claim(&ledger).await;
    }
    assert!(
        a.charges.book.holds(a.today()) && !d.charges.book.holds(d.today()),
        "two shares"
    );
    // Another gateway has leased the whole quota, but these gateways have not been informed of it.
    let granted = NodeReport {
        granted: QUOTA,
        quota: QUOTA,
        ..NodeReport::default()
    };
    let report = LedgerReport::of_units(a.account.id, a.today(), granted);
    ledger
        .exchange(LedgerExchange {
            node: 9,
            today: a.today(),
            reports: vec![report],
        })
        .await
        .unwrap();
    let mut on_grace = a.deliver_on_grace().await + e.deliver_on_grace().await;
    assert_eq!(on_grace, QUOTA / 100);
    a.stop(&ledger).await;
    // Three processes with the same data directory charge the units. The units are granted only once.
    for node in 4..7 {
        let next = GraceProcess::start(first.path(), node, now).await;
        next.charges
            .charge_carried(&ledger, next.today())
            .await
            .unwrap();
        assert_eq!(
            ledger.0.lock().total.granted,
            u64::from(QUOTA + QUOTA / 200)
        );
        next.claim(&ledger).await;
        on_grace += next.deliver_on_grace().await;
        next.stop(&ledger).await;
        d.claim(&ledger).await;
        on_grace += d.deliver_on_grace().await;
    }
    assert_eq!(on_grace, QUOTA / 100);
}

#[tokio::test]
async fn a_process_that_has_stopped_claims_no_share() {
    let ledger = ShareLedger::default();
    let directory = tempfile::tempdir().unwrap();
    let now = now();
    let process = GraceProcess::start(directory.path(), 1, now).await;
    process.claim(&ledger).await;
    assert_eq!(ledger.holders(), 2, "today and tomorrow");
    process
        .charges
        .finish(&ledger, false, process.today())
        .await;
    assert_eq!(ledger.holders(), 0);
    process.charges.book.claim_soon();
    process.claim(&ledger).await;
    assert_eq!(ledger.holders(), 0);
    let left = local(directory.path()).grace().unwrap();
    assert_eq!(left, OwedRecords::default());
}

#[tokio::test]
async fn the_share_of_a_process_that_stopped_with_owed_units_stays_in_the_file() {
    let ledger = ShareLedger::default();
    let directory = tempfile::tempdir().unwrap();
    let now = now();
    let process = GraceProcess::start(directory.path(), 1, now).await;
    process.claim(&ledger).await;
    assert_eq!(process.deliver_on_grace().await, QUOTA / 200);
    process
        .charges
        .finish(&ledger, false, process.today())
        .await;
    let saved = local(directory.path()).grace().unwrap();
    assert_eq!((saved.shares.len(), saved.owed[0].owed), (2, QUOTA / 200));
    // A background task runs again.
    process
        .account
        .state()
        .set_day(DayBalance::opened(process.today(), 0));
    assert!(
        process
            .charges
            .uncharged_on(process.today())
            .await
            .is_empty()
    );
    assert_eq!(local(directory.path()).grace().unwrap(), saved);
}

#[tokio::test]
async fn units_charged_within_the_quota_may_be_delivered_on_grace_again() {
    let ledger = ShareLedger::default();
    let directory = tempfile::tempdir().unwrap();
    let now = now();
    let first = GraceProcess::start(directory.path(), 1, now).await;
    first.claim(&ledger).await;
    assert_eq!(first.deliver_on_grace().await, QUOTA / 200);
    first.stop(&ledger).await;
    let next = GraceProcess::start(directory.path(), 2, now).await;
    assert_eq!(next.deliver_on_grace().await, 0);
    next.charges
        .charge_carried(&ledger, next.today())
        .await
        .unwrap();
    assert_eq!(next.deliver_on_grace().await, QUOTA / 200);
}

/// A gateway of a fleet, with a ledger that can be unreachable.
fn gateway(ledger: &Arc<ShareLedger>) -> (LedgerCalls, ManualClock) {
    let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
    let tasks = TaskTracker::new();
    let spawn = Box::new(move |work| drop(tasks.spawn(work)));
    let instruments = Arc::new(LedgerInstruments::new(&MetricsRegistry::default()));
    let calls = LedgerCalls::new(
        Arc::clone(ledger) as Arc<dyn Ledger>,
        7,
        spawn,
        clock,
        instruments,
    );
    (
        calls.shared(NonZeroU32::new(2).unwrap(), Duration::from_secs(2)),
        manual,
    )
}

#[tokio::test]
async fn a_gateway_without_requests_notices_that_the_ledger_is_reachable_again_and_claims_its_share()
 {
    let ledger = Arc::new(ShareLedger::default());
    let directory = tempfile::tempdir().unwrap();
    let (calls, manual) = gateway(&ledger);
    let leases = Leases::of(calls.carrying(local(directory.path())).await);
    ledger.set_away(true);
    let account = loaded(now());
    leases.lease(&account).await.unwrap_err();
    for _ in 0..3 {
        manual.advance(Duration::from_secs(1));
        leases.probe();
        leases.keep_grace_share().await;
        tokio::task::yield_now().await;
    }
    assert!(leases.is_unreachable() && !leases.holds_grace_share());
    ledger.set_away(false);
    for _ in 0..15 {
        manual.advance(Duration::from_secs(1));
        leases.probe();
        leases.keep_grace_share().await;
        tokio::task::yield_now().await;
    }
    assert!(!leases.is_unreachable() && leases.holds_grace_share());
}

#[tokio::test]
async fn a_gateway_holds_shares_of_two_days_from_the_first_second_of_a_day_and_one_midnight_uses_one_up()
 {
    let ledger = Arc::new(ShareLedger::default());
    let directory = tempfile::tempdir().unwrap();
    let (calls, manual) = gateway(&ledger);
    let leases = Leases::of(calls.carrying(local(directory.path())).await);
    leases.keep_grace_share().await;
    assert_eq!(ledger.holders(), 2);
    // The shares were confirmed within the same minute.
    manual.advance(Duration::from_secs(12 * 3_600 - 1));
    leases.keep_grace_share().await;
    manual.advance(Duration::from_secs(1));
    leases.keep_grace_share().await;
    assert_eq!(ledger.holders(), 3, "the share of the next day is claimed");

    ledger.set_away(true);
    leases.lease(&loaded(now())).await.unwrap_err();
    let mut holds = Vec::new();
    for _ in 0..3 {
        leases.keep_grace_share().await;
        holds.push(leases.holds_grace_share());
        manual.advance(Duration::from_hours(24));
    }
    assert_eq!(holds, [true, true, false], "one midnight is covered");
}
