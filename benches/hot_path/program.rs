//! The measured program, on free loopback ports, with data and two keys: one without effective limits, and one whose
//! minute is used up after one request.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Another build of the program, if its path is among the arguments.
pub(crate) fn other_build() -> Option<PathBuf> {
    std::env::args().skip(1).find(|argument| argument.contains('/')).map(PathBuf::from)
}

/// The counted program.
pub(crate) fn program() -> PathBuf {
    other_build().unwrap_or_else(|| env!("CARGO_BIN_EXE_scoregate").into())
}

/// A kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Hit,
    NotModified,
    NoKey,
    Limited,
    Me,
}

/// All kinds. The hit is first: others are reported as multiples of it.
pub(crate) const KINDS: [Kind; 5] = [Kind::Hit, Kind::NotModified, Kind::NoKey, Kind::Limited, Kind::Me];

impl Kind {
    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::NotModified => "304",
            Self::NoKey => "401",
            Self::Limited => "429",
            Self::Me => "me",
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::Hit | Self::Me => "200",
            Self::NotModified | Self::NoKey | Self::Limited => self.word(),
        }
    }
}

/// A directory with settings, scored runs, and keys.
pub(crate) struct Installation {
    directory: TempDir,
    pub(crate) key: String,
    pub(crate) spent: String,
}

impl Installation {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let settings = format!(
            "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\nupstream = \"built-in\"\n\
             guard.per_minute = 100000000\nfreshness.probe = false\nserver.workers = 1\n\
             [tiers.load]\nminute = 1000000000\nday = 1000000000\npaid = true\n\
             [tiers.one]\nminute = 1\nday = 1000\npaid = true\n",
            directory.path().join("data").display()
        );
        std::fs::write(directory.path().join("scoregate.toml"), settings).unwrap();
        let installation = Self { directory, key: String::new(), spent: String::new() };
        installation.import();
        let (key, spent) = (installation.create("load"), installation.create("one"));
        Self { key, spent, ..installation }
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.directory.path().join("scoregate.toml")
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Imports runs of twenty models, for a list of realistic size.
    fn import(&self) {
        let now = jiff::Timestamp::now().as_second() / 3_600 * 3_600;
        let mut lines = String::new();
        let axes = ["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"];
        for model in 0..20 {
            for (minute, suite) in [(0, "coding"), (1, "reasoning"), (2, "tooling")] {
                let at = jiff::Timestamp::from_second(now - 3_600 + 60 * minute).unwrap();
                let score = 0.5 + 0.02 * f64::from(model);
                let scores: Vec<String> = axes.iter().map(|axis| format!("\"{axis}\":{score}")).collect();
                let trial =
                    format!("{{\"scores\":{{{}}},\"latencyMs\":900,\"cost\":0.01}}", scores.join(","));
                writeln!(
                    lines,
                    "{{\"id\":\"{model}-{suite}\",\"model\":{{\"id\":\"model-{model}\",\"name\":\"Model {model}\",\
                     \"provider\":\"meridian\",\"priceInput\":1.0,\"priceOutput\":4.0}},\"suite\":\"{suite}\",\
                     \"time\":\"{at}\",\"trials\":[{trial},{trial}]}}"
                )
                .unwrap();
            }
        }
        let file = self.directory.path().join("runs.jsonl");
        std::fs::write(&file, lines).unwrap();
        self.run(&["scoring", "import", file.to_str().unwrap()]);
    }

    fn create(&self, tier: &str) -> String {
        self.run(&["keys", "create", "--name", "bench", "--tier", tier]).trim().to_owned()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let settings = self.settings();
        let done = Command::new(program()).args(arguments).arg("--config").arg(settings).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }
}

/// The running program.
pub(crate) struct RunningProgram {
    child: Child,
    address: SocketAddr,
}

impl RunningProgram {
    /// Starts it by this command, to which the program's arguments are appended.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let line = lines.find(|line| line.contains("public=")).expect("it says where it serves");
        let address = line.split("public=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        std::thread::spawn(move || lines.count());
        Self { child, address }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection on which a kind of response is requested.
    pub(crate) fn repeated_request(&self, installation: &Installation, kind: Kind) -> RepeatedRequest {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut buffer = Vec::new();
        let tag = send(&mut stream, &request(&installation.key, "", Kind::Hit), &mut buffer, "200");
        let condition = format!("If-None-Match: {tag}\r\n");
        send(&mut stream, &request(&installation.spent, "", Kind::Hit), &mut buffer, "");
        // One character is changed, so the checksum is wrong.
        let wrong: String =
            installation.key.chars().rev().map(|c| if c == 'a' { 'b' } else { 'a' }).take(6).collect();
        let kept: String = installation.key.chars().take(installation.key.len() - 6).collect();
        let wrong = kept + &wrong;
        let request = match kind {
            Kind::Hit | Kind::Me => request(&installation.key, "", kind),
            Kind::NotModified => request(&installation.key, &condition, kind),
            Kind::NoKey => request(&wrong, "", kind),
            Kind::Limited => request(&installation.spent, "", kind),
        };
        RepeatedRequest { stream, request, buffer, status: kind.status() }
    }

    /// Stops it with SIGTERM.
    pub(crate) fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

/// A client that repeats a request.
pub(crate) struct RepeatedRequest {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
    status: &'static str,
}

impl RepeatedRequest {
    pub(crate) fn run(&mut self, times: usize) {
        for _ in 0..times {
            send(&mut self.stream, &self.request, &mut self.buffer, self.status);
        }
    }
}

fn request(key: &str, fields: &str, kind: Kind) -> Vec<u8> {
    let target = if kind == Kind::Me { "/api/v1/me" } else { "/api/v1/models?period=24h" };
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n{fields}\r\n").into_bytes()
}

/// Sends the request, reads the response, and returns its entity tag.
fn send(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>, status: &str) -> String {
    stream.write_all(request).unwrap();
    buffer.clear();
    let head = loop {
        let mut piece = [0; 16_384];
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the connection ended: {}", String::from_utf8_lossy(buffer));
        buffer.extend_from_slice(&piece[..read]);
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
    assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
    let field = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(known, _)| *known == name)
            .map(|(_, value)| value.to_owned())
            .next()
            .unwrap_or_default()
    };
    let length = if text.starts_with("HTTP/1.1 304") { 0 } else { field("content-length").parse().unwrap() };
    let mut rest = vec![0; head + length - buffer.len()];
    stream.read_exact(&mut rest).unwrap();
    field("etag")
}
