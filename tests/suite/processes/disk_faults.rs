//! A disk that fails while the program serves: leased units are still spent, then Free callers get a 503; changes
//! that cannot be made durable fail. When the disk works again, everything recovers without a restart and with exact
//! sums.
//!
//! Grace of paid callers is in `ledger_unreachable`, crashes are in `kills`.

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    failing_disk::{Disk, Order},
    load_clients::{LoadClient, Reply, TARGET, Wire, prepare, remaining},
    program::{CommandOutput, Program, run, within_one_day},
};

/// Time limit until a recovered disk is detected.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);
const BUILT_IN: (&str, &str) = ("SCOREGATE_UPSTREAM", "built-in");

#[test]
fn the_server_survives_failed_syncs_and_uncommitted_changes_do_not_count() {
    within_one_day(|| survives(Order::FailSyncs));
}

#[test]
fn the_server_survives_failed_writes_and_uncommitted_changes_do_not_count() {
    within_one_day(|| survives(Order::FailWrites));
}

#[test]
fn the_server_survives_a_full_disk_and_uncommitted_changes_do_not_count() {
    within_one_day(|| survives(Order::NoRoom));
}

/// A program on a data directory, with a caller and an operator.
struct Service<'d> {
    program: Program,
    public: SocketAddr,
    side: SocketAddr,
    directory: &'d Path,
}

impl<'d> Service<'d> {
    fn start(directory: &'d Path, disk: &Disk) -> Self {
        let [preload, orders] = disk.environment();
        let program = Program::serve(directory, &[BUILT_IN, preload, orders]);
        let (public, side) = program.ports();
        Self {
            program,
            public,
            side,
            directory,
        }
    }

    /// Sends one request and returns its status and its code.
    fn request(&self, load_client: &LoadClient) -> (u16, String) {
        Wire::open(self.public)
            .unwrap()
            .get(TARGET, &load_client.key)
            .status_and_code()
    }

    /// Sends requests until a response is not 200. Returns the number of 200s, and the last response.
    fn request_while_served(&self, load_client: &LoadClient) -> (u32, (u16, String)) {
        let mut connection = Wire::open(self.public).unwrap();
        for served in 0..=load_client.quota {
            let response = connection.get(TARGET, &load_client.key).status_and_code();
            if response.0 != 200 {
                return (served, response);
            }
        }
        panic!("more than the quota of {}", load_client.quota);
    }

    fn keys(&self, arguments: &[&str]) -> CommandOutput {
        let directory = ["--data-dir", self.directory.to_str().unwrap()];
        run(&[&["keys"], arguments, &directory].concat())
    }

    fn create(&self, name: &str) -> CommandOutput {
        self.keys(&[
            "create",
            "--name",
            name,
            "--tier",
            "free",
            "--note",
            &"long ".repeat(39),
        ])
    }

    /// The names of all applications.
    fn names(&self) -> Vec<String> {
        let listed = self
            .keys(&["list", "--limit", "1000", "--json"])
            .with(0)
            .json();
        let word = |one: &serde_json::Value| one["name"].as_str().unwrap().to_owned();
        listed["applications"]
            .as_array()
            .unwrap()
            .iter()
            .map(word)
            .collect()
    }

    /// Sends requests until one is served. The ledger is retried once a second in the background.
    fn request_until_served(&self, load_client: &LoadClient) {
        let clock = Clock::system();
        let started_at = clock.now().mono;
        let mut connection = Wire::open(self.public).unwrap();
        while connection.get(TARGET, &load_client.key).status_and_code() != (200, String::new()) {
            assert!(
                clock.now().mono.since(started_at) < RECOVERY_LIMIT,
                "no request is served any longer"
            );
        }
    }

    fn metrics(&self) -> String {
        let reply = Wire::open(self.side).unwrap().get("/metrics", "");
        let Reply::Response {
            status: 200, body, ..
        } = reply
        else {
            panic!("{reply:?}")
        };
        body
    }

    /// Waits for the lease that the first request starts in advance.
    fn await_lease_ahead(&self) {
        let leased = |line: &str| {
            line.strip_prefix("scoregate_quota_units_total{use=\"leased\"} ")?
                .parse::<u32>()
                .ok()
        };
        while self
            .metrics()
            .lines()
            .find_map(leased)
            .is_none_or(|units| units < 2)
        {}
    }

