//! Three gateways on a database with a synchronous standby, under a random schedule of kills, pauses, failovers, faulty
//! connections, clock steps, changes and a midnight.
//!
//! By default it runs once at a small size. `SCOREGATE_FULL=1` runs it for ten minutes, does ten further runs of four
//! minutes in which daily quotas are used up, and writes the figures to `tests/results/`. `SCOREGATE_SEED` repeats the
//! schedule of a failed run.

mod callers;
mod changes;
mod early_refusals;
mod figures;
mod gateways;
mod laws;
mod planted;
mod population;
mod schedule;
mod trace;

use std::{sync::atomic::Ordering, time::Duration};

use scoregate_base::clock::{Clock, Wall};

use crate::{cluster::PostgresCluster, fake_clock::FakeClock, program::run_with};

use super::{is_full_size, note};
use early_refusals::EarlyRefusals;
use gateways::{FaultyFleet, GATEWAYS};
use population::{ApplicationRole, QUOTAS};
use schedule::SeededChoice;
use trace::{QuotaChange, Trace};

pub const DAY: i64 = 86_400;

/// The size of a run.
struct FaultSize {
    applications: usize,
    /// Applications whose keys are revoked.
    revoked: usize,
    /// Faults begin during at least this many seconds, at least one of each kind.
    faults: f64,
    /// From the first fault to midnight, in seconds.
    midnight: i64,
}

const SMALL: FaultSize = FaultSize {
    applications: 11,
    revoked: 6,
    faults: 0.0,
    midnight: 28,
};
/// Long enough to use up the changing quotas of both days long before the days end.
const USED_UP: FaultSize = FaultSize {
    applications: 11,
    revoked: 6,
    faults: 200.0,
    midnight: 100,
};
const FULL: FaultSize = FaultSize {
    applications: 55,
    revoked: 60,
    faults: 600.0,
    midnight: 300,
};

#[test]
fn no_schedule_of_faults_breaks_a_quota_a_minute_limit_or_a_revocation() {
    needs!("postgresql", "libfaketime");
    let is_full = is_full_size();
    let size = if is_full { FULL } else { SMALL };
    let given = std::env::var("SCOREGATE_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| getrandom::u64().unwrap());
    // Printed with a failure.
    note(&format!("SCOREGATE_SEED={seed}"));
    let trace = run(&size, seed);
    let (revocations, checked) = laws::revocations(&trace);
    let found = [
        laws::days(&trace),
        laws::minutes(&trace),
        revocations,
        laws::rest(&trace),
        laws::retries(&trace),
    ]
    .concat();
    note(&figures::described(&trace, checked));
    assert!(found.is_empty(), "seed {seed}: {found:#?}");
    let days: std::collections::BTreeSet<&String> = trace.days.values().collect();
    assert_eq!(days.len(), 2, "seed {seed}: the run must include midnight");
    assert!(
        checked > 0 && trace.days.len() > 1_000 && trace.kills > 0,
        "seed {seed}: too little happened"
    );
    if is_full {
        figures::write(&trace, checked, seed);
    }
}

#[test]
fn ten_schedules_refuse_no_paid_caller_early_without_a_cause() {
    if !is_full_size() {
        return;
    }
    needs!("postgresql", "libfaketime");
    let mut rows = String::new();
    let mut all = EarlyRefusals::default();
    for seed in 1..=10 {
        let found = EarlyRefusals::of(&run(&USED_UP, seed));
        rows += &format!("| {seed} {}\n", found.row());
        note(&rows);
        all.append(found);
    }
    assert!(all.unexplained.is_empty(), "{:#?}", all.unexplained);
    assert!(!all.explained.is_empty(), "no refusal was early");
    figures::write_early_refusals(&rows, &all);
}

/// Seconds from the machine's time until `before` seconds before the midnight after next: clocks are only set ahead.
pub fn offset_to_midnight(before: i64) -> i64 {
    let now = i64::try_from(Clock::system().now().wall.seconds()).unwrap();
    (now / DAY + 2) * DAY - before - now
}

fn run(size: &FaultSize, seed: u64) -> Trace {
    let mut choice = SeededChoice::new(seed);
    let database_clock = FakeClock::new(offset_to_midnight(3_600));
    let mut cluster = PostgresCluster::start(database_clock.environment());
    let offset = offset_to_midnight(3_600);
    let mut fleet = FaultyFleet::new(cluster.url(), &cluster.sockets(), database_clock, offset);
    run_with(&["store", "init"], &fleet.site.environment()).with(0);
    fleet.applications = population::create(&fleet, size.applications, size.revoked);
    let created = fleet.now();
    fleet.record.lock().unwrap().quota_changes = applications_of(&fleet, ApplicationRole::Quota)
        .map(|application| QuotaChange {
            application,
            quota: QUOTAS[0],
            from: created,
            until: created,
        })
        .collect();
    // Starting takes an unknown time, so the clocks are set to shortly before midnight when everything is ready to
    // start.
    let offset = offset_to_midnight(size.midnight + 4);
    fleet.database_clock.set(offset);
    fleet.database_offset.store(offset, Ordering::Relaxed);
    fleet.slots.iter().for_each(|slot| slot.clock.set(offset));
    // Each process notices the change within a second.
    std::thread::sleep(Duration::from_secs(2));
    let fleet = &fleet;
    std::thread::scope(|scope| {
        let _end = EndOfRun(fleet);
        let starts: Vec<_> = (0..GATEWAYS)
            .map(|slot| scope.spawn(move || fleet.start(slot)))
            .collect();
        for start in starts {
            start.join().unwrap();
        }
        for gateway in 0..GATEWAYS {
            scope.spawn(move || callers::call_revoked(fleet, gateway));
            for (number, application) in fleet.applications.iter().enumerate() {
                if application.role != ApplicationRole::Revoked {
                    scope.spawn(move || callers::call(fleet, number, gateway));
                }
            }
        }
        let changes = SeededChoice::new(seed.wrapping_add(1));
        let changes = scope.spawn(move || changes::make(fleet, changes));
        std::thread::scope(|restarts| {
            schedule::execute(
                restarts,
                fleet,
                &mut cluster,
                &schedule::plan(&mut choice, size.faults),
            );
        });
        wait_for_midnight(fleet);
        fleet.is_over.store(true, Ordering::Relaxed);
        changes.join().unwrap();
    });
    finish(fleet)
}

/// Ends the threads of a run, even if it fails.
struct EndOfRun<'f>(&'f FaultyFleet);

