//! PostgreSQL for the bench: a durable server, and a synchronous standby if wanted, on the disk of the temporary
//! directory. The servers run as an unprivileged user and end with the bench.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use scoregate_base::clock::Clock;
use scoregate_store::{DatabaseConfig, SchemaName, TablesWork, maintenance::DatabaseCommand};
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// Superuser of the servers.
const OWNER: &str = "owner";
/// A moment between looks at a server that starts.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The primary, and its standby.
pub struct Database {
    directory: TempDir,
    servers: Vec<Server>,
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Killing the first process ends the others.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The programs of the newest installed version; `None` if there is none.
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max()?;
    Some(
        Path::new("/usr/lib/postgresql")
            .join(newest.to_string())
            .join("bin"),
    )
}

impl Database {
    /// A primary with these settings.
    pub async fn start(settings: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["primary", "standby"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        if is_root() {
            run(Command::new("chown")
                .args(["-R", user()])
                .arg(directory.path()));
        }
        let options = [
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "-U",
            OWNER,
            "-D",
        ];
        run(unprivileged("initdb")
            .args(options)
            .arg(directory.path().join("primary/data")));
        let mut database = Self {
            directory,
            servers: Vec::new(),
        };
        database.launch("primary", settings).await;
        database
    }

    /// Adds a standby. From now on commits wait for it.
    pub async fn replicate(&mut self) {
        let from = self.socket("primary");
        let to = self.socket("standby").join("data");
        let mut copy = unprivileged("pg_basebackup");
        run(copy
            .args(["-R", "-X", "stream", "-c", "fast", "-U", OWNER, "-h"])
            .arg(from)
            .arg("-D")
            .arg(to));
        self.launch("standby", &[]).await;
        let client = self.client().await;
        client
            .batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            .await
            .unwrap();
        client
            .batch_execute("SELECT pg_reload_conf()")
            .await
            .unwrap();
        let is_attached = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while client
            .query_one(is_attached, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
            == 0
        {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The URL of the primary for `store.url`.
    pub fn url(&self) -> String {
        let socket = self
            .socket("primary")
            .display()
            .to_string()
            .replace('/', "%2F");
        format!("postgresql://{OWNER}@{socket}/postgres")
    }

    /// A connection of its own to the primary.
    pub async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// New tables in this schema.
    pub async fn tables(&self, schema: &str) -> DatabaseConfig {
        let config = DatabaseConfig {
            servers: vec![self.url().parse().unwrap()],
            listen_servers: vec![self.url().parse().unwrap()],
            password: None,
            tls: None,
            schema: SchemaName::parse(schema).unwrap(),
            timeout: Duration::from_mins(1),
        };
        let command = DatabaseCommand {
            config: config.clone(),
            clock: Clock::system(),
        };
        Box::pin(command.change_tables(TablesWork::Create, None))
            .await
            .unwrap();
        config
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    async fn launch(&mut self, name: &str, settings: &[&str]) {
        let socket = self.socket(name);
        let mut command = unprivileged("postgres");
        command
            .arg("-D")
            .arg(socket.join("data"))
            .arg("-k")
            .arg(&socket);
        for setting in ["listen_addresses=", "max_connections=200"]
            .iter()
            .chain(settings)
        {
            command.args(["-c", setting]);
        }
        let log = fs::File::create(socket.join("log")).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.servers.push(Server(child));
        let url = self.url().replace("%2Fprimary", &format!("%2F{name}"));
        while tokio_postgres::connect(&url, NoTls).await.is_err() {
            let ended = self
                .servers
                .last_mut()
                .is_some_and(|server| server.0.try_wait().unwrap().is_some());
            assert!(
                !ended,
                "{}",
                fs::read_to_string(socket.join("log")).unwrap()
            );
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A standby that loses its primary would only try again.
        self.servers.clear();
    }
}

/// A program of the server's package, without root's rights, that is killed with the thread that runs this.
fn unprivileged(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root() {
        command.args(["--reuid", user(), "--regid", user(), "--clear-groups"]);
    }
    command.arg(programs().unwrap().join(program));
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}

/// The id of `nobody`, as user and as group.
fn user() -> &'static str {
    "65534"
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
