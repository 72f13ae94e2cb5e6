//! Several gateways on one database: real programs, a real PostgreSQL server.

mod accounts;
mod connections;
mod database_state;
mod faults;
mod grace;
mod load_balancer;
mod mail;
mod midnight;
mod minutes;
mod nodes;
mod passwords;
mod pooler;
mod readiness;
mod restore;
mod rolling;
mod shared_fetches;
mod status_pages;
mod terms;
mod transfer;
mod upgrade;
mod usage_export;
mod without_database;

use std::{net::SocketAddr, path::Path};

use scoregate_base::{clock::Clock, keys::Digest};
use scoregate_store::LocalFile;
use tempfile::TempDir;

use crate::{
    fake_clock::library,
    full_runs::is_full_size,
    load_clients::{Reply, TARGET, Wire},
    postgres::{PostgresServer, new_schema, shared_server},
    program::{Keys, Program, run_with, sql_on, within_one_day},
};

/// The longest time that a change takes to reach every gateway, in seconds.
const PROPAGATION: u64 = 5;

/// Prints a line that is shown if the test fails.
#[expect(clippy::print_stdout, reason = "the output of a test that fails")]
fn note(text: &str) {
    println!("{text}");
}

/// The settings of gateways on one database.
struct Site {
    url: String,
    schema: String,
}

/// One gateway with its own data directory.
struct SiteGateway {
    data_dir: TempDir,
    program: Program,
    public: SocketAddr,
    side: SocketAddr,
}

impl Site {
    /// A database with new tables.
    fn new() -> Self {
        let site = Self {
            url: shared_server().url(),
            schema: new_schema(),
        };
        let created = run_with(&["store", "init"], &site.environment()).with(0);
        assert!(
            created.err.contains("created the tables"),
            "{}",
            created.err
        );
        site
    }

    fn environment(&self) -> [(&str, &str); 6] {
        [
            ("SCOREGATE_UPSTREAM", "built-in"),
            ("SCOREGATE_STORE_URL", &self.url),
            ("SCOREGATE_STORE_SCHEMA", &self.schema),
            ("SCOREGATE_GUARD_PER_MINUTE", "1000000"),
            // A busy machine delays transactions. No test depends on this timeout.
            ("SCOREGATE_STORE_TIMEOUT", "30s"),
            // Tests that start without a database do not wait for it.
            ("SCOREGATE_STORE_START_TIMEOUT", "1s"),
        ]
    }

    fn gateway(&self) -> SiteGateway {
        self.gateway_with(&[])
    }

    /// A gateway whose machine's wall clock is off by this many seconds.
    fn gateway_off_by(&self, seconds: &str) -> SiteGateway {
        let library = library();
        let variables = [
            ("LD_PRELOAD", &*library),
            ("FAKETIME", seconds),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        self.gateway_with(&variables)
    }

    fn gateway_with(&self, more: &[(&str, &str)]) -> SiteGateway {
        Self::start(&[&self.environment()[..], more].concat())
    }

    /// A gateway in front of the backend that these settings name instead of the built-in one.
    fn gateway_before(&self, backend: &[(&str, &str)]) -> SiteGateway {
        let [_built_in, shared @ ..] = self.environment();
        Self::start(&[&shared[..], backend].concat())
    }

    fn start(environment: &[(&str, &str)]) -> SiteGateway {
        let data_dir = TempDir::new().unwrap();
        let program = Program::serve(data_dir.path(), environment);
        let (public, side) = program.ports();
        SiteGateway {
            data_dir,
            program,
            public,
            side,
        }
    }

    /// Creates an application by a command that works on the database.
    fn create(&self, day: &str) -> (String, String) {
        self.create_with(&["--tier", "pro", "--minute", "1000000", "--day", day])
    }

    fn create_with(&self, terms: &[&str]) -> (String, String) {
        let arguments = [&["keys", "create", "--name", "Station"], terms].concat();
        let issued = run_with(&[&arguments[..], &["--json"]].concat(), &self.environment())
            .with(0)
            .json();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (word(&issued["application"]["id"]), word(&issued["key"]))
    }
}

impl SiteGateway {
    fn status(&self, key: &str) -> u16 {
        Wire::open(self.public)
            .unwrap()
            .get(TARGET, key)
            .status_and_code()
            .0
    }

    /// Sends requests until this status, for as long as a change may take to reach every gateway.
    fn reaches(&self, key: &str, status: u16) {
        self.reaches_within(key, status, PROPAGATION);
    }

    fn reaches_within(&self, key: &str, status: u16, seconds: u64) {
        let clock = Clock::system();
        let start = clock.mono();
        while self.status(key) != status {
            assert!(
                clock.mono().since(start).as_secs() < seconds,
                "no {status} on {}",
                self.public
            );
        }
    }

