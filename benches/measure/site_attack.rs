//! Latency of cached hits while the account pages are attacked, compared with the same attack on a constant responder:
//! a process on the same machine that answers everything with the same bytes. So the ratio is the cost of what the gateway
//! does with the attack, without the cost of the attack itself.
//!
//! The attack comes from many networks, as far as the gateway can know: each request has another client address, from a
//! trusted proxy. Hits and attacks arrive at random times, independent of each other. `cargo bench --bench measure
//! -- site_attack` is small; `SCOREGATE_FULL=1` gives reliable figures.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    gateway_process::GatewayProcess,
    generator::{HttpResponse, Latencies},
};

/// Hits: connections, and requests per second on each.
const HIT_CONNECTIONS: u64 = 16;
const HITS_PER_SECOND: u64 = 50;
/// The attack: clients, and requests per second of each.
const ATTACKERS: u64 = 8;
const ATTACKS_PER_SECOND: u64 = 50;
/// The argument that makes this program the constant responder.
const SETTINGS: &str = "upstream = \"built-in\"\nproxies.trusted = [\"127.0.0.0/8\"]\nservice.base_url = \"http://127.0.0.1:8080\"\n\
    site.sign_up = true\nmail.server = \"127.0.0.1:1\"\nmail.tls = \"none\"\nmail.from = \"api@example.org\"\nlog.access = false\n";
const RESPONDER: &str = "constant-responder";
/// The bytes of the responder are as many as those of a page.
const PAGE: usize = 16 * 1_024;

pub fn run(arguments: &[String]) {
    if arguments.iter().any(|argument| argument == RESPONDER) {
        return respond();
    }
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let (rounds, time) = if is_full {
        (11, Duration::from_secs(10))
    } else {
        (3, Duration::from_millis(400))
    };
    let directory = TempDir::new().unwrap();
    let gateway = GatewayProcess::start(directory.path(), SETTINGS, &[]);
    let responder = Responder::start();
    let forms = Forms::of(gateway.address);
    let attack = ATTACKERS * ATTACKS_PER_SECOND;
    let calm = HIT_CONNECTIONS * HITS_PER_SECOND;
    println!(
        "{calm} hits a second, {attack} requests of an attack a second, {rounds} rounds of {time:?}"
    );
    println!(
        "{:>6} {:>14} {:>14} {:>14} {:>8}",
        "round", "quiet p99", "responder p99", "site p99", "ratio"
    );
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let quiet = measure(&gateway, None, &forms, time);
        let elsewhere = measure(&gateway, Some(responder.address), &forms, time);
        let site = measure(&gateway, Some(gateway.address), &forms, time);
        let [quiet, elsewhere, site] =
            [quiet, elsewhere, site].map(|latencies| latencies.quantile(0.99));
        let ratio = site.as_secs_f64() / elsewhere.as_secs_f64();
        println!("{round:>6} {quiet:>14.1?} {elsewhere:>14.1?} {site:>14.1?} {ratio:>8.2}");
        ratios.push(ratio);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    println!(
        "median ratio of the p99 of hits: {:.2}",
        ratios[ratios.len() / 2]
    );
    let answers: Vec<String> = forms
        .answers
        .iter()
        .map(|count| count.load(Ordering::Relaxed).to_string())
        .collect();
    println!(
        "answers to the attack on the site by status class 2xx to 5xx: {}",
        answers.join(" ")
    );
}

/// Latencies of hits, from the time when each was due, while an address is attacked.
fn measure(
    gateway: &GatewayProcess,
    attacked: Option<SocketAddr>,
    forms: &Forms,
    time: Duration,
) -> Latencies {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for attacker in 0..ATTACKERS {
            let is_over = &is_over;
            if let Some(address) = attacked {
                let counts = (address == gateway.address).then_some(&forms.answers);
                scope.spawn(move || attack(address, attacker, forms, counts, is_over));
            }
        }
        let callers: Vec<_> = (0..HIT_CONNECTIONS)
            .map(|caller| scope.spawn(move || hits(gateway, caller, time)))
            .collect();
        let all = Latencies::sum(callers.into_iter().map(|caller| caller.join().unwrap()));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(all.failed, 0, "a hit was cut off");
        all
    })
}

/// Random times of arrival: a Poisson process.
struct Arrivals {
    next: Instant,
    mean: Duration,
    state: u64,
}

impl Arrivals {
    fn new(per_second: u64, seed: u64) -> Self {
        let mean = Duration::from_secs(1) / u32::try_from(per_second).unwrap();
        Self {
            next: Instant::now(),
            mean,
            state: seed,
        }
    }
}

