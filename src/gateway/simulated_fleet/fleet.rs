//! The fleet: its applications, its processes, and the order of events of a run.

use std::{collections::BTreeMap, sync::Arc, task::Waker, time::Duration};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use scoregate_base::{
    clock::{Day, Wall},
    limits::NodeReport,
};
use scoregate_store::{Ledger, LedgerExchange, LedgerReport, ReportOutcome, Store};

use super::{
    applications::{APPLICATIONS, SimulatedApplication},
    network::{GATEWAYS, SimulatedLedger, SimulatedNetwork},
    observer::{AuditedWindow, FleetFigures, FleetObserver},
    planted::PlantedBug,
    process::SimulatedProcess,
    virtual_time::{SeededNumbers, VirtualExecutor},
};

/// The beginning of a run. The months of applications begin at the first midnight, those of owners at the second.
const START: &str = "2026-11-29T14:00:00Z";
/// The node of audits.
const AUDITOR: u64 = 1_000_000;

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3_600)
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

/// The size of a run.
#[derive(Clone, Copy)]
pub struct FleetSize {
    pub days: u32,
    /// Sessions of load each day, and their requests.
    pub sessions: u64,
    pub requests: u64,
}

/// A period with load.
#[derive(Clone, Copy)]
pub struct LoadSession {
    /// The application of most requests.
    pub usual: usize,
    pub left: u64,
    /// The mean time between two requests, in microseconds.
    pub mean: u64,
}

#[derive(Clone, Copy)]
pub enum FleetEvent {
    Session,
    Request(LoadSession),
    Fault,
    Start(usize),
    Stop(usize),
    Audit,
}

/// A gateway: its data directory, and its process while it runs.
pub struct SimulatedGateway {
    directory: TempDir,
    pub process: Option<Arc<SimulatedProcess>>,
    pub paused_until: Duration,
    /// The process is killed when it was polled this many times.
    pub polls_left: Option<u64>,
    pub is_stopping: bool,
    last_node: u64,
}

/// A run.
pub struct SimulatedFleet {
    pub numbers: SeededNumbers,
    pub size: FleetSize,
    pub executor: VirtualExecutor,
    pub network: Arc<SimulatedNetwork>,
    pub observer: Arc<Mutex<FleetObserver>>,
    pub gateways: [SimulatedGateway; GATEWAYS],
    events: BTreeMap<(Duration, u64), FleetEvent>,
    last_event: u64,
    last_node: u64,
    runtime: Runtime,
    _directory: TempDir,
}

/// A directory in memory, if there is one: a run does not depend on the disk.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

impl SimulatedGateway {
    fn new() -> Self {
        Self {
            directory: directory(),
            process: None,
            paused_until: Duration::ZERO,
            polls_left: None,
            is_stopping: false,
            last_node: 0,
        }
    }

    fn is_node(&self, node: u64) -> bool {
        self.process
            .as_ref()
            .is_some_and(|process| process.node == node)
    }
}