    /// Sends requests with this status for as long as a change may take to reach every gateway.
    fn answers_for_long(&self, key: &str, status: u16) {
        let clock = Clock::system();
        let start = clock.mono();
        while clock.mono().since(start).as_secs() < PROPAGATION {
            assert_eq!(self.status(key), status);
        }
    }

    fn keys(&self) -> Keys<'_> {
        Keys(self.data_dir.path())
    }
}

/// Waits until this is true.
fn until(mut is_reached: impl FnMut() -> bool) {
    let clock = Clock::system();
    let start = clock.mono();
    while !is_reached() {
        assert!(
            clock.mono().since(start) < std::time::Duration::from_mins(1),
            "not reached within a minute"
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Waits until the local copy in this directory has the key.
fn until_copied(data_dir: &TempDir, key: &str) {
    let digest = Digest::of(key).to_string();
    until(|| is_copied(data_dir.path(), &digest));
}

/// Whether the local copy in this directory contains a text.
fn is_copied(directory: &Path, text: &str) -> bool {
    let found = format!("SELECT count(*) FROM applications WHERE instr(value, '{text}')");
    sql_on(&directory.join(LocalFile::NAME), &found).is_ok_and(|count| count != "0\n")
}

/// Removes the records of grace of a stopped gateway.
fn forget_grace(directory: &Path) {
    let forget = "DELETE FROM promises WHERE kind IN ('share', 'owed')";
    sql_on(&directory.join(LocalFile::NAME), forget).unwrap();
}

/// The status and the text of a probe.
fn probe(side: SocketAddr, path: &str) -> (u16, String) {
    match Wire::open(side).unwrap().get(path, "") {
        Reply::Response { status, body, .. } => (status, body),
        other @ (Reply::NoResponse | Reply::Partial) => panic!("{path}: {other:?}"),
    }
}

/// Sends requests until a response is not 200, and returns the number of 200s.
fn use_up(public: SocketAddr, key: &str) -> u32 {
    let mut connection = Wire::open(public).unwrap();
    let mut served = 0;
    while connection.get(TARGET, key).status_and_code().0 == 200 {
        served += 1;
    }
    served
}

#[test]
fn gateways_on_one_database_apply_each_other_s_changes_within_seconds() {
    needs!("postgresql");
    let site = Site::new();
    let one = site.gateway();
    let other = site.gateway();
    let (id, key) = one.keys().create("pro");
    assert_eq!(
        one.status(&key),
        200,
        "the change applies immediately at its gateway"
    );
    other.reaches(&key, 200);
    let newer = other.keys().json(&["rotate", &id, "--overlap-hours", "0"]);
    let newer = newer["key"].as_str().unwrap();
    assert_eq!((other.status(&key), other.status(newer)), (401, 200));
    one.reaches(&key, 401);
    one.reaches(newer, 200);
    // The command works directly on the database, without a running server.
    let revoked = run_with(&["keys", "revoke", &id], &site.environment());
    revoked.with(0);
    for gateway in [&one, &other] {
        gateway.reaches(newer, 401);
    }
    let trail = run_with(&["keys", "audit", "--json"], &site.environment())
        .with(0)
        .json();
    assert_eq!(trail["records"].as_array().unwrap().len(), 3);
    for gateway in [one, other] {
        gateway.program.stop().with(0);
    }
}

#[test]
fn gateways_on_one_database_deliver_one_daily_quota_in_total() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let (id, key) = site.create("5000");
        let gateways = [site.gateway(), site.gateway(), site.gateway()];
        let start = std::sync::Barrier::new(gateways.len());
        let served: u32 = std::thread::scope(|scope| {
            let clients = gateways.each_ref().map(|gateway| {
                let public = gateway.public;
                let start = &start;
                let key = &key;
                scope.spawn(move || {
                    start.wait();
                    use_up(public, key)
                })
            });
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        });
        // Use the units that one gateway held while another gateway refused requests.
        let remaining: u32 = gateways
            .iter()
            .map(|gateway| use_up(gateway.public, &key))
            .sum();
        assert_eq!(served + remaining, 5_000);
        let shown = run_with(&["keys", "show", &id, "--json"], &site.environment())
            .with(0)
            .json();
        assert_eq!(shown["granted_today"], 5_000, "{shown}");
    });
}

#[test]
fn a_killed_gateway_loses_one_lease_and_a_stopped_one_returns_its_units() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let (_, key) = site.create("5000");
        let killed = site.gateway();
        let stopped = site.gateway();
        let last = site.gateway();
        let requests = |gateway: &SiteGateway, count: u32| {
            let mut connection = Wire::open(gateway.public).unwrap();
            (0..count)
                .filter(|_| connection.get(TARGET, &key).status_and_code().0 == 200)
                .count()
        };
        assert_eq!(
            (requests(&killed, 300), requests(&stopped, 300)),
            (300, 300)
        );
        killed.program.signal("KILL");
        stopped.program.stop().with(0);
        let remaining = use_up(last.public, &key);
        assert!(
            (4_350..=4_400).contains(&remaining),
            "{remaining}: more than a lease of 50 units was lost"
        );
    });
}

