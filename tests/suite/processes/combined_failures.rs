//! Everything fails together: standard output and standard error are not read, the disk is full, another process locks
//! the ledger, and the backend fails. Stored documents are served to callers with leased units or grace, probes are
//! correct, and the shutdown completes.
//!
//! `SCOREGATE_FULL=1` runs it for two minutes and writes a dated page to `tests/results/`.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, Received, json, respond},
    failing_disk::{Disk, Order},
    full_runs::{BUILD, CARGO_TEST, cores, is_full_size, write_page},
    load_clients::{LoadClient, Reply, Wire, prepare},
    processes::unread_logs::UnreadProgram,
    program::within_one_day,
    quotas::ledger_unreachable::Lock,
};

/// Duration of the failures.
const SMALL: Duration = Duration::from_secs(6);
const FULL: Duration = Duration::from_mins(2);
/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(40);
/// The first request that finds the ledger unreachable waits two seconds for it; the remaining time is a reserve for a
/// busy machine.
const SLOWEST: Duration = Duration::from_secs(10);
/// The default of `server.shutdown_timeout`.
const GRACE: Duration = Duration::from_secs(30);
/// Documents that are stored before the failures.
const STORED: [&str; 3] = [
    "/api/v1/index",
    "/api/v1/models/atlas",
    "/api/v1/models?period=7d",
];
/// Pause between two requests of a caller.
const SHORT_PAUSE: Duration = Duration::from_millis(5);
const LONG_PAUSE: Duration = Duration::from_millis(100);

/// Responses of a caller by status and code, and the longest duration.
#[derive(Debug, Default)]
struct Tally {
    responses: BTreeMap<(u16, String), u32>,
    slowest: Duration,
}

impl Tally {
    fn request(&mut self, port: SocketAddr, target: &str, key: &str) -> String {
        let start = Instant::now();
        let reply = Wire::open_with_timeout(port, TIMEOUT)
            .map(|mut connection| connection.get(target, key));
        self.slowest = self.slowest.max(start.elapsed());
        let Some(reply @ Reply::Response { .. }) = &reply else {
            panic!("{target}: {reply:?}")
        };
        *self.responses.entry(reply.status_and_code()).or_default() += 1;
        let Reply::Response { body, .. } = reply else {
            unreachable!()
        };
        body.clone()
    }

    fn of(&self, status: u16, code: &str) -> u32 {
        self.responses
            .get(&(status, code.to_owned()))
            .copied()
            .unwrap_or(0)
    }

    fn all(&self) -> u32 {
        self.responses.values().sum()
    }
}

/// The state of the process by its probes and metrics during the failures.
#[derive(Debug, Default)]
struct Probes {
    tally: Tally,
    oldest_heartbeat: f64,
    metrics: String,
}

impl Probes {
    fn request(&mut self, program: &UnreadProgram) {
        for (port, path) in [
            (program.public, "/healthz"),
            (program.side, "/healthz"),
            (program.side, "/readyz"),
        ] {
            self.tally.request(port, path, "");
        }
        self.metrics = self.tally.request(program.side, "/metrics", "");
        self.oldest_heartbeat = self
            .oldest_heartbeat
            .max(self.value("scoregate_heartbeat_age_seconds"));
    }

    fn value(&self, series: &str) -> f64 {
        let line = self
            .metrics
            .lines()
            .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} in {}", self.metrics))
            .parse()
            .unwrap()
    }
}

/// The callers and their results.
#[derive(Debug, Default)]
struct Scenario {
    /// Callers with leased units request stored documents.
    stored: Vec<Tally>,
    /// A caller with leased units requests documents that need a fetch.
    unstored: Tally,
    /// A paid caller with a small lease uses grace until none is left.
    grace: Tally,
    free: Tally,
    probes: Probes,
    stop: Duration,
}