impl SimulatedFleet {
    pub fn new(seed: u64, size: FleetSize, bug: Option<PlantedBug>) -> Self {
        let kept = directory();
        let store = Store::open(kept.path()).unwrap();
        for application in &APPLICATIONS {
            pollster::block_on(store.change(application.creation())).unwrap();
        }
        let executor = VirtualExecutor::new(seed);
        let start = Wall::parse_rfc3339(START).unwrap();
        let time = executor.time.clone();
        let observer = Arc::default();
        let network = SimulatedNetwork::new(store, time, bug, start, seed, &observer);
        let runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            numbers: SeededNumbers::new(&[seed, 1]),
            size,
            executor,
            network: Arc::new(network),
            observer,
            gateways: std::array::from_fn(|_| SimulatedGateway::new()),
            events: BTreeMap::new(),
            last_event: 0,
            last_node: 0,
            runtime: { runtime }.build().unwrap(),
            _directory: kept,
        }
    }

    pub fn now(&self) -> Duration {
        self.executor.time.now()
    }

    pub fn at(&mut self, at: Duration, event: FleetEvent) {
        self.last_event += 1;
        self.events.insert((at, self.last_event), event);
    }

    /// Runs all days, then stops the gateways. The result is the first violation, or the figures.
    pub fn run(mut self) -> Result<FleetFigures, String> {
        for gateway in 0..GATEWAYS {
            self.at(Duration::ZERO, FleetEvent::Start(gateway));
        }
        for day in 0..self.size.days {
            let begin = hours(24) * day;
            // Just before midnight.
            let night = begin + minutes(10 * 60 - 1);
            self.at(night, FleetEvent::Session);
            let after = self.numbers.millis(0, 90_000);
            let gateway = self.numbers.index(GATEWAYS);
            self.at(night + after, FleetEvent::Stop(gateway));
            for _ in 0..self.size.sessions {
                let after = self.numbers.millis(1_000, 21 * 3_600_000);
                self.at(begin + after, FleetEvent::Session);
            }
            // The hour before has no load and no faults.
            self.at(begin + minutes(23 * 60 - 10), FleetEvent::Audit);
        }
        while let Some(((at, _), event)) = self.events.pop_first() {
            self.run_until(at);
            self.take(event);
            if let Some(violation) = self.observer.lock().violation.take() {
                return Err(violation);
            }
        }
        for gateway in 0..GATEWAYS {
            self.stop(gateway);
        }
        self.run_until(self.now() + minutes(2));
        self.events.clear();
        self.audit(true);
        let mut observer = self.observer.lock();
        let figures = std::mem::take(&mut observer.figures);
        observer.violation.take().map_or(Ok(figures), Err)
    }

    fn take(&mut self, event: FleetEvent) {
        match event {
            FleetEvent::Session => self.begin_session(),
            FleetEvent::Request(session) => self.request(session),
            FleetEvent::Fault => self.fault(),
            FleetEvent::Start(gateway) => self.start(gateway),
            FleetEvent::Stop(gateway) => self.stop(gateway),
            FleetEvent::Audit => self.audit(false),
        }
    }

    fn run_until(&mut self, end: Duration) {
        loop {
            let now = self.now();
            let gateways = &self.gateways;
            let is_paused = |gateway: &SimulatedGateway, node| {
                now < gateway.paused_until && gateway.is_node(node)
            };
            let may_run = |node| !gateways.iter().any(|gateway| is_paused(gateway, node));
            if let Some([task, node]) = self.executor.next_ready(may_run) {
                self.poll(task, node);
            } else if !self.executor.advance(end) {
                return;
            }
        }
    }

    fn poll(&mut self, task: u64, node: u64) {
        let gateway = self.gateways.iter().position(|one| one.is_node(node));
        let Some(gateway) = gateway else {
            self.executor.poll(task);
            return;
        };
        let process = self.gateways[gateway].process.clone().unwrap();
        process.follow_time();
        if self.executor.poll(task) {
            process.finish_writes();
        }
        if process.leases.is_unreachable() {
            self.observer.lock().is_cut_on(self.network.wall());
        }
        drop(process);
        self.end_stopped(gateway);
        let left = &mut self.gateways[gateway].polls_left;
        *left = left.map(|left| left.saturating_sub(1));
        if *left == Some(0) {
            self.kill(gateway);
        }
    }

    fn end_stopped(&mut self, gateway: usize) {
        let stopped = self.observer.lock().stopped.pop();
        if let Some((node, is_clean)) = stopped {
            self.trace(|| format!("node {node} has stopped; clean: {is_clean}"));
            if !is_clean {
                self.observer.lock().crashed(node, &self.days_in_use());
            }
            self.end(gateway);
        }
    }

    fn trace(&self, event: impl FnOnce() -> String) {
        let mut observer = self.observer.lock();
        observer.now = self.now();
        observer.trace(event);
    }

    /// Days of which a process may have units.
    fn days_in_use(&self) -> Vec<Day> {
        let wall = self.network.wall();
        let first = wall.minus(hours(24) + minutes(4)).day().number();
        let last = wall.plus(minutes(9)).day().number();
        (first..=last).map(Day::from_number).collect()
    }

    /// Ends a process without a shutdown.
    pub fn kill(&mut self, gateway: usize) {
        let days = self.days_in_use();
        if let Some(process) = &self.gateways[gateway].process {
            self.trace(|| format!("node {} is killed", process.node));
            self.observer.lock().crashed(process.node, &days);
        }
        self.end(gateway);
    }

    fn end(&mut self, gateway: usize) {
        let ending = &mut self.gateways[gateway];
        ending.polls_left = None;
        ending.is_stopping = false;
        if let Some(process) = ending.process.take() {
            ending.last_node = process.node;
            self.observer.lock().ended(process.node);
            self.executor.end(process.node);
            let after = self.numbers.millis(100, 30_000);
            self.at(self.now() + after, FleetEvent::Start(gateway));
        }
    }

    /// Shuts a process down.
    pub fn stop(&mut self, gateway: usize) {
        let after = self.numbers.millis(0, 12_000);
        let stopping = &mut self.gateways[gateway];
        if let Some(process) = stopping.process.clone()
            && !std::mem::replace(&mut stopping.is_stopping, true)
        {
            let time = &self.executor.time;
            time.spawn(process.node, process.stop(after));
        }
    }

    pub fn pause(&mut self, gateway: usize, time: Duration) {
        let end = self.now() + time;
        self.gateways[gateway].paused_until = end;
        self.executor.time.wake_at(end, Waker::noop());
    }

    fn start(&mut self, gateway: usize) {
        self.last_node += 1;
        let starting = &mut self.gateways[gateway];
        let is_reused = self.network.bug == Some(PlantedBug::ReusesNumber);
        let node = if is_reused && starting.last_node > 0 {
            starting.last_node
        } else {
            self.last_node
        };
        let network = Arc::clone(&self.network);
        let ledger = SimulatedLedger {
            network,
            gateway,
            node,
        };
        let offset = i64::try_from(self.numbers.below(9)).unwrap() - 4;
        let directory = starting.directory.path();
        let process = SimulatedProcess::start(ledger, &self.observer, directory, offset);
        let process = self.runtime.block_on(process);
        process.begin();
        starting.process = Some(process);
    }

    /// Compares the ledger with what was delivered.
    fn audit(&self, is_last: bool) {
        let today = self.network.wall().day();
        let yesterday = Day::from_number(today.number() - 1);
        let mut windows = Vec::new();
        let mut observer = self.observer.lock();
        observer.now = self.now();
        for (index, application) in APPLICATIONS.iter().enumerate() {
            for day in [yesterday, today] {
                let (granted, of_day) = self.read(application, day);
                // Units of a day alone are of no use after it.
                let has_windows = application.quotas().count() > 1;
                let is_settled = is_last && day == today || day < today && has_windows;
                observer.audit(index, day, granted, is_settled);
                windows.extend(of_day.into_iter().map(|window| (index, window, day)));
            }
        }
        for (index, window, day) in windows {
            if day == today {
                observer.audit_window(index, &window, day);
            }
        }
    }

    /// The units of a day and of its windows.
    fn read(&self, application: &SimulatedApplication, day: Day) -> (u64, Vec<AuditedWindow>) {
        let limits = application.limits();
        let units = LedgerReport::of_units(application.id(), day, NodeReport::default());
        let report = LedgerReport {
            windows: limits.calendar.around(day).collect(),
            ..units
        };
        let exchange = LedgerExchange {
            node: AUDITOR,
            today: self.network.wall().day(),
            reports: vec![report],
        };
        let reply = pollster::block_on(self.network.store.exchange(exchange)).unwrap();
        let ReportOutcome::Applied { granted, .. } = reply.outcomes[0] else {
            panic!("{reply:?}");
        };
        let windows = reply.windows[0].iter().map(|units| AuditedWindow {
            rule: units.window.rule,
            start: units.window.start,
            granted: units.granted,
        });
        (granted, windows.collect())
    }
}