    /// Metrics for the operator: whether the ledger is unreachable, and whether leases have failed.
    fn seen(&self) -> (bool, bool) {
        let body = self.metrics();
        let counts = |words: [&str; 2]| {
            let mut series = body
                .lines()
                .filter(|line| words.iter().all(|word| line.contains(word)));
            series.any(|line| {
                line.rsplit(' ')
                    .next()
                    .unwrap()
                    .parse::<f64>()
                    .is_ok_and(|count| count > 0.0)
            })
        };
        (
            counts(["scoregate_ledger", "unreachable "]),
            counts(["failures_total", "lease"]),
        )
    }

    fn stop(self) {
        let ended = self.program.stop().with(0);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
    }
}

fn overloaded() -> (u16, String) {
    (503, "overloaded".into())
}

fn survives(order: Order) {
    let directory = TempDir::new().unwrap();
    let disk = Disk::new();
    // Two Free applications: one has a lease when the disk fails, the other has none.
    let load_clients = prepare(directory.path(), &[("free", 1_000), ("free", 10)]);
    let [holder, bare] = load_clients.as_slice() else {
        unreachable!()
    };
    let service = Service::start(directory.path(), &disk);
    assert_eq!(service.request(holder).0, 200);
    service.await_lease_ahead();

    disk.order(order);
    let (held, then) = service.request_while_served(holder);
    assert!(
        (1..=holder.lease(holder.quota)).contains(&held),
        "{order:?}: {held} of a lease"
    );
    assert_eq!(
        (then, service.request(bare)),
        (overloaded(), overloaded()),
        "{order:?}"
    );
    assert_eq!(service.seen(), (true, true), "{order:?}");
    let refused = service.create("nobody").with(2);
    assert_eq!(refused.out, "", "{order:?}");
    assert!(!service.names().contains(&"nobody".into()), "{order:?}");

    disk.order(Order::Work);
    service.request_until_served(holder);
    service.request_until_served(bare);
    assert_eq!(service.seen(), (false, true), "{order:?}");
    service.create("somebody").with(0);
    let (again, then) = service.request_while_served(bare);
    assert_eq!((again, then.0), (bare.quota - 1, 429), "{order:?}");
    let owed = holder.quota - 1 - held - 1;
    assert_eq!(remaining(service.public, holder), owed, "{order:?}");
    service.stop();

    let service = Service::start(directory.path(), &disk);
    let left = [holder, bare].map(|load_client| remaining(service.public, load_client));
    assert_eq!(left, [owed, 0], "{order:?}");
    let names = service.names();
    assert!(
        names.contains(&"somebody".into()) && !names.contains(&"nobody".into()),
        "{order:?}: {names:?}"
    );
    service.stop();
}

#[test]
fn a_crash_on_a_failing_disk_restores_no_spent_unit() {
    within_one_day(|| {
        for order in [Order::FailSyncs, Order::FailWrites, Order::NoRoom] {
            let directory = TempDir::new().unwrap();
            let disk = Disk::new();
            let load_clients = prepare(directory.path(), &[("free", 1_000)]);
            let [load_client] = load_clients.as_slice() else {
                unreachable!()
            };
            let service = Service::start(directory.path(), &disk);
            assert_eq!(service.request(load_client).0, 200);
            disk.order(order);
            let spent = 1 + service.request_while_served(load_client).0;
            service.program.signal("KILL");
            assert_eq!(service.program.end().0.code, None);

            disk.order(Order::Work);
            let service = Service::start(directory.path(), &disk);
            // A lease that was written but never synced may exist. It is lost like a granted lease.
            let left = remaining(service.public, load_client);
            let lost = (load_client.quota - spent).checked_sub(left);
            assert!(
                lost.is_some_and(|lost| lost <= load_client.lease(load_client.quota)),
                "{order:?}: {lost:?}"
            );
            let (rest, then) = service.request_while_served(load_client);
            assert_eq!(
                (rest, then.1.as_str()),
                (left, "quota_exceeded"),
                "{order:?}"
            );
            service.stop();
        }
    });
}

#[test]
fn a_change_that_could_not_be_synced_does_not_reappear_after_a_stop_or_a_crash() {
    for (signal, code) in [("TERM", Some(0)), ("KILL", None)] {
        let directory = TempDir::new().unwrap();
        let disk = Disk::new();
        let load_clients = prepare(directory.path(), &[("free", 10)]);
        let id = load_clients[0].id.to_string();
        let service = Service::start(directory.path(), &disk);
        service.create("somebody").with(0); // a log that has not begun would not even be written
        disk.order(Order::FailSyncs);
        service.create("nobody").with(2);
        service.keys(&["rotate", &id]).with(2);
        service.create("rejected").with(2);
        service.program.signal(signal);
        assert_eq!(service.program.end().0.code, code);

        disk.order(Order::Work);
        let service = Service::start(directory.path(), &disk);
        assert_eq!(service.names().len(), 2, "{signal}: {:?}", service.names());
        let shown = service.keys(&["show", &id, "--json"]).with(0).json();
        let keys = shown["keys"].as_array().unwrap();
        assert!(
            keys.len() == 1 && keys[0]["expires_at"].is_null(),
            "{signal}: {shown}"
        );
        service.stop();
    }
}

