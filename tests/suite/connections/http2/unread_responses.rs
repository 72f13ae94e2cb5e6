//! Clients that send many requests and open no window: how many connection slots they hold, for how long, and how much
//! memory they use.

#![expect(clippy::print_stdout, reason = "the tests print their figures")]

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    future::join_all,
    stream::{self, StreamExt as _},
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use scoregate_base::clock::{Clock, Mono};
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsConnector;

use super::{GOAWAY, HEADERS, PREFACE, SETTINGS, Wire, frame, get, request};
use crate::{
    client::Connection,
    connections::slow_clients::{self, Part},
    full_runs::is_full_size,
    program::{BUILT_IN, Program},
    world::{World, good},
};

const INITIAL_WINDOW: u16 = 4;
const SECOND: Duration = Duration::from_secs(1);
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const MEGABYTE: u64 = 1 << 20;
/// Number of HTTP/2 connections without a response whose codecs fit into their memory budget.
const CODECS: u32 = 12 * 1_024 / 28;

/// This many requests for the largest page.
fn requests(streams: u32) -> Vec<u8> {
    (0..streams)
        .flat_map(|of| request(2 * of + 1, &get("/openapi.json", &[])))
        .collect()
}

/// A connection with a window of zero and this many requests on it.
async fn unread(world: &World, streams: u32) -> Wire {
    let mut connection = Wire::open_with(world.address(), &[(INITIAL_WINDOW, 0)]).await;
    connection.send(&requests(streams)).await;
    connection
}

#[tokio::test]
async fn http2_seventy_clients_that_read_nothing_do_not_exhaust_64_connection_slots() {
    let world = World::with("server.max_connections = 64", good).await;
    let mut attackers = Vec::new();
    for _ in 0..70 {
        attackers.push(unread(&world, 24).await);
    }
    // Only clients with a slot get responses.
    for attacker in &mut attackers[..64] {
        attacker.find(HEADERS).await;
    }
    world.pass(SECOND);
    let probe = async {
        let mut connection = world.connect().await;
        connection.write(HEALTH).await;
        connection.read(false).await.unwrap().status
    };
    // The clock does not advance, so no timeout is needed for the callers to be served.
    assert_eq!(probe.await, 200);
    let key = world.customer("pro").await.key;
    assert_eq!(world.get_by(&key, "/api/v1/models").await.status, 200);
    assert!(world.ended("displaced").await >= 7);
    assert_eq!(world.ended("write_timeout").await, 0);
}

#[tokio::test]
async fn http2_after_repeated_refusals_a_client_without_a_key_gets_a_goaway_and_has_the_write_timeout()
 {
    let world = World::with("", good).await;
    let mut connection = unread(&world, 100).await;
    connection.find(GOAWAY).await;
    world.pass(20 * SECOND);
    while connection.read().await.is_some() {}
    assert_eq!(world.ended("write_timeout").await, 1);
}

#[tokio::test]
async fn http2_connections_without_a_response_are_closed_for_a_client_of_another_network() {
    let world = World::with("", good).await;
    let target = AttackTarget {
        address: world.address(),
        tls: None,
    };
    let served = world.http2_client().await;
    assert_eq!(world.over(&served, "GET", "/docs", &[]).await.status, 200);
    let opening = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    let silent = target
        .open_all(0..CODECS + 100, &opening, |stream, _| stream)
        .await;
    let new = world.http2_client().await;
    assert_eq!(world.over(&new, "GET", "/docs", &[]).await.status, 200);
    assert_eq!(world.over(&served, "GET", "/docs", &[]).await.status, 200);
    let closed = world.ended("displaced").await + world.ended("address_limit").await;
    assert!(closed >= 100, "{closed}");
    drop(silent);
}

/// A connection with or without TLS.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// The address under attack.
#[derive(Clone)]
pub struct AttackTarget {
    pub address: SocketAddr,
    /// The TLS connector, if TLS is used.
    pub tls: Option<TlsConnector>,
}

impl AttackTarget {
    /// Opens a connection from another loopback address.
    pub async fn open(&self, number: u32) -> io::Result<Box<dyn Stream>> {
        let [.., low] = (number % 200 + 1).to_be_bytes();
        let [.., high] = (number / 200 + 2).to_be_bytes();
        self.open_from(IpAddr::V4(Ipv4Addr::new(127, 0, high, low)))
            .await
    }

    /// Opens a connection from a loopback address.
    pub async fn open_from(&self, address: IpAddr) -> io::Result<Box<dyn Stream>> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(address, 0))?;
        let stream = socket.connect(self.address).await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        Ok(Box::new(
            tls.connect(ServerName::try_from("localhost").unwrap(), stream)
                .await?,
        ))
    }

    /// Opens a connection from each of these addresses, 32 of them concurrently, and sends `opening`: the gateway
    /// refuses handshakes from a network with too many pending ones. Returns the results of `opened`, which is called
    /// with each connection and the time when it was opened.
    pub async fn open_all<T>(
        &self,
        numbers: impl Iterator<Item = u32>,
        opening: &[u8],
        opened: impl Fn(Box<dyn Stream>, Mono) -> T,
    ) -> Vec<T> {
        let clock = Clock::system();
        let open = numbers.map(async |number| {
            let mut stream = self.open(number).await.unwrap();
            let opened_at = clock.mono();
            drop(stream.write_all(opening).await);
            drop(stream.flush().await);
            opened(stream, opened_at)
        });
        stream::iter(open).buffer_unordered(32).collect().await
    }

    /// The TLS connector for HTTP/1.1.
    pub fn tls_of_http1(&self) -> Option<TlsConnector> {
        let mut config = self.tls.as_ref()?.config().as_ref().clone();
        config.alpn_protocols.clear();
        Some(TlsConnector::from(Arc::new(config)))
    }

    /// Duration of a probe, from its connection to its response.
    pub async fn probe(&self, clock: &Clock) -> Duration {
        let start = clock.mono();
        let stream = TcpStream::connect(self.address).await.unwrap();
        if let Some(tls) = self.tls_of_http1() {
            let stream = tls
                .connect(ServerName::try_from("localhost").unwrap(), stream)
                .await
                .unwrap();
            answered(Connection::over(stream)).await;
        } else {
            answered(Connection::over(stream)).await;
        }
        clock.mono().since(start)
    }
}

