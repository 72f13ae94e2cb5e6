//! Three gateways with faulty links to a cluster of two database servers, and the operations on them.

use std::{
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Mono;
use tokio::runtime::Runtime;

use super::{
    population::FleetApplication,
    trace::{
        FaultWindow, KeptUnits, KnownRevocation, QuotaChange, SeenRequest, SeenRevocation, UsedUp,
    },
};
use crate::{
    fake_clock::{FakeClock, remove_shared_memory},
    fleet::*,
    links::{FaultyLink, LinkMode},
    postgres::OWNER,
};

pub const GATEWAYS: usize = 3;
/// A start is repeated until it succeeds, as a service manager does.
const MAX_START: f64 = 120.0;

/// Everything that the threads of a run share.
pub struct FaultyFleet {
    pub site: Site,
    pub applications: Vec<FleetApplication>,
    pub slots: [GatewaySlot; GATEWAYS],
    pub database_clock: FakeClock,
    /// Difference of the database's clock from the machine's, in seconds.
    pub database_offset: AtomicI64,
    pub is_over: AtomicBool,
    pub record: Mutex<SharedRecord>,
    clock: Clock,
    start: Mono,
    _links: Runtime,
}

/// A gateway, which is restarted after a kill.
pub struct GatewaySlot {
    data_dir: TempDir,
    url: String,
    links: Vec<FaultyLink>,
    pub clock: FakeClock,
    program: Mutex<Option<Program>>,
    current: Mutex<CurrentProcess>,
}

/// The process of a slot: its number and its address while it serves.
#[derive(Clone, Copy, Default)]
pub struct CurrentProcess {
    pub number: u32,
    pub public: Option<SocketAddr>,
}

/// The observations of the threads.
#[derive(Default)]
pub struct SharedRecord {
    pub requests: Vec<SeenRequest>,
    pub faults: Vec<FaultWindow>,
    pub revocations: Vec<SeenRevocation>,
    pub known: Vec<KnownRevocation>,
    pub used_up: Vec<UsedUp>,
    pub set_ahead: Vec<f64>,
    pub kills: u32,
    pub kept_units: Vec<KeptUnits>,
    pub changes: u32,
    pub quota_changes: Vec<QuotaChange>,
    pub access_logs: Vec<String>,
    pub event_logs: Vec<String>,
}

impl FaultyFleet {
    /// Gateways that are not started yet, and links to the database servers with these sockets.
    pub fn new(url: String, sockets: &[PathBuf], database_clock: FakeClock, offset: i64) -> Self {
        let links = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let slots = [(); GATEWAYS].map(|()| GatewaySlot::new(&links, sockets, offset));
        let clock = Clock::system();
        Self {
            site: Site {
                url,
                schema: "site".into(),
            },
            applications: Vec::new(),
            slots,
            database_clock,
            database_offset: AtomicI64::new(offset),
            is_over: AtomicBool::new(false),
            record: Mutex::default(),
            start: clock.mono(),
            clock,
            _links: links,
        }
    }

    /// Seconds since the start of the run.
    pub fn now(&self) -> f64 {
        self.clock.mono().since(self.start).as_secs_f64()
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Runs a command on the database, with its clock, until it succeeds. `None` if the run ends earlier.
    pub fn command(&self, arguments: &[&str]) -> Option<serde_json::Value> {
        let clock = self.database_clock.environment();
        let clock: Vec<(&str, &str)> = clock
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let environment = [
            &self.site.environment()[..],
            &[("SCOREGATE_STORE_TIMEOUT", "5s")],
            &clock,
        ]
        .concat();
        let arguments = [arguments, &["--json"]].concat();
        loop {
            let output = run_with(&arguments, &environment);
            if output.code == Some(0) {
                return Some(serde_json::from_str(&output.out).unwrap_or_default());
            }
            if self.is_over() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Changes the quota of an application. Returns `false` if the run ends earlier.
    pub fn set_quota(&self, application: usize, quota: u32) -> bool {
        let id = &self.applications[application].id;
        let day = quota.to_string();
        let from = self.now();
        let changed = self.command(&["keys", "set-limits", id, "--day", &day]);
        // A command that was abandoned may have taken effect.
        let change = QuotaChange {
            application,
            quota,
            from,
            until: self.now(),
        };
        self.record.lock().unwrap().quota_changes.push(change);
        changed.is_some()
    }

    /// Starts the gateway of a slot, and waits until it serves.
    pub fn start(&self, slot: usize) {
        let from = self.now();
        let gateway = &self.slots[slot];
        let clock = gateway.clock.environment();
        let mut environment = self.site.environment().to_vec();
        environment.extend([
            ("SCOREGATE_STORE_URL", gateway.url.as_str()),
            ("SCOREGATE_STORE_TIMEOUT", "2s"),
            ("SCOREGATE_LOG_FORMAT", "json"),
            ("SCOREGATE_LOG_SAMPLE_ONE_IN", "1"),
        ]);
        environment.extend(
            clock
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        loop {
            let program = Program::serve(gateway.data_dir.path(), &environment);
            if let Some((public, _)) = program.ports_if_any() {
                *gateway.program.lock().unwrap() = Some(program);
                let mut current = gateway.current.lock().unwrap();
                *current = CurrentProcess {
                    number: current.number + 1,
                    public: Some(public),
                };
                return;
            }
            let ended = program.end().0;
            assert!(
                self.now() < from + MAX_START,
                "gateway {slot} does not start: {}",
                ended.err
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Kills the gateway of a slot. Returns `false` if it is not running.
    pub fn kill(&self, slot: usize) -> bool {
        let gateway = &self.slots[slot];
        let Some(program) = gateway.program.lock().unwrap().take() else {
            return false;
        };
        gateway.current.lock().unwrap().public = None;
        let process = program.id();
        program.signal("KILL");
        self.keep_logs(program.end().0);
        remove_shared_memory(process);
        self.record.lock().unwrap().kills += 1;
        true
    }

    /// Stops the gateway of a slot gracefully. Returns `false` if it is not running.
    pub fn stop(&self, slot: usize) -> bool {
        let gateway = &self.slots[slot];
        let Some(program) = gateway.program.lock().unwrap().take() else {
            return false;
        };
        gateway.current.lock().unwrap().public = None;
        let from = self.now();
        let ended = program.stop();
        if ended.err.contains("leased units could not be returned") {
            let kept = KeptUnits {
                gateway: slot,
                from,
                until: self.now(),
            };
            self.record.lock().unwrap().kept_units.push(kept);
        }
        self.keep_logs(ended);
        true
    }

    /// Sends requests with a valid key until this gateway knows it.
    pub fn reaches(&self, slot: &GatewaySlot, key: &str) {
        let from = self.now();
        while slot.status(key) == 401 {
            assert!(
                self.now() < from + MAX_START,
                "a change does not reach a gateway"
            );
        }
    }

    fn keep_logs(&self, ended: crate::program::CommandOutput) {
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        let mut record = self.record.lock().unwrap();
        record.access_logs.push(ended.out);
        record.event_logs.push(ended.err);
    }
}

impl GatewaySlot {
    fn new(runtime: &Runtime, sockets: &[PathBuf], offset: i64) -> Self {
        let open = |socket: &PathBuf| FaultyLink::open(runtime.handle(), socket.clone());
        let links: Vec<FaultyLink> = sockets.iter().map(open).collect();
        let hosts: Vec<String> = links.iter().map(|link| link.address.to_string()).collect();
        Self {
            data_dir: TempDir::new().unwrap(),
            url: format!("postgresql://{OWNER}@{}/postgres", hosts.join(",")),
            links,
            clock: FakeClock::new(offset),
            program: Mutex::default(),
            current: Mutex::default(),
        }
    }

    pub fn current(&self) -> CurrentProcess {
        *self.current.lock().unwrap()
    }

    pub fn status(&self, key: &str) -> u16 {
        let public = self.current().public.unwrap();
        Wire::open(public)
            .unwrap()
            .get(TARGET, key)
            .status_and_code()
            .0
    }

    pub fn signal(&self, name: &str) {
        if let Some(program) = &*self.program.lock().unwrap() {
            program.signal(name);
        }
    }

    pub fn set_links(&self, mode: LinkMode) {
        self.links.iter().for_each(|link| link.set(mode));
    }

    pub fn cut_links(&self) {
        self.links.iter().for_each(FaultyLink::cut);
    }
}
