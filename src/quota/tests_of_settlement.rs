//! Tests of the settlement of days: a month contains the units that were spent, even if grants or replies were lost around midnight. The
//! ledger is in a file, and its replies can be lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio_util::task::TaskTracker;

use crate::{
    accounts::{Account, KeyDirectory, TermsByTier},
    instruments::LedgerInstruments,
    quota::{leases::Leases, ledger_calls::LedgerCalls},
};
use scoregate_base::{
    clock::{Clock, Day, ManualClock, Wall},
    keys::{ApplicationId, Digest},
    limits::{
        AdmissionVerdict, CalendarQuota, LeaseAvailability, LimitRule, LimitSetting, NodeReport,
        OwnLimits, Window,
    },
    plans::standard_tiers,
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{
    Ledger, LedgerExchange, LedgerExchangeReply, LedgerReport, Store, StoreChange, StoreError,
    StoreFuture, StoredApplication, sample,
};

const KEY: &str = "key";
const MONTH: u32 = 1_000_000;

/// A ledger that applies reports even while its replies are lost.
struct LossyLedger {
    store: Store,
    loses_replies: AtomicBool,
}

impl Ledger for LossyLedger {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        self.store.day()
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        Box::pin(async move {
            let reply = self.store.exchange(exchange).await;
            if self.loses_replies.load(Ordering::Relaxed) {
                let reason = "the reply is lost".into();
                let doing = "exchange";
                return Err(StoreError::Unavailable { doing, reason });
            }
            reply
        })
    }
}

/// A gateway with an application that has a monthly quota, at a time when tomorrow's units are due.
struct MonthGateway {
    ledger: Arc<LossyLedger>,
    leases: Leases,
    directory: KeyDirectory,
    stored: StoredApplication,
    account: Arc<Account>,
    clock: Clock,
    manual: ManualClock,
    delivered: u32,
    _kept: tempfile::TempDir,
}

impl MonthGateway {
    async fn new(quota: u32) -> Self {
        let kept = tempfile::tempdir().unwrap();
        let store = Store::open(kept.path()).unwrap();
        let (clock, manual) = Clock::manual(Wall::parse_rfc3339("2026-11-21T23:59:30Z").unwrap());
        let stored = created(&store, quota).await;
        let directory = KeyDirectory::default();
        let day = clock.now().wall.day();
        assert!(directory.apply(&stored, &TermsByTier::new(&standard_tiers(), 60), day));
        let account = directory.find(&Digest::of(KEY)).unwrap().account;
        let loses_replies = AtomicBool::new(false);
        let ledger = Arc::new(LossyLedger {
            store,
            loses_replies,
        });
        let engine = Arc::clone(&ledger) as Arc<dyn Ledger>;
        let tasks = TaskTracker::new();
        let spawn = Box::new(move |work| drop(tasks.spawn(work)));
        let instruments = Arc::new(LedgerInstruments::new(&MetricsRegistry::default()));
        let calls = LedgerCalls::new(engine, 7, spawn, clock.clone(), instruments);
        Self {
            ledger,
            leases: Leases::of(calls),
            directory,
            stored,
            account,
            clock,
            manual,
            delivered: 0,
            _kept: kept,
        }
    }

    fn loses_replies(&self, loses: bool) {
        self.ledger.loses_replies.store(loses, Ordering::Relaxed);
    }

    /// Admits a request.
    async fn admitted(&self) -> Day {
        loop {
            let limits = self.account.terms().limits;
            let now = self.clock.now();
            let reachable = LeaseAvailability::Reachable;
            let verdict = self
                .account
                .state()
                .admit(&limits, None, now, false, reachable);
            if let AdmissionVerdict::Admitted { day, .. } = verdict {
                return day;
            }
            assert_eq!(verdict, AdmissionVerdict::LeaseFirst);
            self.leases.lease(&self.account).await.unwrap();
        }
    }

    async fn deliver(&mut self, units: u32) {
        for _ in 0..units {
            let day = self.admitted().await;
            self.account.state().settle(day, true);
            self.delivered += 1;
        }
        // Takes the next lease in advance.
        _ = self.leases.lease(&self.account).await;
    }

    async fn turn(&self) {
        self.leases.probe();
        self.ends_calls().await;
        self.leases.lease_tomorrow(&self.directory).await;
        self.ends_calls().await;
    }

    async fn ends_calls(&self) {
        while self.account.is_leasing() {
            tokio::task::yield_now().await;
        }
    }