/// A backend with current data, or one that fails.
fn works(received: &Received) -> Act {
    let now = Clock::system().now().wall.rfc3339();
    let item =
        format!(r#"{{"id":"atlas","name":"Atlas","currentScore":80.25,"lastUpdated":"{now}"}}"#);
    let has_model = received.target().contains("/models");
    assert!(
        has_model || received.target().contains("/index"),
        "{received:?}"
    );
    json(&format!(
        r#"{{"success":true,"generated_at":"{now}","data":[{item}]}}"#
    ))
}

fn fails(_: &Received) -> Act {
    respond("500 Internal Server Error", &[], "")
}

impl Scenario {
    fn run(duration: Duration) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let backend = runtime.block_on(Backend::start(works));
        let directory = TempDir::new().unwrap();
        let disk = Disk::new();
        let url = backend.url();
        let load_clients = prepare(
            directory.path(),
            &[("enterprise", 50_000_000), ("pro", 200), ("free", 1_000)],
        );
        let [preload, orders] = disk.environment();
        let settings = [
            ("SCOREGATE_UPSTREAM_URL", url.as_str()),
            ("SCOREGATE_LOG_SAMPLE_ONE_IN", "1"),
            // Stored documents become stale meanwhile.
            ("SCOREGATE_FRESHNESS_REFRESH_INTERVAL", "2s"),
        ];
        let mut program = UnreadProgram::serve(
            directory.path(),
            &[&settings[..], &[preload, orders]].concat(),
        );
        let mut before = Tally::default();
        for target in STORED {
            before.request(program.public, target, &load_clients[0].key);
        }
        for load_client in &load_clients {
            before.request(program.public, STORED[0], &load_client.key);
        }
        assert_eq!(before.of(200, ""), 6, "{before:?}");

        program.fill();
        disk.order(Order::NoRoom);
        let held = Lock::on(directory.path());
        backend.set_script(fails);
        let mut scenario = Self::run_callers(&program, &load_clients, duration);
        scenario.stop = program.stop_within(GRACE);
        drop(held);
        scenario
    }

    fn run_callers(
        program: &UnreadProgram,
        load_clients: &[LoadClient],
        duration: Duration,
    ) -> Self {
        let [large, small, free] = load_clients else {
            unreachable!()
        };
        let public = program.public;
        let over = AtomicBool::new(false);
        let start = Instant::now();
        let run_caller =
            |load_client: &LoadClient, pause: Duration, target: &dyn Fn(u32) -> String| {
                let mut tally = Tally::default();
                while !over.load(Ordering::SeqCst) {
                    tally.request(public, &target(tally.all()), &load_client.key);
                    std::thread::park_timeout(pause);
                }
                tally
            };
        let stored = |number: u32| STORED[number as usize % STORED.len()].to_owned();
        let unstored = |number: u32| format!("/api/v1/incidents?limit={}", 1 + number % 100);
        std::thread::scope(|scope| {
            let of_large =
                [(); 4].map(|()| scope.spawn(|| run_caller(large, SHORT_PAUSE, &stored)));
            let others = scope.spawn(|| run_caller(large, LONG_PAUSE, &unstored));
            let on_grace = scope.spawn(|| run_caller(small, LONG_PAUSE, &stored));
            let of_free = scope.spawn(|| run_caller(free, LONG_PAUSE, &stored));
            let mut scenario = Self::default();
            while start.elapsed() < duration {
                scenario.probes.request(program);
                std::thread::park_timeout(LONG_PAUSE);
            }
            over.store(true, Ordering::SeqCst);
            scenario.stored = of_large.map(|one| one.join().unwrap()).into();
            scenario.unstored = others.join().unwrap();
            scenario.grace = on_grace.join().unwrap();
            scenario.free = of_free.join().unwrap();
            scenario
        })
    }

    fn check(&self) {
        for tally in &self.stored {
            assert!(
                tally.all() > 0 && tally.of(200, "") == tally.all(),
                "{tally:?}"
            );
            assert!(tally.slowest < SLOWEST, "{tally:?}");
        }
        let served_on_grace = self.grace.of(200, "");
        // A lease of two units, one of which was already spent, and a grace of two.
        assert_eq!(served_on_grace, 3, "{:?}", self.grace);
        assert_eq!(
            self.grace.of(503, "overloaded") + served_on_grace,
            self.grace.all(),
            "{:?}",
            self.grace
        );
        assert!(self.free.of(503, "overloaded") > 0, "{:?}", self.free);
        assert!(
            self.unstored
                .responses
                .keys()
                .all(|(status, _)| *status >= 500),
            "{:?}",
            self.unstored
        );
        assert!(self.unstored.slowest < TIMEOUT, "{:?}", self.unstored);
        assert_eq!(
            self.probes.tally.of(200, ""),
            self.probes.tally.all(),
            "{:?}",
            self.probes.tally
        );
        assert!(
            self.probes.oldest_heartbeat < 5.0,
            "{}",
            self.probes.oldest_heartbeat
        );
        assert!((self.probes.value("scoregate_ledger_unreachable") - 1.0).abs() < f64::EPSILON);
    }

    /// Checks that the log writers were blocked. A short run fits into the access log's queue. Two minutes of events,
    /// which are rate-limited by kind, fit into the event log's queue.
    fn check_lost_lines(&self) {
        assert!(self.lost_lines("access") > 0.0);
    }

    fn lost_lines(&self, log: &str) -> f64 {
        self.probes
            .value(&format!("scoregate_log_lines_lost_total{{log=\"{log}\"}}"))
    }
}