impl Drop for EndOfRun<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// The database's time in seconds since 1970.
fn database_time(fleet: &FaultyFleet) -> i64 {
    let now = i64::try_from(Clock::system().now().wall.seconds()).unwrap();
    now + fleet.database_offset.load(Ordering::Relaxed)
}

fn wait_for_midnight(fleet: &FaultyFleet) {
    while database_time(fleet) % DAY > DAY / 2 || database_time(fleet) % DAY < 3 {
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Checks that all gateways are live, uses up the remaining daily quotas, and collects all observations.
fn finish(fleet: &FaultyFleet) -> Trace {
    for application in applications_of(fleet, ApplicationRole::Quota) {
        assert!(
            fleet.set_quota(application, QUOTAS[2]),
            "the database is reachable"
        );
    }
    // Changes are applied in order.
    let marker = fleet
        .command(&["keys", "create", "--name", "Marker", "--tier", "pro"])
        .unwrap();
    let marker = marker["key"].as_str().unwrap();
    for slot in &fleet.slots {
        fleet.reaches(slot, marker);
        for revoked in &fleet.record.lock().unwrap().revocations {
            let status = slot.status(&fleet.applications[revoked.application].key);
            assert_eq!(status, 401, "a revoked key is accepted");
        }
    }
    let ends = fleet
        .applications
        .iter()
        .enumerate()
        .filter_map(|(number, application)| match application.role {
            ApplicationRole::Day => Some((number, application.allowed.day)),
            ApplicationRole::Quota => Some((number, QUOTAS[2])),
            ApplicationRole::Minute | ApplicationRole::Tier | ApplicationRole::Revoked => None,
        });
    std::thread::scope(|scope| {
        for (number, quota) in ends {
            scope.spawn(move || callers::use_up_day(fleet, number, quota));
        }
    });
    for slot in 0..GATEWAYS {
        assert!(fleet.stop(slot));
    }
    collect(fleet)
}

fn applications_of(fleet: &FaultyFleet, role: ApplicationRole) -> impl Iterator<Item = usize> {
    let applications = fleet.applications.iter().enumerate();
    applications
        .filter(move |(_, application)| application.role == role)
        .map(|(number, _)| number)
}

fn collect(fleet: &FaultyFleet) -> Trace {
    let record = std::mem::take(&mut *fleet.record.lock().unwrap());
    let today = Wall::from_seconds(u64::try_from(database_time(fleet)).unwrap()).day();
    let mut trace = Trace {
        applications: fleet
            .applications
            .iter()
            .map(|application| application.allowed)
            .collect(),
        requests: record.requests,
        faults: record.faults,
        kills: record.kills,
        kept_units: record.kept_units,
        set_ahead: record.set_ahead,
        revocations: record.revocations,
        known: record.known,
        used_up: record.used_up,
        quota_changes: record.quota_changes,
        today: today.to_string(),
        ..Trace::default()
    };
    for log in &record.access_logs {
        trace.read_log(log);
    }
    record.event_logs.iter().for_each(|log| note(log));
    note(&format!("{} changes", record.changes));
    trace
}
