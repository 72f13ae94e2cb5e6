//! Gateways of two releases on one schema: this one, and the last one that knew one step of the schema fewer.
//!
//! It runs only with `SCOREGATE_FULL=1`: the other release is built from the history of the repository, in
//! `target/previous`. The figures are written to `tests/results/`. Every run has a stand-in in `upgrade`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::minutes::{refilled, seconds_since, served};
use super::*;
use crate::program::CommandOutput;

/// The last commit without the newest step in `crates/store/src/sql/steps.rs`, `EVIDENCE_AND_WEBHOOKS`.
const PREVIOUS: &str = "c3964838b13afd7d901a90f9d3f8ecdc548e9643";

const QUOTA: u32 = 5_000;
/// The least number of requests during a change.
const LEAST_LOAD: usize = 200;

/// A build of the program.
struct ProgramBuild(PathBuf);

impl ProgramBuild {
    fn current() -> Self {
        Self(env!("CARGO_BIN_EXE_scoregate").into())
    }

    /// Builds the previous release unless that was done before. Without its source it returns the reason.
    fn previous() -> Result<Self, String> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let directory = target.join("previous").join(PREVIOUS);
        let source = directory.join("source");
        if !source.join("Cargo.toml").exists() {
            extract(&directory, &source)?;
        }
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--locked", "--bin", "scoregate", "--target-dir"])
            .arg(directory.join("target"));
        let built = command
            .current_dir(&source)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
        Ok(Self(directory.join("target/debug/scoregate")))
    }

    fn command(&self, arguments: &[&str], site: &Site) -> Command {
        let mut command = Command::new(&self.0);
        command
            .args(arguments)
            .env_clear()
            .envs(site.environment())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command on the database.
    fn run(&self, site: &Site, arguments: &[&str]) -> CommandOutput {
        let output = self.command(arguments, site).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        CommandOutput {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }

    fn gateway(&self, site: &Site) -> SiteGateway {
        self.gateway_on(site, TempDir::new().unwrap())
    }

    fn gateway_on(&self, site: &Site, data_dir: TempDir) -> SiteGateway {
        let free = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ];
        let arguments = [&free[..], &[data_dir.path().to_str().unwrap()]].concat();
        let program = Program::spawn(self.command(&arguments, site));
        let (public, probes) = program.ports();
        SiteGateway {
            data_dir,
            program,
            public,
            side: probes,
        }
    }

    /// Runs `keys` on a gateway of this build.
    fn keys(&self, site: &Site, gateway: &SiteGateway, arguments: &[&str]) -> CommandOutput {
        let data_dir = ["--data-dir", gateway.data_dir.path().to_str().unwrap()];
        self.run(site, &[&["keys"], arguments, &data_dir].concat())
            .with(0)
    }

    /// Creates an application at a gateway of this build.
    fn create_at(&self, site: &Site, gateway: &SiteGateway) -> (String, String) {
        let create = ["create", "--name", "Station", "--tier", "pro", "--json"];
        let issued = self.keys(site, gateway, &create).json();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (word(&issued["application"]["id"]), word(&issued["key"]))
    }
}

/// Copies the source of the previous release out of the repository, which stays as it is.
fn extract(directory: &Path, source: &Path) -> Result<(), String> {
    let index = directory.join("index");
    let partial = directory.join("source.partial");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("GIT_INDEX_FILE", &index)
            .output()
    };
    let commit = format!("{PREVIOUS}^{{commit}}");
    match git(&["cat-file", "-e", &commit]) {
        Err(error) => return Err(format!("git cannot be run: {error}")),
        Ok(found) if !found.status.success() => {
            return Err(format!(
                "commit {PREVIOUS} is not in the history of this copy"
            ));
        }
        Ok(_) => {}
    }
    drop(std::fs::remove_dir_all(&partial));
    std::fs::create_dir_all(&partial).unwrap();
    let prefix = format!("--prefix={}/", partial.display());
    for arguments in [
        &["read-tree", PREVIOUS][..],
        &["checkout-index", "--all", &prefix],
    ] {
        let done = git(arguments).unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
    // Moved to its place once it is complete.
    std::fs::rename(partial, source).unwrap();
    Ok(())
}

/// A database whose tables were created by this build.
fn site_by(build: &ProgramBuild) -> Site {
    let site = Site {
        url: shared_server().url(),
        schema: new_schema(),
    };
    build.run(&site, &["store", "init"]).with(0);
    site
}