impl Iterator for Arrivals {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        // SplitMix64. Its upper half is a number between 0 and 1.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let upper = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap();
        let uniform = f64::from(upper) / 4_294_967_296.0;
        self.next += self.mean.mul_f64(-(1.0 - uniform).ln());
        Some(self.next)
    }
}

/// Sends hits on one connection. A late response delays the next request, and its latency counts from when it was due.
fn hits(gateway: &GatewayProcess, caller: u64, time: Duration) -> Latencies {
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_nodelay(true).unwrap();
    let request = format!(
        "GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\n\r\n",
        gateway.key
    )
    .into_bytes();
    let end = Instant::now() + time;
    let times = Arrivals::new(HITS_PER_SECOND, caller).take_while(|due| *due < end);
    Latencies::at(times, || {
        stream.write_all(&request)?;
        assert_eq!(HttpResponse::read(&mut stream)?.status, 200);
        Ok(())
    })
}

/// Sends requests of all kinds to the account pages, each from another network.
fn attack(
    address: SocketAddr,
    attacker: u64,
    forms: &Forms,
    counts: Option<&[AtomicU32; 4]>,
    is_over: &AtomicBool,
) {
    for (number, due) in (0_u64..).zip(Arrivals::new(
        ATTACKS_PER_SECOND,
        HIT_CONNECTIONS + attacker,
    )) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut stream) = TcpStream::connect(address) else {
            continue;
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let sent = stream.write_all(&forms.request(attacker + number));
        let response = sent.and_then(|()| HttpResponse::read(&mut stream));
        if let (Ok(response), Some(counts)) = (response, counts) {
            let class = usize::from(response.status / 100).clamp(2, 5);
            counts[class - 2].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Requests of the attack, with the cookie and the token that anybody gets.
struct Forms {
    cookie: String,
    csrf: String,
    /// Makes addresses and networks different.
    next: AtomicU64,
    /// Answers of the site by status class.
    answers: [AtomicU32; 4],
}

impl Forms {
    fn of(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /account/sign-in HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        let after = |begin: &str| {
            page.split_once(begin)
                .unwrap_or_else(|| panic!("{begin}: {page}"))
                .1
        };
        let cookie = after("set-cookie: ").split(';').next().unwrap().to_owned();
        let field = after("name=\"csrf\"");
        let csrf = field
            .split("value=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned();
        Self {
            cookie,
            csrf,
            next: AtomicU64::new(0),
            answers: Default::default(),
        }
    }

    /// One of four kinds: a sign-up, a guessed link, a guessed session, a form that is too large.
    fn request(&self, kind: u64) -> Vec<u8> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let network = std::net::Ipv4Addr::from_bits(
            0x0b00_0000 + u32::try_from(number % 0x00ff_ffff).unwrap(),
        );
        let guess = format!("{number:043}");
        let head = |line: String, more: &str| {
            format!("{line} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {network}\r\n{more}")
        };
        let form = |body: &str| {
            let kind = "Content-Type: application/x-www-form-urlencoded";
            let more = format!(
                "Cookie: {}\r\n{kind}\r\nContent-Length: {}\r\n\r\n{body}",
                self.cookie,
                body.len()
            );
            head("POST /account/sign-in".into(), &more)
        };
        match kind % 4 {
            0 => form(&format!(
                "csrf={}&email=robot{number}%40example.org",
                self.csrf
            )),
            1 => head(format!("GET /account/confirm?token={guess}"), "\r\n"),
            2 => head(
                "GET /account".into(),
                &format!("Cookie: scoregate-session={guess}\r\n\r\n"),
            ),
            _ => form(&"x".repeat(9_000)),
        }
        .into_bytes()
    }
}

/// The constant responder, a process of its own.
struct Responder {
    child: Child,
    address: SocketAddr,
}

impl Responder {
    fn start() -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command
            .args(["site_attack", RESPONDER])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            address: line.trim().parse().unwrap(),
            child,
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Answers every connection with the same bytes, whatever it sends.
fn respond() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE}\r\nConnection: close\r\n\r\n");
    let response = [head.as_bytes(), &vec![b'x'; PAGE]].concat();
    let mut chunk = [0; 16 * 1_024];
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { continue };
        // A client that is gone is no failure of the responder.
        let _answered = stream
            .read(&mut chunk)
            .and_then(|_| stream.write_all(&response));
    }
}
