//! Tests concurrent requests under random schedules: real requests, leases and accounts with a ledger that is slow,
//! fails and recovers, across midnight and tier changes. The scheduler may switch threads before every access to an
//! account.
//!
//! Sequential schedules are in `limits::schedules`.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use shuttle::future::{JoinHandle, block_on, yield_now};

use crate::{
    accounts::{Charge, KeyDirectory, SCHEDULED, TermsByTier, stored, switch_here},
    gateway::stages::{
        admit::{Admission, admit},
        authenticate::Caller,
        charge::charge,
    },
    instruments::LedgerInstruments,
    quota::{Leases, LedgerCalls, LedgerWork, SpawnLedgerWork},
};
use scoregate_base::{
    clock::{Clock, Day, ManualClock, Wall},
    keys::Digest,
    limits::{DayTotals, LimitSetting, NodeTotals, OwnLimits},
    plans::standard_tiers,
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::{
    Ledger, LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome, StoreError,
    StoreFuture, StoredApplication,
};

use super::refusal::Refusal;

const SCHEDULES: usize = 1_500;
const BEFORE_MIDNIGHT: Wall = Wall::from_seconds(1_763_769_590);
const KEY: &str = "a key";

static INSTRUMENTS: LazyLock<Arc<LedgerInstruments>> = LazyLock::new(|| {
    let registry = MetricsRegistry::default();
    Arc::new(LedgerInstruments::new(&registry))
});

/// A ledger for one application.
#[derive(Default)]
struct SingleLedger {
    days: Mutex<BTreeMap<Day, (DayTotals, NodeTotals)>>,
    is_away: AtomicBool,
    is_asked: AtomicBool,
}

impl SingleLedger {
    async fn answer(&self, exchange: LedgerExchange) -> Result<LedgerExchangeReply, StoreError> {
        assert!(
            !self.is_asked.swap(true, Ordering::SeqCst),
            "two concurrent calls for one application"
        );
        yield_now().await;
        let written = self.write(&exchange);
        yield_now().await;
        self.is_asked.store(false, Ordering::SeqCst);
        written
    }

    fn write(&self, exchange: &LedgerExchange) -> Result<LedgerExchangeReply, StoreError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(unavailable());
        }
        let mut days = self.days.lock().unwrap();
        let today = days
            .keys()
            .next_back()
            .copied()
            .unwrap_or_default()
            .max(exchange.today);
        let outcome = |report: &LedgerReport| {
            if report.day < today {
                return ReportOutcome::Closed;
            }
            let row = days.entry(report.day).or_default();
            *row = row.0.apply(row.1, &report.totals);
            ReportOutcome::Applied {
                node: row.1,
                granted: row.0.granted,
                has_outdated_terms: false,
            }
        };
        let outcomes = exchange.reports.iter().map(outcome).collect();
        Ok(LedgerExchangeReply {
            today,
            outcomes,
            ..LedgerExchangeReply::default()
        })
    }

    /// Units that were granted for a day and not returned.
    fn granted(&self) -> BTreeMap<Day, u64> {
        self.days
            .lock()
            .unwrap()
            .iter()
            .map(|(day, (total, _))| (*day, total.granted))
            .collect()
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        doing: "work",
        reason: "it is away".into(),
    }
}

impl Ledger for SingleLedger {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(async { Err(unavailable()) })
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        Box::pin(self.answer(exchange))
    }
}

/// State shared by the threads of a schedule.
struct ScheduleState {
    ledger: Arc<SingleLedger>,
    leases: Arc<Leases>,
    key_directory: KeyDirectory,
    terms: TermsByTier,
    clock: Clock,
    manual: ManualClock,
    calls: Arc<Mutex<Vec<JoinHandle<()>>>>,
    /// Units delivered, by day.
    delivered: Mutex<BTreeMap<Day, u64>>,
}

impl ScheduleState {
    /// Creates a paying application with this quota.
    fn new(quota: u32) -> Self {
        let (clock, manual) = Clock::manual(BEFORE_MIDNIGHT);
        let key_directory = KeyDirectory::default();
        let terms = TermsByTier::new(&standard_tiers(), 60);
        let day = BEFORE_MIDNIGHT.day();
        assert!(key_directory.apply(&with_quota(quota), &terms, day));
        let ledger = Arc::new(SingleLedger::default());
        let calls: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let begun = Arc::clone(&calls);
        let spawn: SpawnLedgerWork = Box::new(move |work: LedgerWork| {
            begun.lock().unwrap().push(shuttle::future::spawn(work));
        });
        let shared: Arc<dyn Ledger> = Arc::clone(&ledger) as Arc<dyn Ledger>;
        let ledger_calls =
            LedgerCalls::new(shared, 1, spawn, clock.clone(), Arc::clone(&INSTRUMENTS));
        let leases = Arc::new(Leases::of(ledger_calls));
        Self {
            ledger,
            leases,
            key_directory,
            terms,
            clock,
            manual,
            calls,
            delivered: Mutex::default(),
        }
    }