fn granted(site: &Site, id: &str) -> u64 {
    let shown = run_with(&["keys", "show", id, "--json"], &site.environment())
        .with(0)
        .json();
    shown["granted_today"].as_u64().unwrap()
}

/// Requests to all these gateways while `work` runs. Returns the number of 200s. Any other response fails.
pub(super) fn under_load(key: &str, publics: &[SocketAddr], work: impl FnOnce()) -> usize {
    let is_done = AtomicBool::new(false);
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let clients = publics.iter().map(|public| {
            let is_done = &is_done;
            let served = &served;
            scope.spawn(move || {
                let mut connection = Wire::open(*public).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    assert_eq!(
                        connection.get(TARGET, key).status_and_code(),
                        (200, String::new())
                    );
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        let _done = LoadEnd(&is_done);
        work();
        // A client that failed has ended.
        while served.load(Ordering::Relaxed) < LEAST_LOAD
            && !clients.iter().any(ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    served.into_inner()
}

/// Ends the clients, also if the work fails.
struct LoadEnd<'d>(&'d AtomicBool);

impl Drop for LoadEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// On tables of this release: the previous one starts, restarts, and both honour each other's changes.
fn changes_hold_at_both(previous: &ProgramBuild, current: &ProgramBuild) -> String {
    let site = site_by(current);
    previous.run(&site, &["store", "check"]).with(0);
    previous.run(&site, &["store", "upgrade"]).with(0);
    let (id, key) = site.create("250000");
    let loaded = previous.gateway(&site);
    let restarted = previous.gateway(&site);
    let newer = current.gateway(&site);
    let mut restarted = Some(restarted);
    let delivered = under_load(&key, &[loaded.public, newer.public], || {
        let SiteGateway {
            data_dir, program, ..
        } = restarted.take().unwrap();
        program.stop().with(0);
        let again = previous.gateway_on(&site, data_dir);
        for (build, at, other) in [(previous, &again, &newer), (current, &newer, &again)] {
            let (id, key) = build.create_at(&site, at);
            other.reaches(&key, 200);
            build.keys(&site, at, &["revoke", &id]);
            other.reaches(&key, 401);
        }
        restarted = Some(again);
    });
    let live = run_with(&["nodes", "--json"], &site.environment())
        .with(0)
        .json();
    assert_eq!(live["live"], 3, "{live:#}");
    for gateway in [Some(loaded), restarted, Some(newer)].into_iter().flatten() {
        gateway.program.stop().with(0);
    }
    assert_eq!(
        granted(&site, &id),
        delivered as u64,
        "units that were not delivered are returned"
    );
    format!("| restart, changes of keys at each | {delivered} | {delivered} |")
}

/// One daily quota and one minute limit in total.
fn limits_hold_over_both(previous: &ProgramBuild, current: &ProgramBuild) -> [String; 2] {
    let site = site_by(current);
    let (id, key) = site.create(&QUOTA.to_string());
    let (_, limited) = site.create_with(&["--tier", "pro"]);
    let builds = [previous, current, previous, current];
    let gateways = builds.map(|build| build.gateway(&site));
    let at_all = |request: &(dyn Fn(SocketAddr) -> u32 + Sync)| -> u32 {
        let start = Barrier::new(gateways.len());
        std::thread::scope(|scope| {
            let clients = gateways.each_ref().map(|gateway| {
                let public = gateway.public;
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    request(public)
                })
            });
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .sum()
        })
    };
    let clock = Clock::system();
    let start = clock.mono();
    let minute = at_all(&|public| served(public, &limited, 200));
    let most = 60 + refilled(60, seconds_since(&clock, start));
    assert!(
        (60..=most).contains(&minute),
        "{minute} were served, of at most {most}"
    );

    let together = at_all(&|public| use_up(public, &key));
    // Units that one gateway held while another was refused.
    let rest: u32 = gateways
        .iter()
        .map(|gateway| use_up(gateway.public, &key))
        .sum();
    assert_eq!(together + rest, QUOTA);
    assert_eq!(granted(&site, &id), u64::from(QUOTA));
    for gateway in gateways {
        gateway.program.stop().with(0);
    }
    [
        format!("| minute limit of 60 in use at four gateways | {minute} | at most {most} |"),
        format!(
            "| quota of {QUOTA} used up at four gateways | {} | {QUOTA} |",
            together + rest
        ),
    ]
}

/// A rolling update: tables of the previous release are upgraded under load, then its gateways are replaced.
fn upgrade_under_load(previous: &ProgramBuild, current: &ProgramBuild) -> String {
    let site = site_by(previous);
    let (id, key) = site.create_by(previous);
    let old = [previous.gateway(&site), previous.gateway(&site)];
    let publics = old.each_ref().map(|gateway| gateway.public);
    let mut delivered = under_load(&key, &publics, || {
        let refused = current.run(&site, &["store", "check"]).with(2).err;
        assert!(refused.contains("scoregate store upgrade"), "{refused}");
        let upgraded = std::thread::scope(|scope| {
            let upgrade = || current.run(&site, &["store", "upgrade"]).with(0).err;
            let commands = [(); 2].map(|()| scope.spawn(upgrade));
            commands.map(|command| command.join().unwrap())
        });
        let done: Vec<&String> = upgraded
            .iter()
            .filter(|message| message.contains("upgraded"))
            .collect();
        let [done] = done[..] else {
            panic!("one of the commands upgrades: {upgraded:?}")
        };
        let formats: Vec<u32> = done
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        assert_eq!(
            formats[0] + 1,
            formats[1],
            "{PREVIOUS} is not the last commit without the newest step"
        );
    });
    let mut gateways = Vec::new();
    for gateway in old {
        let new = current.gateway(&site);
        delivered += under_load(&key, &[gateway.public, new.public], || {
            let (id, created) = current.create_at(&site, &new);
            gateway.reaches(&created, 200);
            current.keys(&site, &new, &["revoke", &id]);
            gateway.reaches(&created, 401);
        });
        gateway.program.stop().with(0);
        gateways.push(new);
    }
    for gateway in gateways {
        gateway.program.stop().with(0);
    }
    assert_eq!(
        granted(&site, &id),
        delivered as u64,
        "units that were not delivered are returned"
    );
    format!(
        "| tables upgraded under load, gateways replaced one by one | {delivered} | {delivered} |"
    )
}

impl Site {
    /// Creates an application by a command of this build, on tables that others may not use yet.
    fn create_by(&self, build: &ProgramBuild) -> (String, String) {
        let create = [
            "keys", "create", "--name", "Station", "--tier", "pro", "--minute", "1000000",
        ];
        let issued = build
            .run(
                self,
                &[&create[..], &["--day", "250000", "--json"]].concat(),
            )
            .with(0)
            .json();
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (word(&issued["application"]["id"]), word(&issued["key"]))
    }
}

#[test]
fn gateways_of_the_previous_release_and_of_this_one_work_side_by_side_on_one_schema() {
    needs!("postgresql", "git");
    if !is_full_size() {
        return note(
            "SKIPPED: two releases side by side: it builds a second program; set SCOREGATE_FULL=1",
        );
    }
    let (previous, current) = match ProgramBuild::previous() {
        Ok(previous) => (previous, ProgramBuild::current()),
        Err(reason) => return note(&format!("SKIPPED: two releases side by side: {reason}")),
    };
    within_one_day(|| {
        let changes = changes_hold_at_both(&previous, &current);
        let [minute, day] = limits_hold_over_both(&previous, &current);
        let rows = [
            changes,
            day,
            minute,
            upgrade_under_load(&previous, &current),
        ]
        .join("\n");
        note(&rows);
        write(&rows);
    });
}

/// Writes the page to `tests/results/`.
fn write(rows: &str) {
    let day = Clock::system().now().wall.day();
    let cores = std::thread::available_parallelism().unwrap();
    let page = format!(
        "# Two releases on one schema, {day}\n\n\
         `SCOREGATE_FULL=1 cargo test --test suite fleet::two_builds`: gateways of this build and of {PREVIOUS}, which knows one \
         step of the schema fewer, on one PostgreSQL database; debug builds on {cores} cores shared with all clients. Each request \
         under load got a 200, changes of keys at one release held at the other within {PROPAGATION} s, and the ledger agrees \
         with the clients.\n\n\
         | Scenario | 200s | Charged |\n|---|---:|---:|\n{rows}\n"
    );
    let name = format!("tests/results/{day}-fleet-two-builds.md");
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), page).unwrap();
}
