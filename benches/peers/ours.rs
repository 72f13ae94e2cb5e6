//! The gateway as a contestant: the real program with the settings that the job needs, and no others.
//! Not for: what it is measured against (`contestants`).

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::contestants::Contestant;
use crate::job::{DAY, Keys, MINUTE};
use crate::machine::Cores;
use crate::process::Process;

/// How the program is started.
#[derive(Clone, Copy)]
pub(crate) struct Ours {
    /// What it is called in the table.
    pub(crate) name: &'static str,
    /// Threads that serve.
    pub(crate) workers: usize,
    /// Whether it may use two cores.
    pub(crate) has_two_cores: bool,
    /// Whether it tells of requests, as it does by default: one in a hundred.
    pub(crate) tells: bool,
    /// Another build of the program, in place of this one.
    pub(crate) build: Option<&'static Path>,
    /// Lines of settings besides those of the job.
    pub(crate) settings: &'static str,
}

/// As it is measured beside others.
pub(crate) const PLAIN: Ours =
    Ours { name: "scoregate", workers: 1, has_two_cores: false, tells: true, build: None, settings: "" };
/// With room for as many documents as there will ever be. They are not written to disk while it is measured.
pub(crate) const ROOMY: &str =
    "cache.max_bytes = \"8GiB\"\ncache.disk_max_bytes = \"1MiB\"\nupstream.max_body = \"64MiB\"\n";

/// Starts it.
pub(crate) fn start(ours: Ours, cores: &Cores, keys: &Keys, backend: SocketAddr) -> Contestant {
    started(ours, cores, keys, backend).0
}

/// Starts it, and tells how long that took, from the command to where it says that it serves.
pub(crate) fn started(ours: Ours, cores: &Cores, keys: &Keys, backend: SocketAddr) -> (Contestant, Duration) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("scoregate.toml");
    std::fs::create_dir(directory.path().join("data")).unwrap();
    // Strangers may be refused as often as they like, or the guard would end their connections.
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\nguard.per_minute = 100000000\n\
         server.workers = {}\nupstream.url = \"http://{backend}/\"\nlog.access = {}\n{}\
         [tiers.load]\nminute = {MINUTE}\nday = {DAY}\npaid = true\n[tiers.spent]\nminute = 1\nday = {DAY}\npaid = true\n",
        directory.path().join("data").display(),
        ours.workers,
        ours.tells,
        ours.settings,
    );
    std::fs::write(&file, settings).unwrap();
    let binary = ours.build.unwrap_or(Path::new(env!("CARGO_BIN_EXE_scoregate")));
    let lines = directory.path().join("keys.csv");
    std::fs::write(&lines, keys.csv()).unwrap();
    let imported = Command::new(binary)
        .args(["keys", "import"])
        .arg(&lines)
        .arg("--config")
        .arg(&file)
        .output()
        .unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let mut command = if ours.has_two_cores { cores.two(binary) } else { cores.one(binary) };
    command.arg("serve").arg("--config").arg(&file);
    let began = Instant::now();
    let (process, address) = Process::that_says(command, directory, "public=");
    (Contestant { name: ours.name, address, process, knows_keys: true, cannot: "" }, began.elapsed())
}
