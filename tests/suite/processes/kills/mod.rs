//! The program is killed repeatedly on one data directory under load: at random moments and at chosen points of its
//! disk writes. No more than the daily quota is ever delivered, and each run loses one lease at most.
//!
//! By default the test runs at a small size; `SCOREGATE_FULL=1` runs it at full size and writes the figures to
//! `tests/results/`. A power cut, which loses unsynced writes, is not simulated: a killed process does not lose them.

mod figures;

use std::{net::SocketAddr, time::Duration};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    failing_disk::{Disk, Order},
    full_runs::is_full_size,
    load_clients::{
        CallerGroup, LoadClient, Tally, prepare, prepare_idle_applications, remaining, run_load,
    },
    program::{Program, within_one_day},
};

const BUILT_IN: (&str, &str) = ("SCOREGATE_UPSTREAM", "built-in");
/// The test fails if a crash point is not reached after this many responses.
const MAX_RESPONSES: u32 = 50_000;

/// Each run requests two of the key's ten units, and may lose one.
const RUNS_PER_FREE_KEY: usize = 4;

/// The size of the test.
struct Size {
    /// Runs that end at a random moment.
    kills: u32,
    /// The maximum number of responses before a random kill.
    latest: u32,
    /// Unused keys in the store.
    idle_keys: u32,
    /// The daily quotas of the load clients that send requests as fast as they can: one quota is used up, the other
    /// never is.
    days: [u32; 2],
    /// Maximum duration of a start.
    start: Duration,
}

const SMALL: Size = Size {
    kills: 6,
    latest: 300,
    idle_keys: 1_000,
    days: [400, 6_000],
    start: Duration::from_secs(20), // on a machine that is busy with other tests
};

const FULL: Size = Size {
    kills: 50,
    latest: 4_000,
    idle_keys: 100_000,
    days: [20_000, 250_000],
    start: Duration::from_secs(1),
};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Killed after this many responses.
    After(u32),
    /// Killed at this point of its start, or later if the start does not reach the point.
    Starting(Order),
    /// Killed at this point, counted from the time when it serves.
    Serving(Order),
}

/// Each kill at a start follows a run that left its write-ahead log behind.
const CRASH_POINTS: [End; 10] = [
    End::Serving(Order::KillBeforeSync(1)),
    End::Starting(Order::KillBeforeSync(1)),
    End::Serving(Order::KillAfterSync(2)),
    End::Starting(Order::KillAfterSync(1)),
    End::Serving(Order::KillBeforeWrite(2)),
    End::Starting(Order::KillBeforeWrite(1)),
    End::Serving(Order::TearWrite(1)),
    End::Starting(Order::TearWrite(1)),
    End::Serving(Order::TearWrite(2)),
    End::Serving(Order::TearWrite(7)),
];

/// Observations of one run.
struct ProcessRun {
    end: End,
    /// Time until the program served; `None` if it died before.
    start: Option<Duration>,
    /// The remaining daily quota of each load client when the program began to serve.
    left: Vec<u32>,
    /// The tally of each load client.
    tallies: Vec<Tally>,
}

/// The load clients and all observations.
struct KillRecord {
    directory: TempDir,
    disk: Disk,
    load_clients: Vec<LoadClient>,
    runs: Vec<ProcessRun>,
    seed: u64,
}

#[test]
fn no_kill_grants_a_unit_twice_and_none_loses_more_than_a_lease() {
    let is_full = is_full_size();
    let size = if is_full { FULL } else { SMALL };
    within_one_day(|| {
        let mut record = KillRecord::begin(&size);
        for (number, end) in ends(&size, record.seed).into_iter().enumerate() {
            record.run_once(end, number);
        }
        record.use_remaining_quota();
        let lost = record.check(&size);
        if is_full {
            figures::record(&record, &lost, &size);
        }
    });
}

/// The ends of all runs: the crash points, with random moments in between.
fn ends(size: &Size, seed: u64) -> Vec<End> {
    let points = u32::try_from(CRASH_POINTS.len()).unwrap();
    let mut ends = Vec::new();
    let mut state = seed;
    for (number, point) in (0..points).zip(CRASH_POINTS) {
        for _ in size.kills * number / points..size.kills * (number + 1) / points {
            // Knuth's generator; its upper half is random enough for moments.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = u32::try_from(state >> 32).unwrap();
            ends.push(End::After(1 + random % size.latest));
        }
        ends.push(point);
    }
    ends
}

impl KillRecord {
    fn begin(size: &Size) -> Self {
        let directory = TempDir::new().unwrap();
        prepare_idle_applications(directory.path(), size.idle_keys);
        // The ten units of a Free key do not last for all runs: it is replaced every few runs.
        let runs = size.kills as usize + CRASH_POINTS.len();
        let mut wanted = vec![("free", 10); runs.div_ceil(RUNS_PER_FREE_KEY)];
        wanted.extend(size.days.map(|day| ("pro", day)));
        let load_clients = prepare(directory.path(), &wanted);
        let seed = getrandom::u64().unwrap();
        Self {
            directory,
            disk: Disk::new(),
            load_clients,
            runs: Vec::new(),
            seed,
        }
    }

    fn start(&self, order: Order) -> Program {
        self.disk.order(order);
        let [preload, orders] = self.disk.environment();
        Program::serve(self.directory.path(), &[BUILT_IN, preload, orders])
    }

