//! A gateway process: its accounts, leases and grace, its periodic tasks, and requests through its stages.

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{
    accounts::{Account, Charge, KeyDirectory, stored},
    gateway::{
        refusal::Refusal,
        stages::{
            admit::{Admission, admit},
            authenticate::Caller,
            charge::charge,
        },
    },
    instruments::LedgerInstruments,
    quota::{Leases, LedgerCalls, LedgerWork},
};
use scoregate_base::{
    clock::{Clock, Day, ManualClock, Wall},
    keys::Digest,
    limits::LimitStatus,
};
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::LocalFile;

use super::{
    applications::{APPLICATIONS, TERMS},
    network::{GATEWAYS, SimulatedLedger, SimulatedNetwork, TIMEOUT},
    observer::FleetObserver,
};

static INSTRUMENTS: LazyLock<Arc<LedgerInstruments>> =
    LazyLock::new(|| Arc::new(LedgerInstruments::new(&MetricsRegistry::default())));

/// Maximum time that a shutdown waits for open requests, and for calls in flight.
const SHUTDOWN: Duration = Duration::from_secs(10);

/// Time after a request for which a process does its periodic tasks as often as the product.
const BUSY: Duration = Duration::from_secs(45);
/// Interval of periodic tasks without requests.
const IDLE: Duration = Duration::from_hours(3);

/// A process.
pub struct SimulatedProcess {
    pub gateway: usize,
    pub node: u64,
    pub leases: Arc<Leases>,
    network: Arc<SimulatedNetwork>,
    observer: Arc<Mutex<FleetObserver>>,
    directory: KeyDirectory,
    clock: Clock,
    manual: ManualClock,
    /// The time that its clock shows, in nanoseconds since the beginning of the run.
    shown: AtomicU64,
    /// The time of the last request.
    used: AtomicU64,
    /// Whether calls have nothing more to write.
    has_charged: Arc<AtomicBool>,
    /// Ends the pauses of an idle process.
    is_used_again: Notify,
    /// An account that owes nothing.
    idle: Arc<Account>,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct RequestPlan {
    pub application: usize,
    /// Whether the document is cached.
    pub is_ready: bool,
    pub fetch: Duration,
    pub end: SimulatedEnd,
}

/// How a request ends that is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedEnd {
    Data,
    NotModified,
    /// A cached document does not fail.
    Failure,
    /// A failure that costs no token.
    Overload,
}

/// Time until units of tomorrow are due. Zero until yesterday is settled.
fn until_midnight(wall: Wall) -> Duration {
    let near = Duration::from_mins(7);
    let begun = wall.day().start();
    if wall.since(begun) < near {
        return Duration::ZERO;
    }
    let left = wall.day().end().since(wall);
    left.saturating_sub(near)
}

/// The calls of a process to the ledger.
fn calls(ledger: SimulatedLedger, clock: &Clock, has_charged: &Arc<AtomicBool>) -> LedgerCalls {
    let time = ledger.network.time.clone();
    let node = ledger.node;
    let charged = Arc::clone(has_charged);
    let spawn = Box::new(move |work: LedgerWork| {
        time.start(node, work, !charged.load(Ordering::Relaxed));
    });
    let instruments = Arc::clone(&INSTRUMENTS);
    let calls = LedgerCalls::new(Arc::new(ledger), node, spawn, clock.clone(), instruments);
    let gateways = NonZeroU32::new(u32::try_from(GATEWAYS).unwrap()).unwrap();
    calls.shared(gateways, TIMEOUT)
}