    /// Another day begins, and the periodic work is done several times.
    async fn next_day(&self) {
        self.manual.advance(Duration::from_hours(24));
        let today = self.clock.now().wall.day();
        self.leases.calls.leasing.held(today);
        for _ in 0..4 {
            self.turn().await;
        }
    }

    /// Units of the month that were granted, but are neither delivered nor still held.
    async fn stranded(&self) -> i64 {
        let day = self.clock.now().wall.day();
        let window = Window::around(day, LimitRule::Month, 1).unwrap();
        let quota = MONTH;
        let units = LedgerReport::of_units(self.stored.id, day, NodeReport::default());
        let report = LedgerReport {
            windows: vec![CalendarQuota { window, quota }],
            ..units
        };
        let exchange = LedgerExchange {
            node: 8,
            today: day,
            reports: vec![report],
        };
        let reply = self.ledger.store.exchange(exchange).await.unwrap();
        let held = self.account.state().day().on(day).unspent();
        i64::try_from(reply.windows[0][0].granted).unwrap() - i64::from(self.delivered + held)
    }
}

/// A new application with this daily quota and a monthly quota.
async fn created(store: &Store, quota: u32) -> StoredApplication {
    let own = OwnLimits::NONE
        .with(LimitSetting::Minute, 1_000_000)
        .with(LimitSetting::Day, quota)
        .with(LimitSetting::Month, MONTH);
    let change = StoreChange {
        at: Wall::default(),
        who: "a test".into(),
        owner: None,
        application: ApplicationId::mint().unwrap(),
        what: sample::creation("pro", sample::key(KEY)),
        notice: None,
    };
    let stored = store.change(change).await.unwrap();
    StoredApplication { own, ..stored }
}

#[tokio::test]
async fn units_whose_grant_was_not_answered_before_midnight_are_returned_to_the_month() {
    for first in [0, 1, 40] {
        let mut gateway = MonthGateway::new(10_000).await;
        if first > 0 {
            gateway.deliver(first).await;
        }
        while gateway.account.state().day().unspent() > 0 {
            let day = gateway.admitted().await;
            gateway.account.state().settle(day, true);
            gateway.delivered += 1;
        }
        gateway.loses_replies(true);
        gateway.leases.lease(&gateway.account).await.unwrap_err();
        gateway.loses_replies(false);
        assert!(gateway.stranded().await > 0);
        gateway.next_day().await;
        assert_eq!(gateway.stranded().await, 0, "after {first}");
    }
}

#[tokio::test]
async fn a_unit_of_a_request_that_ends_after_midnight_without_data_is_returned_to_the_month() {
    for begins_day in [false, true] {
        let mut gateway = MonthGateway::new(50).await;
        let day = gateway.admitted().await;
        gateway.manual.advance(Duration::from_mins(2));
        if begins_day {
            gateway.deliver(1).await;
        }
        gateway.turn().await;
        gateway.account.state().settle(day, false);
        gateway.turn().await;
        gateway.turn().await;
        assert_eq!(gateway.stranded().await, 0, "{begins_day}");
    }
}

#[tokio::test]
async fn units_leased_under_limits_that_end_at_midnight_are_returned_to_the_month() {
    let mut gateway = MonthGateway::new(10_000).await;
    gateway.deliver(40).await;
    let own = gateway.stored.own.with(LimitSetting::Day, 9_000);
    let changed = StoredApplication {
        own,
        ..gateway.stored.clone()
    };
    let terms = TermsByTier::new(&standard_tiers(), 60);
    let day = gateway.clock.now().wall.day();
    assert!(gateway.directory.apply(&changed, &terms, day));
    gateway.manual.advance(Duration::from_mins(2));
    gateway.deliver(1).await;
    gateway.turn().await;
    assert_eq!(gateway.stranded().await, 0);
}

#[tokio::test]
async fn a_shutdown_returns_units_whose_grant_was_not_answered() {
    let mut gateway = MonthGateway::new(10_000).await;
    gateway.deliver(40).await;
    gateway.loses_replies(true);
    gateway.leases.lease_tomorrow(&gateway.directory).await;
    for _ in 0..20 {
        let day = gateway.admitted().await;
        gateway.account.state().settle(day, true);
        gateway.delivered += 1;
    }
    gateway.leases.lease(&gateway.account).await.unwrap_err();
    gateway.loses_replies(false);
    gateway.leases.drain(&gateway.directory).await;
    assert_eq!(gateway.stranded().await, 0);
}
