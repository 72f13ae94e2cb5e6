//! The random schedule of faults, and its execution.

use std::{sync::atomic::Ordering, thread::Scope, time::Duration};

use super::{
    gateways::{FaultyFleet, GATEWAYS},
    trace::FaultWindow,
};
use crate::{cluster::PostgresCluster, links::LinkMode};

/// A seeded generator.
pub struct SeededChoice(u64);

impl SeededChoice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        // SplitMix64: short, and random enough for this.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    pub fn seconds(&mut self, least: f64, most: f64) -> f64 {
        let part = f64::from(u32::try_from(self.below(1_000)).unwrap()) / 1_000.0;
        least + (most - least) * part
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// SIGKILL; the gateway is started again at the end.
    KillGateway(usize),
    /// SIGSTOP until the end.
    PauseGateway(usize),
    /// SIGTERM; the gateway is started again at the end.
    StopGateway(usize),
    /// All of its connections to the database are closed.
    Cut(usize),
    /// Its connections forward nothing.
    Silence(usize),
    /// Its statements reach the database, and the replies do not come back. The connections are cut at the end.
    LoseReplies(usize),
    Slow(usize),
    /// The machine's clock of the gateway is off by this many seconds.
    SetGatewayClock(usize, i64),
    /// SIGKILL; the standby is promoted at the end, and the lost server is rebuilt as the new standby.
    KillPrimary,
    /// SIGSTOP until the end.
    PauseDatabase,
    /// The database's clock is off by this many seconds.
    SetDatabaseClock(i64),
}

/// A fault with its start and its duration, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct PlannedFault {
    at: f64,
    lasts: f64,
    fault: Fault,
}

const KINDS: usize = 12;

fn fault(kind: usize, choice: &mut SeededChoice) -> (Fault, f64) {
    let slot = choice.below(GATEWAYS);
    match kind {
        0 => (Fault::KillGateway(slot), choice.seconds(0.0, 1.0)),
        1 => (Fault::PauseGateway(slot), choice.seconds(1.0, 6.0)),
        2 => (Fault::StopGateway(slot), choice.seconds(0.0, 1.0)),
        3 => (Fault::Cut(slot), 0.0),
        4 => (Fault::Silence(slot), choice.seconds(1.0, 6.0)),
        5 => (Fault::LoseReplies(slot), choice.seconds(0.5, 4.0)),
        6 => (Fault::Slow(slot), choice.seconds(1.0, 4.0)),
        7 => {
            let step = [3_600, -3_600, 86_400, -86_400, 40, -40][choice.below(6)];
            (Fault::SetGatewayClock(slot, step), choice.seconds(2.0, 4.0))
        }
        8 => (Fault::KillPrimary, choice.seconds(0.2, 3.0)),
        9 => (Fault::PauseDatabase, choice.seconds(1.0, 5.0)),
        10 => {
            let step = [8, -8, 20, -20][choice.below(4)];
            (Fault::SetDatabaseClock(step), choice.seconds(2.0, 4.0))
        }
        _ => (Fault::KillGateway(slot), choice.seconds(0.0, 3.0)),
    }
}

/// Faults of all kinds in random order, one round after another for at least this many seconds. They overlap.
pub fn plan(choice: &mut SeededChoice, seconds: f64) -> Vec<PlannedFault> {
    let mut planned = Vec::new();
    let mut at = 1.0;
    while planned.is_empty() || at < seconds {
        let mut kinds: Vec<usize> = (0..KINDS).collect();
        while !kinds.is_empty() {
            let (fault, lasts) = fault(kinds.swap_remove(choice.below(kinds.len())), choice);
            planned.push(PlannedFault { at, lasts, fault });
            at += lasts * choice.seconds(0.4, 1.1) + choice.seconds(0.5, 2.0);
        }
    }
    planned
}

/// The start or the end of a fault.
#[derive(Clone, Copy, Debug)]
struct FaultEdge {
    at: f64,
    planned: PlannedFault,
    /// Index of the window in the record, once the fault has begun.
    window: Option<usize>,
}