fn wrong_by(wall: Wall, seconds: i64) -> Wall {
    Wall::from_millis(wall.millis().saturating_add_signed(seconds * 1_000))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

impl SimulatedProcess {
    /// Starts a process, with a clock that is wrong by `offset` seconds.
    pub async fn start(
        ledger: SimulatedLedger,
        observer: &Arc<Mutex<FleetObserver>>,
        directory: &Path,
        offset: i64,
    ) -> Arc<Self> {
        let network = Arc::clone(&ledger.network);
        let gateway = ledger.gateway;
        let node = ledger.node;
        let (clock, manual) = Clock::manual(wrong_by(network.wall(), offset));
        let has_charged = Arc::new(AtomicBool::new(false));
        let file = Arc::new(LocalFile::open(directory).unwrap());
        let calls = calls(ledger, &clock, &has_charged).carrying(file).await;
        let directory = KeyDirectory::default();
        let day = clock.now().wall.day();
        for application in &APPLICATIONS {
            assert!(directory.apply(&application.stored(), &TERMS, day));
        }
        let free = stored("free", &[]);
        let terms = TERMS.of("free", free.own).unwrap();
        let now = nanos(network.time.now());
        Arc::new(Self {
            gateway,
            node,
            leases: Arc::new(Leases::of(calls)),
            network,
            observer: Arc::clone(observer),
            directory,
            clock,
            manual,
            shown: now.into(),
            used: now.into(),
            has_charged,
            is_used_again: Notify::new(),
            idle: Arc::new(Account::new(&free, terms, day)),
        })
    }

    /// Moves its clock to the present.
    pub fn follow_time(&self) {
        let now = nanos(self.network.time.now());
        let before = self.shown.swap(now, Ordering::Relaxed);
        if now > before {
            self.manual.advance(Duration::from_nanos(now - before));
        }
    }

    /// Sets its clock, which is then wrong by `offset` seconds.
    pub fn step_clock(&self, offset: i64) {
        self.follow_time();
        self.manual.step_to(wrong_by(self.network.wall(), offset));
    }

    /// Waits until the thread that writes grace has done all its work. Its replies then arrive at the same virtual time
    /// in each run.
    pub fn finish_writes(&self) {
        // The first reply may precede the write of its group.
        for _ in 0..2 {
            pollster::block_on(self.leases.calls.grace.reserve(&self.idle));
        }
    }

    /// Starts its periodic tasks.
    pub fn begin(self: &Arc<Self>) {
        let time = &self.network.time;
        time.spawn(self.node, Arc::clone(self).return_units());
        time.spawn(self.node, Arc::clone(self).keep_shares());
        time.spawn(self.node, Arc::clone(self).prepare_days());
    }

    /// Pauses between two runs of a periodic task. Idle processes pause for longer, which makes them cheaper to
    /// simulate.
    async fn pause(&self, usual: Duration) {
        let time = &self.network.time;
        let used = Duration::from_nanos(self.used.load(Ordering::Relaxed));
        let is_busy = time.now() < used + BUSY || self.leases.is_unreachable();
        let to_midnight = until_midnight(self.network.wall());
        let pause = if is_busy {
            usual
        } else if to_midnight.is_zero() {
            usual.max(Duration::from_secs(10))
        } else {
            to_midnight.min(IDLE)
        };
        tokio::select! {
            biased;
            () = time.sleep(pause) => {}
            () = self.is_used_again.notified() => {}
        }
    }

    async fn return_units(self: Arc<Self>) {
        loop {
            self.pause(Duration::from_secs(1)).await;
            self.clock.check();
            if !self.network.is_cut(self.gateway) {
                self.clock.follow(self.network.wall(), self.clock.mono());
            }
            self.leases.return_unused(&self.directory);
            self.leases.probe();
        }
    }

    async fn keep_shares(self: Arc<Self>) {
        let charged = self.leases.calls.charge_carried().await;
        self.has_charged.store(charged.is_ok(), Ordering::Relaxed);
        loop {
            self.leases.keep_grace_share().await;
            self.pause(Duration::from_millis(2_500)).await;
        }
    }

    async fn prepare_days(self: Arc<Self>) {
        loop {
            self.pause(Duration::from_secs(10)).await;
            self.leases.lease_tomorrow(&self.directory).await;
            self.leases.charge_owed().await;
            let today = self.clock.now().wall.day();
            self.leases.calls.leasing.held(today);
        }
    }

    /// Shuts down as `app::running` does. The process ends `after` units were returned.
    pub async fn stop(self: Arc<Self>, after: Duration) {
        let failed = self.network.failed(self.node);
        let was_unreachable = self.leases.is_unreachable();
        let time = &self.network.time;
        let pauses = Duration::from_millis(100);
        let end = time.now() + SHUTDOWN;
        while time.now() < end && self.observer.lock().has_open(self.node) {
            time.sleep(pauses).await;
        }
        self.leases.charge_owed().await;
        let end = time.now() + SHUTDOWN;
        while time.now() < end && self.is_leasing() {
            time.sleep(pauses).await;
        }
        self.leases.drain(&self.directory).await;
        time.sleep(after).await;
        let has_failed = was_unreachable || self.network.failed(self.node) > failed;
        let mut observer = self.observer.lock();
        let is_clean = !has_failed && !observer.has_open(self.node);
        observer.stopped.push((self.node, is_clean));
    }

    fn is_leasing(&self) -> bool {
        let mut keys = APPLICATIONS.iter().map(|application| application.key);
        keys.any(|key| self.caller(key).account.is_leasing())
    }

    fn caller(&self, key: &str) -> Caller {
        let digest = Digest::of(key);
        Caller::new(self.directory.find(&digest).unwrap(), &digest)
    }

    /// Makes a request.
    pub async fn request(self: Arc<Self>, plan: RequestPlan) {
        let now = nanos(self.network.time.now());
        let before = self.used.swap(now, Ordering::Relaxed);
        if now - before > nanos(BUSY) {
            self.is_used_again.notify_waiters();
        }
        let caller = self.caller(APPLICATIONS[plan.application].key);
        self.observe(|observer| observer.begin(self.node, plan.application, self.network.wall()));
        if !(plan.is_ready && self.charge(&caller, plan)) {
            self.admit(&caller, plan).await;
        }
        self.observe(|observer| observer.end(self.node, plan.application));
    }

    fn observe<T>(&self, observe: impl FnOnce(&mut FleetObserver) -> T) -> T {
        let observer = &mut self.observer.lock();
        observer.now = self.network.time.now();
        observe(observer)
    }

    /// Charges a request for a cached document. Returns whether it has ended.
    fn charge(&self, caller: &Caller, plan: RequestPlan) -> bool {
        let now = self.clock.now();
        match charge(
            &self.leases,
            caller,
            plan.end == SimulatedEnd::NotModified,
            now,
        ) {
            Charge::Paid {
                day,
                runs_low,
                statuses,
            } => {
                if runs_low {
                    self.leases.lease_ahead(&caller.account);
                }
                let windows = caller.account.window_statuses(&caller.limits, now);
                self.admitted(plan, self.leases.is_unreachable());
                self.delivered(plan, day, statuses.iter().chain(&windows));
            }
            Charge::Refused(_) => self.observe(|observer| observer.count("limited")),
            Charge::Waits => return false,
        }
        true
    }

    async fn admit(&self, caller: &Caller, plan: RequestPlan) {
        let failed = self.network.failed(self.node);
        let admitted = admit(&self.leases, caller, false, self.clock.now(), || {}).await;
        let is_cut = self.leases.is_unreachable() || self.network.failed(self.node) > failed;
        if is_cut {
            self.observe(|observer| observer.without_ledger(self.node, plan.application));
        }
        match admitted {
            Ok(Admission::ToFetch(hold)) => {
                self.admitted(plan, is_cut);
                self.network.time.sleep(plan.fetch).await;
                if plan.end == SimulatedEnd::Overload {
                    hold.give_token_back();
                    self.observe(|observer| observer.gave_back(plan.application));
                }
                if matches!(plan.end, SimulatedEnd::Failure | SimulatedEnd::Overload) {
                    return;
                }
                let day = hold.deliver(plan.end == SimulatedEnd::NotModified);
                let statuses = caller.account.statuses(self.clock.now());
                self.delivered(plan, day, statuses.iter());
            }
            Ok(Admission::ToRevalidate(_)) => panic!("the request is not conditional"),
            Err(Refusal::Limited(_)) => self.observe(|observer| observer.count("limited")),
            Err(_) => self.observe(|observer| observer.count("unavailable")),
        }
    }

    fn admitted(&self, plan: RequestPlan, is_cut: bool) {
        self.observe(|observer| observer.admitted(self.node, plan.application, is_cut));
    }

    fn delivered<'s>(
        &self,
        plan: RequestPlan,
        day: Option<Day>,
        statuses: impl Iterator<Item = &'s LimitStatus>,
    ) {
        let today = self.network.wall();
        self.observe(|observer| {
            observer.trace(|| format!("node {} delivers {plan:?}, {day:?}", self.node));
            if let Some(day) = day {
                observer.delivered(self.node, plan.application, day);
                observer.is_of_today(day, today);
            }
            for status in statuses {
                observer.reads(self.node, plan.application, status);
            }
        });
    }
}
