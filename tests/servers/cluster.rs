//! Two PostgreSQL servers for tests: a primary and its synchronous standby, on Unix sockets.
//!
//! Nothing is synced to disk, since only processes are killed. A commit is acknowledged once the standby has received
//! it, so a failover loses nothing. Without a standby no commit is acknowledged.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    fake_clock::remove_shared_memory,
    postgres::{OWNER, create, give_away, launch, run, unprivileged, url_host},
};

const SETTINGS: [&str; 9] = [
    "fsync=off",
    "synchronous_commit=on",
    "synchronous_standby_names=*",
    "wal_retrieve_retry_interval=200ms",
    "wal_sender_timeout=5s",
    "wal_receiver_timeout=5s",
    "shared_buffers=16MB",
    // With this setting, the shared memory segments of killed servers are files in their directories.
    "dynamic_shared_memory_type=mmap",
    "max_connections=100",
];

/// Maximum time until a standby follows.
const MAX_WAIT: Duration = Duration::from_mins(1);

pub struct PostgresCluster {
    directory: TempDir,
    /// Environment of the servers.
    environment: Vec<(String, String)>,
    servers: [Option<Child>; 2],
    primary: usize,
}

impl PostgresCluster {
    /// Starts both servers with these environment variables. They end with the calling thread.
    pub fn start(environment: Vec<(String, String)>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))
            .expect("permissions");
        for name in ["0", "1"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        give_away(directory.path());
        let mut cluster = Self {
            directory,
            environment,
            servers: [None, None],
            primary: 0,
        };
        create(&cluster.path(0));
        cluster.launch(0);
        cluster.rebuild();
        cluster
    }

    /// The sockets of both servers. Their names do not change.
    pub fn sockets(&self) -> [PathBuf; 2] {
        [0, 1].map(|number| self.path(number).join(".s.PGSQL.5432"))
    }

    /// The URL of the database for the superuser, with both servers as hosts.
    pub fn url(&self) -> String {
        let [one, other] = [0, 1].map(|number| url_host(&self.path(number)));
        format!("postgresql://{OWNER}@{one},{other}/postgres")
    }

    /// Runs SQL on the primary and returns the output.
    pub fn sql(&self, statement: &str) -> String {
        let mut psql = unprivileged("psql");
        psql.args(["-U", OWNER, "-d", "postgres", "-qtA", "-c", statement, "-h"])
            .arg(self.path(self.primary));
        let output = psql.output().expect("psql runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Kills all processes of the primary.
    pub fn kill_primary(&mut self) {
        let Some(mut server) = self.servers[self.primary].take() else {
            return;
        };
        let main = server.id();
        // The first process is stopped first, so that it starts no further process.
        signal("STOP", &[main]);
        let mut all = children(main);
        all.push(main);
        signal("KILL", &all);
        server.wait().expect("it was killed");
        remove_segment(&self.path(self.primary));
        remove_shared_memory(main);
    }

    /// Makes the standby the primary. Commits wait until the other server is rebuilt.
    pub fn promote(&mut self) {
        self.primary = 1 - self.primary;
        let data = self.path(self.primary).join("data");
        run(unprivileged("pg_ctl")
            .args(["promote", "--wait", "--silent", "-D"])
            .arg(data));
    }

    /// Copies the primary to the other server, starts it as standby, and waits until it confirms commits.
    pub fn rebuild(&mut self) {
        let standby = 1 - self.primary;
        let path = self.path(standby);
        let data = path.join("data");
        drop(fs::remove_dir_all(&data));
        drop(fs::remove_file(path.join(".s.PGSQL.5432")));
        let options = [
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--wal-method=stream",
            "--no-sync",
            "-U",
            OWNER,
        ];
        let mut copy = unprivileged("pg_basebackup");
        run(copy
            .args(options)
            .arg("-h")
            .arg(self.path(self.primary))
            .arg("-D")
            .arg(&data));
        self.launch(standby);
        let clock = Clock::system();
        let start = Clock::system().mono();
        while !self.is_synchronous() {
            assert!(
                clock.mono().since(start) < MAX_WAIT,
                "the standby does not follow"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops all processes of the primary until `resume`.
    pub fn pause(&self) {
        self.signal_primary("STOP");
    }

    pub fn resume(&self) {
        self.signal_primary("CONT");
    }

    /// Whether the standby confirms commits.
    pub fn is_synchronous(&self) -> bool {
        self.sql("SELECT sync_state FROM pg_stat_replication")
            .contains("sync")
    }

    fn signal_primary(&self, name: &str) {
        let Some(server) = &self.servers[self.primary] else {
            return;
        };
        signal(name, &[server.id()]);
        signal(name, &children(server.id()));
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.path().join(number.to_string())
    }

    fn launch(&mut self, number: usize) {
        let server = launch(&self.path(number), &SETTINGS, &self.environment);
        self.servers[number] = Some(server);
    }
}

impl Drop for PostgresCluster {
    fn drop(&mut self) {
        // A paused server does not end.
        self.resume();
        for server in self.servers.iter_mut().flatten() {
            // Immediate shutdown: the server also ends its other processes.
            signal("QUIT", &[server.id()]);
            drop(server.wait());
        }
    }
}

/// The child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |id: &u32| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The program name in parentheses may contain spaces.
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        after_name.split(' ').nth(1) == Some(parent.to_string().as_str())
    };
    ids.filter(is_child).collect()
}

fn signal(name: &str, processes: &[u32]) {
    let ids: Vec<String> = processes.iter().map(u32::to_string).collect();
    let command = format!("kill -{name} {}", ids.join(" "));
    // A process that has already ended is not an error.
    drop(
        Command::new("sh")
            .args(["-c", &command])
            .output()
            .expect("a shell runs"),
    );
}

/// A killed server leaves a segment of System V shared memory, which is named in its lock file.
fn remove_segment(path: &Path) {
    let lock = fs::read_to_string(path.join("data/postmaster.pid")).unwrap_or_default();
    if let Some(segment) = lock
        .lines()
        .nth(6)
        .and_then(|line| line.split_whitespace().nth(1))
    {
        drop(Command::new("ipcrm").args(["-m", segment]).output());
    }
}