#[test]
fn a_database_without_tables_and_one_that_is_away_are_reported_with_the_remedy() {
    needs!("postgresql");
    let url = shared_server().url();
    let schema = new_schema();
    let data_dir = TempDir::new().unwrap();
    let directory = data_dir.path().to_str().unwrap();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
        directory,
    ];
    let environment = |url| {
        [
            ("SCOREGATE_UPSTREAM", "built-in"),
            ("SCOREGATE_STORE_URL", url),
            ("SCOREGATE_STORE_SCHEMA", &schema),
            ("SCOREGATE_STORE_START_TIMEOUT", "1s"),
        ]
    };
    let missing = run_with(&serve, &environment(&url)).with(2).err;
    assert!(missing.contains("scoregate store init"), "{missing}");
    let nowhere = run_with(
        &serve,
        &environment("postgresql://gateway@127.0.0.1:1/site"),
    )
    .with(2)
    .err;
    assert!(
        nowhere.contains("gateway@127.0.0.1:1/site") && nowhere.contains("refused"),
        "{nowhere}"
    );
    let checked = run_with(&["store", "check"], &environment(&url))
        .with(2)
        .err;
    assert!(checked.contains("scoregate store init"), "{checked}");
    let upgraded = run_with(&["store", "upgrade"], &environment(&url))
        .with(1)
        .err;
    assert!(upgraded.contains("scoregate store init"), "{upgraded}");
    run_with(&["store", "init"], &environment(&url)).with(0);
    let checked = run_with(&["store", "check", "--json"], &environment(&url)).with(0);
    assert_eq!(
        (&checked.json()["sound"], &checked.json()["synchronous"]),
        (&true.into(), &false.into())
    );
    assert!(
        checked.err.contains("no synchronous standby"),
        "{}",
        checked.err
    );
    let file_only = run_with(&["store", "backup", "backup.db"], &environment(&url))
        .with(1)
        .err;
    assert!(file_only.contains("pg_dump"), "{file_only}");
}

#[test]
fn gateways_with_wrong_clocks_use_the_day_of_the_database() {
    needs!("postgresql", "libfaketime");
    within_one_day(|| {
        let site = Site::new();
        let (_, key) = site.create("60");
        let gateways = [
            site.gateway_off_by("+86400"),
            site.gateway_off_by("-86400"),
            site.gateway(),
        ];
        let served = gateways
            .each_ref()
            .map(|gateway| use_up(gateway.public, &key));
        assert_eq!(served.iter().sum::<u32>(), 60, "{served:?}");
        let checked = run_with(&["store", "check", "--json"], &site.environment())
            .with(0)
            .json();
        let today = Clock::system().now().wall.day().to_string();
        assert_eq!(
            (&checked["day"], &checked["granted"]),
            (&today.into(), &60.into())
        );
        let logs = gateways.map(|gateway| gateway.program.stop().with(0).err);
        let steps = logs
            .each_ref()
            .map(|log| ["set back", "set ahead"].map(|step| log.contains(step)));
        assert_eq!(
            steps,
            [[true, false], [false, true], [false, false]],
            "{logs:#?}"
        );
    });
}

#[test]
fn a_gateway_that_was_paused_applies_missed_changes_before_it_answers() {
    needs!("postgresql");
    let site = Site::new();
    let paused = site.gateway();
    let other = site.gateway();
    let (id, key) = paused.keys().create("pro");
    other.reaches(&key, 200);
    paused.program.signal("STOP");
    other.keys().run(&["revoke", &id]).with(0);
    other.answers_for_long(&key, 401);
    paused.program.signal("CONT");
    assert_eq!(paused.status(&key), 401);
}

#[test]
fn a_gateway_without_its_database_serves_up_to_the_maximum_age_of_its_keys() {
    needs!("postgresql");
    let server = PostgresServer::start(&["fsync=off"]);
    let site = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(&["store", "init"], &site.environment()).with(0);
    let (_, key) = site.create("100000");
    let gateways = [
        site.gateway_with(&[("SCOREGATE_KEYS_MAX_AGE", "6s")]),
        site.gateway(),
    ];
    for gateway in &gateways {
        // Lease units for the time without a ledger.
        assert!((0..200).all(|_| gateway.status(&key) == 200));
    }
    drop(server);
    let [limited, other] = &gateways;
    assert_eq!((limited.status(&key), other.status(&key)), (200, 200));
    limited.reaches_within(&key, 503, 12);
    assert_eq!(other.status(&key), 200);
}
