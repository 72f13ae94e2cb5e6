//! CPU time and memory per request, as a multiple of a cached hit: finds requests that cost the gateway far more than
//! they cost the client.
//!
//! Against the real program over loopback. Only the program's own CPU time counts. `cargo bench --bench measure -- costs` is
//! small; `SCOREGATE_FULL=1` sends enough requests for reliable figures.

use std::{
    fs::read_to_string,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
};

use tempfile::TempDir;

use super::{gateway_process::GatewayProcess, generator::HttpResponse};

/// A request above this would allow amplification attacks.
const BOUND: f64 = 20.0;
/// Models in the response of the backend, a realistic number.
const MODELS: usize = 60;

pub fn run() {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let times = if is_full { 4_000 } else { 100 };
    let directory = TempDir::new().unwrap();
    let program = Program::start(directory.path());
    let hit = program.costs(&program.get("/api/v1/models"), times);
    let fresh = program.costs(&closing(&program.get("/api/v1/models")), times / 4);
    println!(
        "processor time of a request, {times} of each kind; a cached hit is {:.1} us",
        hit * 1e6
    );
    println!(
        "{:<52} {:>8} {:>9} {:>9} {:>12}",
        "request", "bytes", "us", "to a hit", "per byte sent"
    );
    let mut worst: Vec<(f64, &str)> = Vec::new();
    for (name, request) in program.requests() {
        // If the response closes the connection, the next request opens a new one.
        let cost = program.costs(&request, times / 4);
        let ratio = cost / hit;
        let bytes = request.len();
        let per_byte = ratio / (bytes as f64 / program.get("/api/v1/models").len() as f64);
        println!(
            "{name:<52} {bytes:>8} {:>9.1} {ratio:>9.2} {per_byte:>12.2}",
            cost * 1e6
        );
        worst.push((ratio, name));
    }
    println!(
        "{:<52} {:>8} {:>9.1} {:>9.2}",
        "a hit on a connection of its own",
        "",
        fresh * 1e6,
        fresh / hit
    );
    let documents = if is_full { 400 } else { 60 };
    let miss = program.misses(documents);
    println!(
        "{:<52} {:>8} {:>9.1} {:>9.2}",
        "a miss: once an hour for each document, paid keys",
        "",
        miss * 1e6,
        miss / hit
    );
    worst.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    for (ratio, name) in worst.iter().take(3) {
        println!("among the three costliest: {name}, {ratio:.2} hits");
    }
    assert!(
        worst[0].0 < BOUND,
        "{} costs {:.1} hits",
        worst[0].1,
        worst[0].0
    );
    program.memory(if is_full { 1_000 } else { 100 });
}

/// The program in front of a backend.
struct Program(GatewayProcess);

impl Program {
    fn start(directory: &Path) -> Self {
        let settings = format!(
            "guard.per_minute = 100000000\nfreshness.probe = false\nproxies.trusted = [\"127.0.0.0/8\"]\n\
             server.max_connections_per_address = 10000\nserver.max_connections_per_application = 10000\n\
             upstream.url = \"http://{}/\"\n",
            backend()
        );
        Self(GatewayProcess::start(directory, &settings, &[]))
    }

    fn get(&self, target: &str) -> Vec<u8> {
        format!(
            "GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\n\r\n",
            self.0.key
        )
        .into_bytes()
    }

    fn with(&self, fields: &str) -> Vec<u8> {
        let key = &self.0.key;
        format!("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n{fields}\r\n\r\n")
            .into_bytes()
    }

    /// Requests of clients, with or without a key, that might cost more than expected.
    fn requests(&self) -> Vec<(&'static str, Vec<u8>)> {
        let long = |piece: &str, bytes: usize| piece.repeat(bytes / piece.len());
        let many: String = (0..60)
            .map(|number| format!("X-{number}: {number}\r\n"))
            .collect();
        let plain = |line: &str| format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
        vec![
            ("no key", plain("GET /api/v1/models")),
            (
                "a key that nobody has",
                self.get("/api/v1/models").iter().map(|b| if *b == b'_' { b'-' } else { *b }).collect(),
            ),
            (
                "16 KiB of key",
                format!("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\n\r\n", long("k", 15_000))
                    .into_bytes(),
            ),
            ("the API's description", plain("GET /openapi.json")),
            ("the docs page", plain("GET /docs")),
            ("OPTIONS", plain("OPTIONS /api/v1/models")),
            ("a method that is none", plain("BREW /api/v1/models")),
            ("/me", self.get("/api/v1/me")),
            ("a path that is none", self.get("/api/v1/nothing")),
            ("a malformed id", self.get("/api/v1/models/%ff%fe")),
            ("2 KiB of query", self.get(&format!("/api/v1/models?{}", long("a=%41&", 1_980)))),
            (
                "2 KiB of a parameter, encoded",
                self.get(&format!("/api/v1/models?period={}", long("%37", 1_980))),
            ),
            ("a target that is too long", self.get(&format!("/{}", long("x", 8_000)))),
            ("60 header fields", self.with(many.trim_end())),
            ("a head that is too large", self.with(&format!("X: {}", long("x", 20_000)))),
            ("15 KiB of If-None-Match", self.with(&format!("If-None-Match: {}", long("\"x\",", 15_000)))),
            (
                "15 KiB of Accept-Encoding",
                self.with(&format!("Accept-Encoding: {}", long("br;q=0.1,", 15_000))),
            ),
            ("15 KiB of Accept", self.with(&format!("Accept: {}", long("a/b;q=0.5,", 15_000)))),
            (
                "15 KiB of X-Forwarded-For through a proxy",
                self.with(&format!("X-Forwarded-For: {}", long("127.0.0.1,", 15_000))),
            ),
            (
                "an error in the problem format",
                format!(
                    "GET /x HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\nAccept: application/problem+json\r\n\r\n",
                    self.0.key
                )
                .into_bytes(),
            ),
            (
                "a body",
                format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{}", "123456789")
                    .into_bytes(),
            ),
            ("no HTTP at all", b"\x16\x03\x01\r\n\r\n".to_vec()),
        ]
    }