async fn answered<S: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<S>) {
    connection.write(HEALTH).await;
    assert_eq!(
        connection.read(false).await.expect("a response").status,
        200
    );
}

/// Creates certificate and key in a directory, and an HTTP/2 client that trusts them.
fn certified(directory: &Path) -> TlsConnector {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("a.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("a.key"), made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(made.cert.der().to_vec()))
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// The real program with this many connection slots, with or without TLS.
pub fn program(directory: &Path, slots: u32, is_secure: bool) -> (Program, AttackTarget) {
    program_with(directory, slots, is_secure, "")
}

/// Like `program`, with more settings.
pub fn program_with(
    directory: &Path,
    slots: u32,
    is_secure: bool,
    more: &str,
) -> (Program, AttackTarget) {
    let tls = is_secure.then(|| certified(directory));
    let mut settings = format!(
        "data_dir = \"{}\"\nupstream = \"built-in\"\n",
        directory.join("state").display()
    );
    settings += "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\n";
    settings += &format!("server.max_connections = {slots}\n{more}");
    if is_secure {
        let [pem, key] = ["a.pem", "a.key"].map(|name| directory.join(name).display().to_string());
        settings += &format!("[tls.default]\ncertificate = \"{pem}\"\nkey = \"{key}\"\n");
    }
    let file = directory.join("scoregate.toml");
    std::fs::write(&file, settings).unwrap();
    let program = Program::start(
        &["serve", "--config", &file.display().to_string()],
        &BUILT_IN[..0],
    );
    let attacked = AttackTarget {
        address: program.public(),
        tls,
    };
    (program, attacked)
}

/// The first bytes of a connection that requests a hundred large pages and opens no window.
fn without_window() -> Vec<u8> {
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    [PREFACE, &no_window, &requests(100)].concat()
}

/// Opens this many connections, each of which requests a hundred large pages and reads none. Each task returns how long
/// its connection lasted.
async fn attack(attacked: &AttackTarget, connections: u32) -> Vec<JoinHandle<Duration>> {
    let stay = |mut stream: Box<dyn Stream>, opened_at: Mono| {
        tokio::spawn(async move {
            let mut chunk = [0; 4_096];
            while !matches!(stream.read(&mut chunk).await, Ok(0) | Err(_)) {}
            Clock::system().mono().since(opened_at)
        })
    };
    let numbers = 0..connections;
    attacked.open_all(numbers, &without_window(), stay).await
}

/// Duration of the longest connection of an attack.
async fn longest(attack: Vec<JoinHandle<Duration>>) -> Duration {
    join_all(attack)
        .await
        .into_iter()
        .map(Result::unwrap)
        .max()
        .unwrap()
}

/// Limit of memory per connection of this attack: a hundred megabytes for 800. A release build needs
/// 49 kB on TCP.
const MOST_HELD: u64 = 128 << 10;

/// The memory used by this many clients that request a hundred large pages each and read nothing.
async fn check_memory(clients: u32, is_secure: bool) {
    let directory = TempDir::new().unwrap();
    let (program, attacked) = program(directory.path(), 10_000, is_secure);
    let before = program.resident();
    let clock = Clock::system();
    let attack = attack(&attacked, clients).await;
    // By then the requests on all connections have been processed, and no connection has been closed.
    clock.sleep(10 * SECOND).await;
    let during = program.resident();
    let longest = longest(attack).await;
    let peak = program.most_resident();
    let ended_at = clock.mono();
    let mut after = program.resident();
    while after > before + 16 * MEGABYTE && clock.mono().since(ended_at) < 60 * SECOND {
        clock.sleep(SECOND / 2).await;
        after = program.resident();
    }
    let each = |memory: u64| memory.saturating_sub(before) / u64::from(clients);
    let [before_mb, during_mb, peak_mb, after_mb] =
        [before, during, peak, after].map(|bytes| bytes >> 20);
    let transport = if is_secure { "TLS" } else { "TCP" };
    let row = format!(
        "| {transport} | {clients} × 100 | {before_mb} MB | {during_mb} MB | {peak_mb} MB | {after_mb} MB | {} kB | {} kB | {:.1} s |",
        each(during) >> 10,
        each(peak) >> 10,
        longest.as_secs_f64()
    );
    println!("{row}");
    slow_clients::record(Part::Memory, row);
    assert!(
        peak < before + 100 * MEGABYTE,
        "{before} bytes before, peak {peak}"
    );
    assert!(
        each(during) <= MOST_HELD,
        "{} bytes for each of {clients}",
        each(during)
    );
    assert!(
        after <= before + 16 * MEGABYTE,
        "{before} bytes before, and {after} a minute after"
    );
    assert_eq!(program.stop().code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_eight_hundred_clients_that_read_nothing_cost_little_memory_and_return_it() {
    check_memory(800, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_clients_that_read_nothing_over_tls_cost_little_memory() {
    check_memory(if is_full_size() { 800 } else { 200 }, true).await;
}