    /// Makes a request. If its response is ready, the request is charged in one step unless it has to wait.
    async fn request(&self, is_delivered: bool, is_ready: bool) {
        let digest = Digest::of(KEY);
        let found = self.key_directory.find(&digest).unwrap();
        let caller = Caller::new(found, &digest);
        if is_ready {
            match charge(&self.leases, &caller, !is_delivered, self.clock.now()) {
                Charge::Paid { day, runs_low, .. } => {
                    if runs_low {
                        self.leases.lease_ahead(&caller.account);
                    }
                    return self.delivered(day);
                }
                Charge::Refused(_) => return,
                Charge::Waits => {}
            }
        }
        match admit(&self.leases, &caller, false, self.clock.now(), || {}).await {
            Ok(Admission::ToFetch(hold)) => {
                yield_now().await;
                self.delivered(hold.deliver(!is_delivered));
            }
            Ok(Admission::ToRevalidate(_)) => panic!("nobody asked to look"),
            Err(Refusal::Limited(_) | Refusal::LedgerUnavailable { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
    }

    fn delivered(&self, day: Option<Day>) {
        if let Some(day) = day {
            *self.delivered.lock().unwrap().entry(day).or_default() += 1;
        }
    }

    fn set_quota(&self, quota: u32) {
        assert!(self.key_directory.apply(
            &with_quota(quota),
            &self.terms,
            self.clock.now().wall.day()
        ));
    }

    /// Ends like a shutdown: waits for calls in flight, then charges owed units, then returns idle units.
    async fn stop(&self) {
        self.ledger.is_away.store(false, Ordering::SeqCst);
        self.manual.advance(Duration::from_secs(5));
        self.leases.probe();
        for _ in 0..2 {
            loop {
                let Some(call) = self.calls.lock().unwrap().pop() else {
                    break;
                };
                call.await.unwrap();
            }
            self.leases.charge_owed().await;
        }
        self.leases.drain(&self.key_directory).await;
    }
}

fn with_quota(quota: u32) -> StoredApplication {
    let own = OwnLimits::NONE
        .with(LimitSetting::Minute, 1_000)
        .with(LimitSetting::Day, quota);
    StoredApplication {
        own,
        ..stored("pro", &[KEY])
    }
}

fn try_schedules(act: fn()) {
    let scheduled = move || {
        SCHEDULED.set(true);
        act();
    };
    shuttle::check_random(scheduled, SCHEDULES);
    shuttle::check_pct(scheduled, SCHEDULES, 3);
    SCHEDULED.set(false);
}

/// Runs three concurrent callers and another task.
fn with_callers(stage: &Arc<ScheduleState>, beside: impl FnOnce(&ScheduleState) + Send + 'static) {
    let callers = (0..3).map(|caller| {
        let stage = Arc::clone(stage);
        shuttle::thread::spawn(move || {
            block_on(async {
                for request in 0..3 {
                    stage
                        .request((caller + request) % 4 != 0, request % 2 == 1)
                        .await;
                }
            });
        })
    });
    let mut threads: Vec<_> = callers.collect();
    let shared = Arc::clone(stage);
    threads.push(shuttle::thread::spawn(move || beside(&shared)));
    for thread in threads {
        thread.join().unwrap();
    }
    block_on(stage.stop());
}

#[test]
fn under_any_schedule_delivered_units_equal_granted_ones() {
    try_schedules(|| {
        let stage = Arc::new(ScheduleState::new(6));
        with_callers(&stage, |stage| {
            for quota in [2, 6] {
                switch_here();
                stage.set_quota(quota);
            }
        });
        let delivered = stage.delivered.lock().unwrap().clone();
        assert!(delivered.values().all(|units| *units <= 6), "{delivered:?}");
        let mut granted = stage.ledger.granted();
        granted.retain(|_, units| *units > 0);
        assert_eq!(granted, delivered);
    });
}

#[test]
fn across_midnight_each_unit_is_charged_to_one_day() {
    try_schedules(|| {
        let stage = Arc::new(ScheduleState::new(3));
        with_callers(&stage, |stage| {
            switch_here();
            stage.manual.advance(Duration::from_secs(10));
        });
        let granted = stage.ledger.granted();
        for (day, units) in stage.delivered.lock().unwrap().iter() {
            assert!(
                *units <= granted[day] && granted[day] <= 3,
                "{day}: {units} of {granted:?}"
            );
        }
    });
}

#[test]
fn with_an_intermittent_ledger_grace_is_bounded_and_charged() {
    try_schedules(|| {
        let stage = Arc::new(ScheduleState::new(200));
        block_on(stage.request(true, true));
        with_callers(&stage, |stage| {
            for is_away in [true, false] {
                switch_here();
                stage.ledger.is_away.store(is_away, Ordering::SeqCst);
                stage.manual.advance(Duration::from_secs(1));
            }
        });
        let delivered: u64 = stage.delivered.lock().unwrap().values().sum();
        let granted: u64 = stage.ledger.granted().values().sum();
        assert_eq!(granted, delivered);
    });
}