    /// CPU seconds per request.
    fn costs(&self, request: &[u8], times: usize) -> f64 {
        let mut stream = None;
        let mut ask = || {
            let mut open = stream
                .take()
                .unwrap_or_else(|| TcpStream::connect(self.0.address).unwrap());
            open.write_all(request).unwrap();
            if answered(&mut open) {
                stream = Some(open);
            }
        };
        ask();
        let before = self.0.cpu_seconds();
        for _ in 0..times {
            ask();
        }
        (self.0.cpu_seconds() - before) / times as f64
    }

    /// CPU seconds per document that was never requested before.
    fn misses(&self, documents: usize) -> f64 {
        let before = self.0.cpu_seconds();
        let periods = ["latest", "24h", "7d", "1m"];
        for number in 0..documents {
            let target = format!(
                "/api/v1/incidents?limit={}&period={}",
                1 + number % 100,
                periods[number / 100]
            );
            let mut open = TcpStream::connect(self.0.address).unwrap();
            open.write_all(&self.get(&target)).unwrap();
            answered(&mut open);
        }
        (self.0.cpu_seconds() - before) / documents as f64
    }

    /// Resident memory per open connection, by its use.
    fn memory(&self, connections: usize) {
        println!("\nresident memory of a connection that is held, {connections} of each kind");
        let hit = self.get("/api/v1/models");
        let half = self.with(&format!("X: {}", "x".repeat(15_000)));
        let kinds: [(&str, &[u8], bool); 4] = [
            ("one that sent nothing", b"", false),
            ("one that had a hit", &hit, true),
            (
                "one with 15 KiB of a head that goes on",
                &half[..half.len() - 4],
                false,
            ),
            (
                "one with 31 KiB of a head that goes on",
                &[&half[..half.len() - 4], &half[200..half.len() - 4]].concat(),
                false,
            ),
        ];
        let mut of_hit = None;
        for (name, bytes, waits) in kinds {
            let before = self.resident();
            let held: Vec<TcpStream> = (0..connections)
                .map(|_| {
                    let mut open = TcpStream::connect(self.0.address).unwrap();
                    open.write_all(bytes).unwrap();
                    if waits {
                        answered(&mut open);
                    }
                    open
                })
                .collect();
            // The last bytes sent have been read once another request is answered.
            self.costs(&hit, 20);
            let each = (self.resident().saturating_sub(before)) as f64 / connections as f64;
            println!("{name:<52} {:>9.1} KiB", each / 1_024.0);
            if waits {
                of_hit = Some(each);
            }
            if let Some(of_hit) = of_hit.filter(|of_hit| *of_hit > 0.0 && connections >= 1_000) {
                assert!(each / of_hit < BOUND, "{name}: {each} bytes");
            }
            drop(held);
        }
    }

    fn resident(&self) -> u64 {
        let status = read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
    }
}

fn closing(request: &[u8]) -> Vec<u8> {
    [&request[..request.len() - 2], b"Connection: close\r\n\r\n"].concat()
}

/// Reads a response; returns whether the connection stays open.
fn answered(open: &mut TcpStream) -> bool {
    HttpResponse::read(open).is_ok_and(|response| {
        response.field("connection") != Some("close") && response.field("x-request-id").is_some()
    })
}

/// A backend with one response, a list of models.
fn backend() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut items = String::new();
    for number in 0..MODELS {
        items.push_str(&format!(
            "{}{{\"id\":\"model-{number}\",\"name\":\"Model {number}\",\"provider\":\"p{number}\",\"currentScore\":{number}.25,\
             \"trend\":\"up\",\"status\":\"good\",\"lastUpdated\":\"2026-11-21T12:00:00Z\"}}",
            if number == 0 { "" } else { "," }
        ));
    }
    let body = format!(
        "{{\"success\":true,\"generated_at\":\"2026-11-21T12:00:00Z\",\"data\":[{items}]}}"
    );
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let answer = answer.clone();
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while let Some(Ok(line)) = lines.next() {
                    if line.is_empty() && stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}