/// Executes the schedule from now on. Gateways are started again by threads of `scope`.
pub fn execute<'scope>(
    scope: &'scope Scope<'scope, '_>,
    fleet: &'scope FaultyFleet,
    cluster: &mut PostgresCluster,
    planned: &[PlannedFault],
) {
    let start = fleet.now();
    let mut edges: Vec<FaultEdge> = planned
        .iter()
        .map(|planned| FaultEdge {
            at: start + planned.at,
            planned: *planned,
            window: None,
        })
        .collect();
    while !edges.is_empty() {
        edges.sort_by(|one, other| other.at.total_cmp(&one.at));
        let Some(next) = edges.pop() else { return };
        std::thread::sleep(Duration::from_secs_f64((next.at - fleet.now()).max(0.0)));
        match next.window {
            None => {
                let window = open_window(fleet, next.planned.fault);
                if begin(fleet, cluster, next.planned.fault) {
                    let end = FaultEdge {
                        at: fleet.now() + next.planned.lasts,
                        window: Some(window),
                        ..next
                    };
                    edges.push(end);
                } else {
                    close_window(fleet, window);
                }
            }
            Some(window) => match next.planned.fault {
                Fault::KillGateway(slot) | Fault::StopGateway(slot) => {
                    scope.spawn(move || {
                        fleet.start(slot);
                        close_window(fleet, window);
                    });
                }
                fault @ (Fault::PauseGateway(_)
                | Fault::Cut(_)
                | Fault::Silence(_)
                | Fault::LoseReplies(_)
                | Fault::Slow(_)
                | Fault::SetGatewayClock(..)
                | Fault::KillPrimary
                | Fault::PauseDatabase
                | Fault::SetDatabaseClock(_)) => {
                    end(fleet, cluster, fault);
                    close_window(fleet, window);
                }
            },
        }
    }
}

fn open_window(fleet: &FaultyFleet, fault: Fault) -> usize {
    let (gateway, hides_database) = match fault {
        Fault::KillGateway(slot) | Fault::StopGateway(slot) | Fault::SetGatewayClock(slot, _) => {
            (Some(slot), false)
        }
        // After a pause, the deadlines of the gateway's transactions have passed.
        Fault::PauseGateway(slot)
        | Fault::Cut(slot)
        | Fault::Silence(slot)
        | Fault::LoseReplies(slot)
        | Fault::Slow(slot) => (Some(slot), true),
        Fault::KillPrimary | Fault::PauseDatabase => (None, true),
        Fault::SetDatabaseClock(_) => (None, false),
    };
    let from = fleet.now();
    let what = format!("{fault:?}");
    let window = FaultWindow {
        gateway,
        from,
        until: f64::MAX,
        hides_database,
        what,
    };
    let mut record = fleet.record.lock().unwrap();
    record.faults.push(window);
    record.faults.len() - 1
}

fn close_window(fleet: &FaultyFleet, window: usize) {
    let now = fleet.now();
    fleet.record.lock().unwrap().faults[window].until = now;
}

/// Begins a fault. Returns `false` if the fault cannot begin, or has no end.
fn begin(fleet: &FaultyFleet, cluster: &mut PostgresCluster, fault: Fault) -> bool {
    match fault {
        Fault::KillGateway(slot) => return fleet.kill(slot),
        Fault::StopGateway(slot) => {
            // The gateway may be paused.
            fleet.slots[slot].signal("CONT");
            return fleet.stop(slot);
        }
        Fault::PauseGateway(slot) => fleet.slots[slot].signal("STOP"),
        Fault::Cut(slot) => {
            fleet.slots[slot].cut_links();
            return false;
        }
        Fault::Silence(slot) => fleet.slots[slot].set_links(LinkMode::Silent),
        Fault::LoseReplies(slot) => fleet.slots[slot].set_links(LinkMode::NoReplies),
        Fault::Slow(slot) => {
            fleet.slots[slot].set_links(LinkMode::Slow(Duration::from_millis(250)));
        }
        Fault::SetGatewayClock(slot, step) => {
            let offset = fleet.database_offset.load(Ordering::Relaxed);
            fleet.slots[slot].clock.set(offset + step);
        }
        Fault::KillPrimary => cluster.kill_primary(),
        Fault::PauseDatabase => cluster.pause(),
        Fault::SetDatabaseClock(step) => set_database_clock(fleet, step),
    }
    true
}

fn end(fleet: &FaultyFleet, cluster: &mut PostgresCluster, fault: Fault) {
    match fault {
        Fault::KillGateway(_) | Fault::StopGateway(_) | Fault::Cut(_) => {}
        Fault::PauseGateway(slot) => fleet.slots[slot].signal("CONT"),
        Fault::Silence(slot) | Fault::Slow(slot) => fleet.slots[slot].set_links(LinkMode::Forward),
        Fault::LoseReplies(slot) => {
            fleet.slots[slot].cut_links();
            fleet.slots[slot].set_links(LinkMode::Forward);
        }
        Fault::SetGatewayClock(slot, _) => {
            fleet.slots[slot]
                .clock
                .set(fleet.database_offset.load(Ordering::Relaxed));
        }
        Fault::KillPrimary => {
            cluster.promote();
            cluster.rebuild();
        }
        Fault::PauseDatabase => cluster.resume(),
        Fault::SetDatabaseClock(step) => set_database_clock(fleet, -step),
    }
}

fn set_database_clock(fleet: &FaultyFleet, step: i64) {
    let offset = fleet.database_offset.fetch_add(step, Ordering::Relaxed) + step;
    fleet.database_clock.set(offset);
    if step > 0 {
        fleet.record.lock().unwrap().set_ahead.push(fleet.now());
    }
}