#[test]
fn stored_documents_are_served_with_logs_unread_disk_full_ledger_locked_and_upstream_failing() {
    let is_full = is_full_size();
    within_one_day(|| {
        let duration = if is_full { FULL } else { SMALL };
        let scenario = Scenario::run(duration);
        scenario.check();
        if is_full {
            scenario.check_lost_lines();
            record(&scenario, duration);
        }
    });
}

/// Writes the figures to `tests/results/`.
fn record(scenario: &Scenario, duration: Duration) {
    let cores = cores();
    let mut page = format!(
        "`{CARGO_TEST} --test suite combined_failures::`: the {BUILD} build of the program for {} s, on {cores} cores \
         shared with its callers. Standard output and standard error are full pipes without a reader, the disk is full, another \
         process holds the ledger's lock, and the backend answers 500. Documents become stale after 2 s.\n\n\
         | Caller | Responses | Slowest |\n|---|---|---:|\n",
        duration.as_secs(),
    );
    let mut row = |callers: &str, tally: &Tally| {
        let responses = tally
            .responses
            .iter()
            .map(|((status, code), count)| format!("{count} × {status} {code}"));
        let responses: Vec<String> = responses.map(|words| words.trim_end().to_owned()).collect();
        writeln!(
            page,
            "| {callers} | {} | {} ms |",
            responses.join(", "),
            tally.slowest.as_millis()
        )
        .unwrap();
    };
    for tally in &scenario.stored {
        row("leased units, stored documents", tally);
    }
    row(
        "leased units, documents that are not stored",
        &scenario.unstored,
    );
    row(
        "Pro with a lease of 2 and a grace of 2, stored documents",
        &scenario.grace,
    );
    row("Free with a lease of 10, stored documents", &scenario.free);
    row("probes and metrics", &scenario.probes.tally);
    writeln!(
        page,
        "\nLines lost: {} of the access log, {} of the event log. Maximum observed age of the heartbeat: {:.0} ms. Time from \
         SIGTERM until the process ended: {} ms.",
        scenario.lost_lines("access"),
        scenario.lost_lines("events"),
        scenario.probes.oldest_heartbeat * 1_000.0,
        scenario.stop.as_millis()
    )
    .unwrap();
    write_page("all-at-once", "Everything fails together", &page);
}
