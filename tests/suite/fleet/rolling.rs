//! A rolling restart of three gateways behind `HAProxy`, which sends no request twice.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::*;
use crate::load_clients::Reply;
use crate::postgres::{give_away, unprivileged};
use crate::program::ChildProcess;

const HAPROXY: &str = "/usr/sbin/haproxy";
/// No outgoing connection of another test gets a port of this address.
const ADDRESS: &str = "127.77.0.1:0";
const CLIENTS: usize = 6;
/// More than `HAProxy` needs to notice a failed check on a busy machine.
const SHUTDOWN_DELAY: (&str, &str) = ("SCOREGATE_SERVER_SHUTDOWN_DELAY", "3s");

fn free_port() -> SocketAddr {
    TcpListener::bind(ADDRESS).unwrap().local_addr().unwrap()
}

/// A gateway that restarts on the same ports.
struct RestartedGateway {
    data_dir: TempDir,
    public: SocketAddr,
    side: SocketAddr,
}

impl RestartedGateway {
    fn start(&self, site: &Site) -> Program {
        let [public, private] = [self.public, self.side].map(|address| address.to_string());
        let directory = self.data_dir.path().to_str().unwrap();
        let serve = ["serve", "--listen", &public, "--admin-listen", &private, "--data-dir", directory];
        let program = Program::start(&serve, &[&site.environment()[..], &[SHUTDOWN_DELAY]].concat());
        program.public();
        program
    }
}

struct LoadBalancer {
    directory: TempDir,
    address: SocketAddr,
    _process: ChildProcess,
}

impl LoadBalancer {
    fn start(gateways: &[RestartedGateway]) -> Self {
        assert!(
            PathBuf::from(HAPROXY).exists(),
            "haproxy is not installed; on Debian: apt-get install haproxy"
        );
        let directory = TempDir::new().unwrap();
        let (address, socket) = (free_port(), directory.path().join("state"));
        let mut settings = format!(
            "global\n stats socket {} mode 666\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n \
             timeout server 60s\n retries 0\n no option redispatch\nfrontend public\n bind {address}\n \
             default_backend gateways\nbackend gateways\n balance roundrobin\n option httpchk\n \
             http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost\n \
             default-server check inter 100ms fall 1 rise 1\n",
            socket.display()
        );
        for (number, gateway) in gateways.iter().enumerate() {
            settings += &format!(" server {number} {} port {}\n", gateway.public, gateway.side.port());
        }
        let file = directory.path().join("haproxy.cfg");
        std::fs::write(&file, settings).unwrap();
        give_away(directory.path());
        let mut command = unprivileged(HAPROXY);
        command.args(["-db", "-q", "-f"]).arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let process = ChildProcess(command.spawn().unwrap());
        Self { directory, address, _process: process }
    }

    /// Waits until every server is in use.
    fn uses_all(&self) {
        let clock = Clock::system();
        let start = clock.mono();
        while self
            .state()
            .lines()
            .filter(|line| line.starts_with("gateways,") && line.contains(",UP,"))
            .count()
            < 4
        {
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

/// Sends requests until `is_done`, and counts those that are delivered; every other one is returned.
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
        if matches!(reply, Reply::Response { status: 200, .. }) {
            delivered.fetch_add(1, Ordering::Relaxed);
        } else {
            failed.push(format!("{reply:?}"));
        }
        if reconnects {
            connection = Wire::open(address).unwrap();
        }
    }
    failed
}

#[test]
fn a_rolling_restart_behind_a_load_balancer_fails_no_request_and_loses_no_unit() {
    within_one_day(|| {
        let site = Site::new();
        let (id, key) =
            site.create_with(&["--tier", "enterprise", "--minute", "10000000", "--day", "2000000"]);
        let gateways = [(); 3].map(|()| RestartedGateway {
            data_dir: TempDir::new().unwrap(),
            public: free_port(),
            side: free_port(),
        });
        let mut programs = gateways.each_ref().map(|gateway| Some(gateway.start(&site)));
        let balancer = LoadBalancer::start(&gateways);
        balancer.uses_all();
        let (is_done, delivered) = (AtomicBool::new(false), AtomicU32::new(0));
        let failed: Vec<String> = std::thread::scope(|scope| {
            let request = |number: usize| {
                let (key, is_done, delivered) = (&key, &is_done, &delivered);
                move || client(balancer.address, key, number.is_multiple_of(2), is_done, delivered)
            };
            let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(request(number))).collect();
            for (gateway, program) in gateways.iter().zip(&mut programs) {
                program.take().unwrap().stop().with(0);
                *program = Some(gateway.start(&site));
                balancer.uses_all();
            }
            is_done.store(true, Ordering::Relaxed);
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        let delivered = delivered.into_inner();
        assert!(failed.is_empty(), "{} of {delivered} requests failed: {:?}", failed.len(), failed.first());
        assert!(delivered > 500, "{delivered}");
        for program in programs.into_iter().flatten() {
            program.stop().with(0);
        }
        let shown = run_with(&["keys", "show", &id, "--json"], &site.environment()).with(0).json();
        assert_eq!(shown["granted_today"], delivered, "{shown}");
    });
}
