//! Runs of the simulated fleet. `SCOREGATE_SEED` repeats a run and prints its events. `SCOREGATE_FULL=1` simulates ten
//! thousand requests a day at each gateway, tries each planted bug with many seeds, and writes a dated page to
//! `tests/results/`.

#![expect(clippy::print_stdout, reason = "the figures of the dated page")]

use std::{fmt::Write as _, ops::Range};

use rustix::time::{ClockId, clock_gettime};

use scoregate_base::clock::Clock;

use super::{
    fleet::{FleetSize, SimulatedFleet},
    network::GATEWAYS,
    observer::FleetFigures,
    planted::PlantedBug,
};

const SMALL: FleetSize = FleetSize {
    days: 2,
    sessions: 2,
    requests: 60,
};
const FULL: FleetSize = FleetSize {
    sessions: 22,
    requests: 1_500,
    ..SMALL
};
/// Number of full runs, and of seeds with which each planted bug is tried.
const RUNS: u64 = 60;
const TRIED: u64 = 50;

/// Runs these seeds. The result is the total of their figures.
fn run(seeds: Range<u64>, size: FleetSize, is_traced: bool) -> FleetFigures {
    let mut figures = FleetFigures::new();
    for seed in seeds {
        let fleet = SimulatedFleet::new(seed, size, None);
        fleet.observer.lock().is_traced = is_traced;
        let of_run = fleet.run();
        let of_run = of_run.unwrap_or_else(|found| panic!("SCOREGATE_SEED={seed}: {found}"));
        for (event, count) in of_run {
            *figures.entry(event).or_default() += count;
        }
    }
    figures
}

/// The seeds with which a planted bug is found.
fn finding(bug: PlantedBug) -> impl Iterator<Item = u64> {
    let is_found = move |seed: &u64| SimulatedFleet::new(*seed, SMALL, Some(bug)).run().is_err();
    (0..TRIED).filter(is_found)
}

#[test]
fn in_a_fleet_with_faults_no_limit_is_exceeded_and_no_unit_is_stranded() {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let size = if is_full { FULL } else { SMALL };
    if let Some(seed) = std::env::var_os("SCOREGATE_SEED") {
        let seed = seed.to_str().unwrap().parse().unwrap();
        run(seed..seed + 1, size, true);
    } else if is_full {
        write_page();
    } else {
        println!("{:?}", run(0..4, size, false));
    }
}

#[test]
fn a_seed_determines_a_run() {
    let size = FleetSize { days: 1, ..SMALL };
    assert_eq!(run(3..4, size, false), run(3..4, size, false));
}

#[test]
fn each_planted_bug_is_found() {
    for bug in PlantedBug::ALL {
        assert!(finding(bug).next().is_some(), "{bug:?}");
    }
}

/// Milliseconds of the processor.
#[expect(clippy::disallowed_methods, reason = "a measure of work")]
fn spent() -> u64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    (spent.tv_sec * 1_000 + spent.tv_nsec / 1_000_000).cast_unsigned()
}

/// Makes the full runs, and writes their figures.
fn write_page() {
    let before = spent();
    let figures = run(0..RUNS, FULL, false);
    let millis = spent() - before;
    let days = RUNS * u64::from(FULL.days) * GATEWAYS as u64;
    let an_hour = days * 3_600_000 / millis;
    let seconds = millis / 1_000;
    let mut text = format!(
        "`src/gateway/simulated_fleet/`, {RUNS} seeds, {days} days of a gateway: {seconds} s of CPU in the debug build, \
         {an_hour} days of a gateway in an hour. No limit was exceeded, and no unit was stranded.\n\n\
         | Event | Number |\n|---|---:|\n"
    );
    for (event, count) in figures {
        writeln!(text, "| {event} | {count} |").unwrap();
    }
    text += "\n| Planted bug, small runs | First seed that finds it | Seeds that find it |\n|---|---:|---:|\n";
    for bug in PlantedBug::ALL {
        let seeds: Vec<u64> = finding(bug).collect();
        let first = seeds.first().unwrap();
        let found = seeds.len();
        writeln!(text, "| {bug:?} | {first} | {found} of {TRIED} |").unwrap();
    }
    let day = Clock::system().now().wall.day();
    let file = format!(
        "{}/tests/results/{day}-simulated-fleet.md",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::write(file, format!("# Simulated fleet, {day}\n\n{text}")).unwrap();
}
