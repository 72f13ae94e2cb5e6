//! `HAProxy` in front of gateways that restart on the same ports, and clients that send requests through it.

use std::{
    io::{Read as _, Write as _},
    net::SocketAddr,
    os::unix::net::UnixStream,
    process::Stdio,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    load_clients::{Reply, TARGET, Wire},
    ports::ReservedPort,
    postgres::{give_away, unprivileged},
    program::{ChildProcess, Program},
};

const HAPROXY: &str = "/usr/sbin/haproxy";
/// The configuration of the profile `fleet`.
const SHIPPED: &str = include_str!("../../../deploy/compose/haproxy.cfg");
/// A configuration that sends no request twice, and detects a failed check early.
const WITHOUT_RETRIES: &str = "global
defaults
 mode http
 timeout connect 5s
 timeout client 60s
 timeout server 60s
 retries 0
 no option redispatch
frontend public
 bind :8080
 default_backend gateways
backend gateways
 balance roundrobin
 option httpchk
 http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
 default-server check inter 100ms fall 1 rise 1
";

const CLIENTS: usize = 6;
/// Pause between the requests of a client: the load is steady, and does not saturate the machine.
const PAUSE: Duration = Duration::from_millis(10);
/// Number of requests that are delivered before the test changes anything.
const FIRST_DELIVERED: u32 = 100;

/// A gateway that restarts on the same ports.
pub struct RestartedGateway {
    pub data_dir: TempDir,
    public: ReservedPort,
    side: ReservedPort,
}

impl RestartedGateway {
    pub fn new() -> Self {
        Self {
            data_dir: TempDir::new().unwrap(),
            public: ReservedPort::new(),
            side: ReservedPort::new(),
        }
    }

    pub fn public(&self) -> SocketAddr {
        self.public.address()
    }

    pub fn side(&self) -> SocketAddr {
        self.side.address()
    }

    /// Starts it, and waits until it serves.
    pub fn start(&self, environment: &[(&str, &str)]) -> Program {
        let program = self.spawn(environment);
        program.public();
        program
    }

    pub fn spawn(&self, environment: &[(&str, &str)]) -> Program {
        let [public, private] = [&self.public, &self.side].map(|port| port.address().to_string());
        let directory = self.data_dir.path().to_str().unwrap();
        let serve = [
            "serve",
            "--listen",
            &public,
            "--admin-listen",
            &private,
            "--data-dir",
            directory,
        ];
        Program::start(&serve, environment)
    }
}

pub struct LoadBalancer {
    directory: TempDir,
    port: ReservedPort,
    _process: ChildProcess,
}

impl LoadBalancer {
    pub fn without_retries(gateways: &[RestartedGateway]) -> Self {
        Self::start(WITHOUT_RETRIES, gateways)
    }

    /// Starts `HAProxy` as the profile `fleet` of the compose file does.
    pub fn shipped(gateways: &[RestartedGateway]) -> Self {
        Self::start(SHIPPED, gateways)
    }

    fn start(configuration: &str, gateways: &[RestartedGateway]) -> Self {
        let directory = TempDir::new().unwrap();
        let port = ReservedPort::new();
        let socket = directory.path().join("state");
        let state = format!("global\n stats socket {} mode 666\n", socket.display());
        let mut settings = configuration
            .replace("bind :8080", &format!("bind {}", port.address()))
            .replacen("global\n", &state, 1);
        settings = settings
            .lines()
            .filter(|line| !line.starts_with("    server "))
            .fold(String::new(), |all, line| all + line + "\n");
        for (number, gateway) in gateways.iter().enumerate() {
            settings += &format!(
                " server {number} {} port {}\n",
                gateway.public(),
                gateway.side().port()
            );
        }
        let file = directory.path().join("haproxy.cfg");
        std::fs::write(&file, settings).unwrap();
        give_away(directory.path());
        let mut command = unprivileged(HAPROXY);
        command
            .args(["-db", "-q", "-f"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = ChildProcess(command.spawn().unwrap());
        Self {
            directory,
            port,
            _process: process,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Waits until every server is in use.
    pub fn uses_all(&self) {
        // The backend and its three servers.
        self.waits_until(|state| {
            let is_up = |line: &&str| line.starts_with("gateways,") && line.contains(",UP,");
            state.lines().filter(is_up).count() == 4
        });
    }

    /// Waits until this server is no longer used.
    pub fn excludes(&self, number: usize) {
        let line = format!("gateways,{number},");
        self.waits_until(|state| {
            state
                .lines()
                .any(|found| found.starts_with(&line) && found.contains(",DOWN,"))
        });
    }

    fn waits_until(&self, is_reached: impl Fn(&str) -> bool) {
        let clock = Clock::system();
        let start = clock.mono();
        while !is_reached(&self.state()) {
            assert!(clock.mono().since(start).as_secs() < 60, "{}", self.state());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The state of the backend and of each server, a line for each.
    fn state(&self) -> String {
        let mut state = String::new();
        if let Ok(mut stream) = UnixStream::connect(self.directory.path().join("state")) {
            stream.write_all(b"show stat\n").unwrap();
            stream.read_to_string(&mut state).unwrap();
        }
        state
    }
}

/// Clients that send requests until this is dropped.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends requests while `work` runs. Returns the number of delivered ones, and every other reply.
pub fn requests_during(address: SocketAddr, key: &str, work: impl FnOnce()) -> (u32, Vec<String>) {
    let is_done = AtomicBool::new(false);
    let delivered = AtomicU32::new(0);
    let failed = std::thread::scope(|scope| {
        let end = EndOfLoad(&is_done);
        let request = |number: usize| {
            let is_done = &is_done;
            let delivered = &delivered;
            move || client(address, key, number.is_multiple_of(2), is_done, delivered)
        };
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| scope.spawn(request(number)))
            .collect();
        while delivered.load(Ordering::Relaxed) < FIRST_DELIVERED {
            std::thread::sleep(PAUSE);
        }
        work();
        drop(end);
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    (delivered.into_inner(), failed)
}

fn client(
    address: SocketAddr,
    key: &str,
    reconnects: bool,
    is_done: &AtomicBool,
    delivered: &AtomicU32,
) -> Vec<String> {
    let mut failed = Vec::new();
    let mut connection = Wire::open(address).unwrap();
    while !is_done.load(Ordering::Relaxed) {
        let reply = connection.get(TARGET, key);
        let is_delivered = matches!(reply, Reply::Response { status: 200, .. });
        if is_delivered {
            delivered.fetch_add(1, Ordering::Relaxed);
        } else {
            failed.push(format!("{reply:?}"));
        }
        if reconnects || !is_delivered {
            connection = Wire::open(address).unwrap();
        }
        std::thread::sleep(PAUSE);
    }
    failed
}