/// A file system of a few megabytes, unmounted when dropped.
struct SmallDisk {
    mount_point: TempDir,
    is_mounted: bool,
}

impl SmallDisk {
    fn mount() -> Self {
        let mount_point = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(mount_point.path());
        let is_mounted = mount.output().is_ok_and(|mounted| mounted.status.success());
        Self {
            mount_point,
            is_mounted,
        }
    }

    fn filler(&self) -> PathBuf {
        self.mount_point.path().join("filler")
    }

    /// Fills it except for this many bytes.
    fn fill_but(&self, bytes: usize) {
        let filled = std::fs::write(self.filler(), vec![1; 8 << 20]);
        assert!(filled.is_err(), "it is larger than it should be");
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(self.filler())
            .unwrap();
        file.set_len(file.metadata().unwrap().len() - bytes as u64)
            .unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            // Lazily, so that the file system is unmounted even if a program left by a failed test has files open on
            // it.
            drop(
                Command::new("umount")
                    .arg("--lazy")
                    .arg(self.mount_point.path())
                    .status(),
            );
        }
    }
}

/// After this many consecutive failures the disk counts as full.
const FULL_AFTER: u32 = 5;
/// More applications than fit on it.
const MOST_TO_FILL: u32 = 1_000;

#[test]
fn a_store_that_filled_its_disk_recovers_once_space_is_free() {
    within_one_day(|| {
        let small = SmallDisk::mount();
        let disk = Disk::new();
        if !small.is_mounted {
            let why =
                "no file system can be mounted here: only the simulated disk tests a full disk";
            writeln!(std::io::stderr(), "{why}").unwrap();
            return;
        }
        let directory = small.mount_point.path().join("data");
        let load_clients = prepare(&directory, &[("free", 1_000), ("free", 10)]);
        let [large, bare] = load_clients.as_slice() else {
            unreachable!()
        };
        let service = Service::start(&directory, &disk);

        // The write-ahead log is empty and cannot be extended.
        small.fill_but(0);
        assert_eq!(
            (service.request(large), service.request(bare)),
            (overloaded(), overloaded())
        );
        assert_eq!(service.create("early").with(2).out, "");
        small.fill_but(256 << 10);
        service.request_until_served(large);
        service.request_until_served(bare);
        let mut made = fill(&service);
        // A checkpoint frees space in the log, so leases may continue. If they do not, nothing is lost.
        let (of_large, then) = service.request_while_served(large);
        assert!(
            then == overloaded() || then.1 == "quota_exceeded",
            "{then:?} after {of_large}"
        );

        std::fs::remove_file(small.filler()).unwrap();
        service.request_until_served(bare);
        for (load_client, before) in [(large, 1 + of_large), (bare, 2)] {
            let (rest, then) = service.request_while_served(load_client);
            assert_eq!(
                (before + rest, then.1.as_str()),
                (load_client.quota, "quota_exceeded")
            );
        }
        service.create("afterwards").with(0);
        made.push("afterwards".into());
        service.stop();

        let service = Service::start(&directory, &disk);
        assert_eq!(
            [large, bare].map(|load_client| remaining(service.public, load_client)),
            [0, 0]
        );
        let mut names = service.names();
        names.retain(|name| name != "Weather station"); // those of the load clients
        names.sort();
        made.sort();
        assert_eq!(names, made);
        service.stop();
    });
}

/// Creates applications until it fails. Returns the names of the created ones.
fn fill(service: &Service<'_>) -> Vec<String> {
    let mut made = Vec::new();
    let mut failed = 0;
    for name in (0..MOST_TO_FILL).map(|number| format!("n{number}")) {
        let ended = service.create(&name);
        assert!(matches!(ended.code, Some(0 | 2)), "{}", ended.err);
        if ended.code == Some(0) {
            made.push(name);
            failed = 0;
        } else {
            failed += 1;
        }
        if failed == FULL_AFTER {
            assert!(!made.is_empty(), "none could be created");
            return made;
        }
    }
    panic!("all of them could be created");
}
