//! Latency of cached hits on open TLS connections, and of new connections, while clients repeat a recorded `ClientHello`: an
//! attack that costs its sender no cryptography and the server a signature each. With RSA-2048 and ECDSA P-256.
//!
//! Where there are two processors and `taskset`, the gateway has one, and clients and attackers have the other.
//! `cargo bench --bench measure -- tls_attack` is small; `SCOREGATE_FULL=1` gives reliable figures.

use std::{
    collections::VecDeque,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::{
    gateway_process::GatewayProcess,
    generator::{HttpResponse, Latencies, every},
};

const RSA_KEY: &str = include_str!("rsa_2048.pem");
/// Open connections, and the time between two hits on each.
const CALLERS: u32 = 4;
const HIT_INTERVAL: Duration = Duration::from_millis(20);
/// The time between two new connections.
const CONNECT_INTERVAL: Duration = Duration::from_millis(100);
/// Threads of the attack, and the time between two `ClientHello` messages of each: 1,000 per second together.
const ATTACKERS: u32 = 4;
const HELLO_INTERVAL: Duration = Duration::from_millis(4);
/// Connections that an attacker keeps open if it does not close them.
const KEPT: usize = 100;
/// The argument of the process that runs on the second processor.
const PINNED: &str = "on-the-second-processor";

/// An attack.
#[derive(Clone, Copy, Debug)]
struct Attack {
    name: &'static str,
    /// The last number of its address. The attacks on each key come from a network of their own.
    host: u8,
    /// Whether it closes a connection after the `ClientHello`.
    closes: bool,
}

const CALLER: u8 = 2;
const ATTACKS: [Attack; 3] = [
    Attack {
        name: "closes",
        host: 3,
        closes: true,
    },
    Attack {
        name: "waits",
        host: 4,
        closes: false,
    },
    Attack {
        name: "waits, same address",
        host: CALLER,
        closes: false,
    },
];

pub fn run(arguments: &[String]) {
    let is_pinned = arguments.iter().any(|argument| argument == PINNED);
    if !is_pinned && has_two_processors() {
        let this = std::env::current_exe().unwrap();
        let mut command = Command::new("taskset");
        assert!(
            command
                .args(["-c", "1"])
                .arg(this)
                .args(["tls_attack", PINNED])
                .status()
                .unwrap()
                .success()
        );
        return;
    }
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let time = if is_full {
        Duration::from_secs(20)
    } else {
        Duration::from_millis(600)
    };
    println!(
        "{:>22} {:>20} {:>9} {:>9} {:>9} {:>9} {:>11} {:>9}",
        "key", "attack", "hits", "p50", "p99", "max", "connect p99", "failed"
    );
    let ecdsa_key = KeyPair::generate().unwrap().serialize_pem();
    for (network, name, key) in [
        (1, "RSA-2048", RSA_KEY.to_owned()),
        (2, "ECDSA P-256", ecdsa_key),
    ] {
        println!("{name:>22}: a signature takes {:.0?}", signing_time(&key));
        let directory = TempDir::new().unwrap();
        let gateway = Gateway::start(directory.path(), network, &key, is_pinned);
        report(name, "none", &gateway.measure(None, time));
        for attack in ATTACKS {
            report(name, attack.name, &gateway.measure(Some(attack), time));
        }
    }
}

fn has_two_processors() -> bool {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let taskset = Command::new("taskset")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    processors > 1 && taskset.is_ok_and(|status| status.success())
}

/// The mean duration of a signature in a handshake.
fn signing_time(key: &str) -> Duration {
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let key = rustls::crypto::ring::sign::any_supported_type(&key).unwrap();
    let schemes = [
        rustls::SignatureScheme::RSA_PSS_SHA256,
        rustls::SignatureScheme::ECDSA_NISTP256_SHA256,
    ];
    let signer = key.choose_scheme(&schemes).unwrap();
    let start = Instant::now();
    let count = 200;
    for _ in 0..count {
        signer.sign(&[7; 130]).unwrap();
    }
    start.elapsed() / count
}

/// Latencies of hits on open connections, and of new connections with a hit each.
struct Measured {
    hits: Latencies,
    connects: Latencies,
}

fn report(key: &str, attack: &str, measured: &Measured) {
    let Measured { hits, connects } = measured;
    println!(
        "{key:>22} {attack:>20} {:>9} {:>9.1?} {:>9.1?} {:>9.1?} {:>11.1?} {:>9}",
        hits.taken.len(),
        hits.quantile(0.5),
        hits.quantile(0.99),
        hits.quantile(1.0),
        connects.quantile(0.99),
        hits.failed + connects.failed
    );
}

/// A gateway with TLS, and a client that trusts its certificate.
struct Gateway {
    process: GatewayProcess,
    network: u8,
    client: Arc<ClientConfig>,
}

impl Gateway {
    fn start(directory: &Path, network: u8, private_key: &str, is_pinned: bool) -> Self {
        let pair = KeyPair::from_pem(private_key).unwrap();
        let certificate = CertificateParams::new(vec!["localhost".into()])
            .unwrap()
            .self_signed(&pair)
            .unwrap();
        std::fs::write(directory.join("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(directory.join("key.pem"), private_key).unwrap();
        let shown = directory.display();
        let settings = format!(
            "upstream = \"built-in\"\nlog.access = false\n\
             [tls.default]\ncertificate = \"{shown}/certificate.pem\"\nkey = \"{shown}/key.pem\"\n"
        );
        let launcher: &[&str] = if is_pinned {
            &["taskset", "-c", "0"]
        } else {
            &[]
        };
        let process = GatewayProcess::start(directory, &settings, launcher);
        Self {
            process,
            network,
            client: client(certificate.der()),
        }
    }

    fn connect(&self) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let stream: TcpStream = self.socket(CALLER)?.into();
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let name = ServerName::try_from("localhost").unwrap();
        let session =
            ClientConnection::new(Arc::clone(&self.client), name).map_err(std::io::Error::other)?;
        Ok(StreamOwned::new(session, stream))
    }

    /// The time to a 200, or nothing.
    fn hit(&self, stream: &mut StreamOwned<ClientConnection, TcpStream>) -> std::io::Result<()> {
        let head = format!(
            "GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {}\r\n\r\n",
            self.process.key
        );
        stream.write_all(head.as_bytes())?;
        let response = HttpResponse::read(stream)?;
        assert_eq!(response.status, 200);
        Ok(())
    }

    /// A connection from a host of the network.
    fn socket(&self, host: u8) -> std::io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.set_tcp_nodelay(true)?;
        socket.bind(&SocketAddr::new([127, 0, self.network, host].into(), 0).into())?;
        socket.connect_timeout(&self.process.address.into(), Duration::from_secs(5))?;
        Ok(socket)
    }

    fn measure(&self, attack: Option<Attack>, time: Duration) -> Measured {
        let is_over = AtomicBool::new(false);
        let hello = self.hello();
        std::thread::scope(|scope| {
            let mut open: Vec<_> = (0..CALLERS).map(|_| self.connect().unwrap()).collect();
            for stream in &mut open {
                self.hit(stream).unwrap();
            }
            if let Some(attack) = attack {
                for _ in 0..ATTACKERS {
                    let hello = &hello;
                    let is_over = &is_over;
                    scope.spawn(move || self.attack(attack, hello, is_over));
                }
            }
            let times = |interval| every(interval).take_while(|_| !is_over.load(Ordering::Relaxed));
            let mut callers = Vec::new();
            for mut stream in open {
                let times = times(HIT_INTERVAL);
                callers.push(scope.spawn(move || Latencies::at(times, || self.hit(&mut stream))));
            }
            let times = times(CONNECT_INTERVAL);
            let connects =
                scope.spawn(move || Latencies::at(times, || self.hit(&mut self.connect()?)));
            std::thread::sleep(time);
            is_over.store(true, Ordering::Relaxed);
            let hits = callers.into_iter().map(|caller| caller.join().unwrap());
            Measured {
                hits: Latencies::sum(hits),
                connects: connects.join().unwrap(),
            }
        })
    }

    /// A `ClientHello` as a client sends it.
    fn hello(&self) -> Vec<u8> {
        let name = ServerName::try_from("localhost").unwrap();
        let mut session = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        let mut hello = Vec::new();
        session.write_tls(&mut hello).unwrap();
        hello
    }

    fn attack(&self, attack: Attack, hello: &[u8], is_over: &AtomicBool) {
        let mut kept = VecDeque::new();
        for due in every(HELLO_INTERVAL) {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let Ok(mut socket) = self.socket(attack.host) else {
                continue;
            };
            if socket.write_all(hello).is_ok() && !attack.closes {
                // Otherwise the ports of the address would all be in TIME_WAIT soon.
                socket.set_linger(Some(Duration::ZERO)).unwrap();
                kept.push_back(socket);
            }
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
    }
}

fn client(certificate: &CertificateDer<'_>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone().into_owned()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}