    /// Runs the process to its end.
    fn run_once(&mut self, end: End, number: usize) {
        let clock = Clock::system();
        let begun = clock.now().mono;
        let program = self.start(match end {
            End::Starting(order) => order,
            End::After(_) | End::Serving(_) => Order::Work,
        });
        let mut run = ProcessRun {
            end,
            start: None,
            left: Vec::new(),
            tallies: Vec::new(),
        };
        if let Some((public, _)) = program.ports_if_any() {
            run.start = Some(clock.now().mono.since(begun));
            run.left = self.left(public);
            let moment = match end {
                End::After(moment) => moment,
                End::Serving(order) => {
                    self.disk.order(order);
                    MAX_RESPONSES
                }
                End::Starting(_) => MAX_RESPONSES,
            };
            let (tallies, came) = run_load(public, &self.groups(number), moment, || {
                program.signal("KILL");
            });
            let is_met = came == matches!(end, End::After(_));
            assert!(
                is_met,
                "{end:?} was not reached; seed {}: {tallies:?}",
                self.seed
            );
            run.tallies = tallies;
        }
        let (ended, _) = program.end();
        assert_eq!(
            ended.code, None,
            "the program ended by itself: {}",
            ended.err
        );
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        self.runs.push(run);
    }

    /// The last run: all remaining quota is used, and the shutdown is graceful.
    fn use_remaining_quota(&mut self) {
        let program = self.start(Order::Work);
        let public = program.public();
        let left = self.left(public);
        let to_the_end = |load_client| CallerGroup {
            load_client,
            callers: 2,
            most: u32::MAX,
            reconnects: false,
        };
        let groups: Vec<CallerGroup<'_>> = self.load_clients.iter().map(to_the_end).collect();
        let (tallies, _) = run_load(public, &groups, u32::MAX, || ());
        assert!(
            tallies.iter().all(|tally| tally.unconfirmed() == 0),
            "{tallies:?}"
        );
        assert!(self.left(public).iter().all(|left| *left == 0));
        program.stop().with(0);
        self.runs.push(ProcessRun {
            end: End::After(u32::MAX),
            start: None,
            left,
            tallies,
        });
    }

    fn left(&self, public: SocketAddr) -> Vec<u32> {
        self.load_clients
            .iter()
            .map(|load_client| remaining(public, load_client))
            .collect()
    }

    /// The caller groups of this run, in the order of the load clients.
    fn groups(&self, number: usize) -> Vec<CallerGroup<'_>> {
        let free = self.load_clients.len() - 2;
        let group = |(at, load_client)| {
            let (callers, most) = match at {
                _ if at >= free => (2, u32::MAX),
                _ if at == number / RUNS_PER_FREE_KEY => (2, 1),
                _ => (0, 0),
            };
            CallerGroup {
                load_client,
                callers,
                most,
                reconnects: false,
            }
        };
        self.load_clients.iter().enumerate().map(group).collect()
    }

    /// Checks all totals, and returns the units that each serving run lost, for each daily quota.
    fn check(&self, size: &Size) -> Vec<Vec<u32>> {
        let seed = self.seed;
        let starts: Vec<Duration> = self.runs.iter().filter_map(|run| run.start).collect();
        let served: Vec<&ProcessRun> = self
            .runs
            .iter()
            .filter(|run| !run.left.is_empty())
            .collect();
        assert!(
            served.len() < self.runs.len(),
            "no run ended before the program served"
        );
        let mut lost = Vec::new();
        for (run, next) in served.iter().zip(served.iter().skip(1)) {
            let of_each = self
                .load_clients
                .iter()
                .enumerate()
                .map(|(at, load_client)| {
                    let tally = run.tallies[at];
                    let end = run.end;
                    let owed = run.left[at].checked_sub(tally.delivered);
                    let owed = owed.unwrap_or_else(|| {
                        panic!("{end:?} of {seed} delivered too much: {tally:?}")
                    });
                    let lost = owed.checked_sub(next.left[at]);
                    let lost = lost.unwrap_or_else(|| {
                        panic!("{end:?} of {seed} granted units twice: {tally:?}")
                    });
                    let most = load_client.lease(run.left[at]) + tally.unconfirmed();
                    assert!(
                        lost <= most,
                        "{end:?} of {seed} lost {lost} of {}, with {tally:?}",
                        load_client.quota
                    );
                    lost
                });
            lost.push(of_each.collect());
        }
        for (at, load_client) in self.load_clients.iter().enumerate() {
            let (delivered, unconfirmed) = self.totals_of_all_runs(at);
            assert!(
                delivered <= load_client.quota,
                "{delivered} of {}, seed {seed}",
                load_client.quota
            );
            let most = u32::try_from(lost.len()).unwrap() * load_client.lease(load_client.quota)
                + unconfirmed;
            assert!(
                load_client.quota - delivered <= most,
                "{delivered} of {}, seed {seed}",
                load_client.quota
            );
        }
        assert!(
            starts.iter().all(|start| *start < size.start),
            "a start took too long: {starts:?}"
        );
        lost
    }

    /// Delivered and unconfirmed requests of a load client over all runs.
    fn totals_of_all_runs(&self, at: usize) -> (u32, u32) {
        let tallies = self.runs.iter().filter_map(|run| run.tallies.get(at));
        tallies.fold((0, 0), |(given, unconfirmed), one| {
            (given + one.delivered, unconfirmed + one.unconfirmed())
        })
    }
}
