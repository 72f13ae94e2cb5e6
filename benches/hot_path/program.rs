//! The measured program and the requests that are counted.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use super::installation::Installation;

/// Another build of the program, if its path is among the arguments.
pub fn other_build() -> Option<PathBuf> {
    std::env::args()
        .skip(1)
        .find(|argument| argument.contains('/'))
        .map(PathBuf::from)
}

/// Whether another build is compared with the recorded values.
pub fn is_guarded() -> bool {
    other_build().is_none() || std::env::args().any(|argument| argument == "--guard")
}

/// The counted program.
pub fn program() -> PathBuf {
    other_build().unwrap_or_else(|| env!("CARGO_BIN_EXE_scoregate").into())
}

/// A kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Hit,
    NotModified,
    NoKey,
    Limited,
    Me,
    /// A call of a tool, for the document of a hit.
    Call,
}

/// All kinds. The hit is first: others are reported as multiples of it.
pub const KINDS: [Kind; 6] = [
    Kind::Hit,
    Kind::NotModified,
    Kind::NoKey,
    Kind::Limited,
    Kind::Me,
    Kind::Call,
];

impl Kind {
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::NotModified => "304",
            Self::NoKey => "401",
            Self::Limited => "429",
            Self::Me => "me",
            Self::Call => "mcp",
        }
    }

    fn status(self) -> &'static str {
        match self {
            Self::Hit | Self::Me | Self::Call => "200",
            Self::NotModified | Self::NoKey | Self::Limited => self.word(),
        }
    }
}

/// The running program.
pub struct RunningProgram {
    child: Child,
    address: SocketAddr,
}

impl RunningProgram {
    /// Starts it by this command, to which the program's arguments are appended.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let line = lines
            .find(|line| line.contains("public="))
            .expect("it says where it serves");
        let address = line
            .split("public=")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        std::thread::spawn(move || lines.count());
        Self { child, address }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A connection on which a kind of response is requested.
    pub fn repeated_request(&self, installation: &Installation, kind: Kind) -> RepeatedRequest {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut buffer = Vec::new();
        let tag = send(
            &mut stream,
            &request(&installation.key, "", Kind::Hit),
            &mut buffer,
            "200",
        );
        let condition = format!("If-None-Match: {tag}\r\n");
        send(
            &mut stream,
            &request(&installation.spent, "", Kind::Hit),
            &mut buffer,
            "",
        );
        // One character is changed, so the checksum is wrong.
        let wrong: String = installation
            .key
            .chars()
            .rev()
            .map(|c| if c == 'a' { 'b' } else { 'a' })
            .take(6)
            .collect();
        let kept: String = installation
            .key
            .chars()
            .take(installation.key.len() - 6)
            .collect();
        let wrong = kept + &wrong;
        let request = match kind {
            Kind::Hit | Kind::Me => request(&installation.key, "", kind),
            Kind::NotModified => request(&installation.key, &condition, kind),
            Kind::NoKey => request(&wrong, "", kind),
            Kind::Limited => request(&installation.spent, "", kind),
            Kind::Call => call(&installation.key),
        };
        RepeatedRequest {
            stream,
            request,
            buffer,
            status: kind.status(),
        }
    }

    /// Stops it with SIGTERM.
    pub fn stop(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap();
    }
}

/// A client that repeats a request.
pub struct RepeatedRequest {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
    status: &'static str,
}

impl RepeatedRequest {
    pub fn run(&mut self, times: usize) {
        for _ in 0..times {
            send(
                &mut self.stream,
                &self.request,
                &mut self.buffer,
                self.status,
            );
        }
    }
}

fn request(key: &str, fields: &str, kind: Kind) -> Vec<u8> {
    let target = if kind == Kind::Me {
        "/api/v1/me"
    } else {
        "/api/v1/models?period=24h"
    };
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\n{fields}\r\n")
        .into_bytes()
}

/// A call of the tool of [`request`]'s document.
fn call(key: &str) -> Vec<u8> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_models","arguments":{"period":"24h"}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Type: application/json\r\n"
    );
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Sends the request, reads the response, and returns its entity tag.
fn send(stream: &mut TcpStream, request: &[u8], buffer: &mut Vec<u8>, status: &str) -> String {
    stream.write_all(request).unwrap();
    buffer.clear();
    let head = loop {
        let mut piece = [0; 16_384];
        let read = stream.read(&mut piece).unwrap();
        assert!(
            read > 0,
            "the connection ended: {}",
            String::from_utf8_lossy(buffer)
        );
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
    let length = if text.starts_with("HTTP/1.1 304") {
        0
    } else {
        field("content-length").parse().unwrap()
    };
    let mut rest = vec![0; head + length - buffer.len()];
    stream.read_exact(&mut rest).unwrap();
    field("etag")
}
