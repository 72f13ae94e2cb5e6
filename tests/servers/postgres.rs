//! A PostgreSQL server for tests: a new data directory, a Unix socket, no TCP port, no durability.
//!
//! The server runs as an unprivileged user, which it requires, and ends with the test process.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

/// Superuser of the server.
pub const OWNER: &str = "owner";

pub struct PostgresServer {
    pub directory: TempDir,
    /// Environment of the server.
    pub environment: Vec<(String, String)>,
    pub child: Child,
}

/// The server that the tests of a process share. Each test uses its own schema.
pub fn shared_server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    // Started by a thread that lives as long as the process: the server ends with the thread that started it.
    SERVER.get_or_init(|| {
        let (ready, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            ready
                .send(PostgresServer::start(&["fsync=off"]))
                .expect("the test waits");
            loop {
                std::thread::park();
            }
        });
        started.recv().expect("the server starts")
    })
}

/// A schema name that no other test of the process uses.
pub fn new_schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("site_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl PostgresServer {
    pub fn start(settings: &[&str]) -> Self {
        Self::start_with(settings, Vec::new())
    }

    pub fn start_with(settings: &[&str], environment: Vec<(String, String)>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        give_away(&path);
        create(&path);
        let child = launch(&path, settings, &environment);
        Self {
            directory,
            environment,
            child,
        }
    }

    /// The URL of its database, for the superuser.
    pub fn url(&self) -> String {
        format!(
            "postgresql://{OWNER}@{}/postgres",
            url_host(self.directory.path())
        )
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // Killing the first process also ends the others.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The URL host of the server whose socket is in this directory.
pub fn url_host(path: &Path) -> String {
    path.display().to_string().replace('/', "%2F")
}

/// Gives a directory to the user that runs the servers.
pub fn give_away(path: &Path) {
    if is_root() {
        run(Command::new("chown").arg("-R").arg(user()).arg(path));
    }
}

/// Creates the data directory `data` in `path`.
pub fn create(path: &Path) {
    let options = [
        "--auth=trust",
        "--no-sync",
        "--encoding=UTF8",
        "--locale=C",
        "-U",
        OWNER,
        "-D",
    ];
    run(unprivileged("initdb").args(options).arg(path.join("data")));
}

/// Starts the server of the data directory `data` in `path`, with its socket in `path`, and waits until it accepts
/// connections.
pub fn launch(path: &Path, settings: &[&str], environment: &[(String, String)]) -> Child {
    // Preloaded libraries are only for the server, not for the program that changes the user.
    let mut command = unprivileged("/usr/bin/env");
    command.args(
        environment
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    command
        .arg(binaries().join("postgres"))
        .arg("-D")
        .arg(path.join("data"))
        .arg("-k")
        .arg(path);
    for setting in ["listen_addresses=", "max_connections=200"]
        .iter()
        .chain(settings)
    {
        command.args(["-c", setting]);
    }
    let mut child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("postgres starts");
    let mut log = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let is_ready = |line: &str| line.contains("database system is ready to accept");
    let seen: Vec<String> = log
        .by_ref()
        .map_while(Result::ok)
        .take_while(|line| !is_ready(line))
        .collect();
    assert!(
        child.try_wait().expect("its state").is_none(),
        "postgres ended: {seen:#?}"
    );
    // The server's log is read to the end, so that the server never waits for a reader.
    std::thread::spawn(move || log.for_each(drop));
    child
}

/// A command for a program of the server's package, without root privileges. It is killed when the calling thread ends.
/// Other programs need an absolute path.
pub fn unprivileged(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root() {
        command.args(["--reuid", user(), "--regid", user(), "--clear-groups"]);
    }
    command.arg(binaries().join(program));
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 0)
}

/// The id of `nobody`, as user and as group.
fn user() -> &'static str {
    "65534"
}

/// The newest installed version.
fn binaries() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").map(|found| {
        found
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .max()
    });
    match versions {
        Ok(Some(newest)) => Path::new("/usr/lib/postgresql")
            .join(newest.to_string())
            .join("bin"),
        _ => panic!("PostgreSQL is not installed; on Debian: apt-get install postgresql"),
    }
}

pub fn run(command: &mut Command) {
    let done = command.output().expect("the program runs");
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
