//! The job of all contestants: callers, documents, limits, and the expected responses.

use std::{cell::Cell, fmt::Write as _, path::Path};

use scoregate_base::keys::{Digest, KeyForm};

use crate::{answer::Answer, transport::Transport};

/// Requests per minute of each application: counted by all contestants, reached by no caller.
pub const MINUTE: u32 = 1_000_000;
/// The same per day.
pub const DAY: u32 = 100_000_000;
/// The requested document.
pub const TARGET: &str = "/api/v1/models?period=24h";
/// Default number of applications, each with its own key.
pub const APPLICATIONS: usize = 100;

/// Known keys, an unknown key, and a key whose minute is used up after the first request.
pub struct Keys {
    known: Vec<String>,
    unknown: String,
    spent: String,
}

impl Keys {
    /// Creates keys.
    pub fn mint(count: usize) -> Self {
        let form = KeyForm::new("sg_live", false);
        let mint = || form.mint().unwrap().expose().to_owned();
        Self {
            known: (0..count).map(|_| mint()).collect(),
            unknown: mint(),
            spent: mint(),
        }
    }

    /// Input for `scoregate keys import`.
    pub fn csv(&self) -> String {
        let mut text = "sha256,name,tier\n".to_owned();
        for (number, key) in self.known.iter().enumerate() {
            writeln!(text, "{},application {number},load", Digest::of(key)).unwrap();
        }
        writeln!(text, "{},of a spent minute,spent", Digest::of(&self.spent)).unwrap();
        text
    }

    /// Writes files for the peers: `KEY APPLICATION` lines, and the same as an nginx `map`.
    pub fn write(&self, directory: &Path) {
        let mut plain = String::new();
        let mut nginx = String::new();
        for (number, key) in self.known.iter().enumerate() {
            writeln!(plain, "{key} app{number}").unwrap();
            writeln!(nginx, "\"{key}\" app{number};").unwrap();
        }
        std::fs::write(directory.join("keys.txt"), plain).unwrap();
        std::fs::write(directory.join("keys.nginx"), nginx).unwrap();
    }

    /// All known keys as one pattern.
    pub fn pattern(&self) -> String {
        self.known.join("|")
    }

    /// All known keys as Envoy's `credentials`.
    pub fn credentials(&self) -> String {
        let mut text = String::new();
        for (number, key) in self.known.iter().enumerate() {
            write!(text, "{{key: {key}, client: app{number}}}, ").unwrap();
        }
        text
    }

    /// Each key in turn requests the document.
    pub fn hits(&self) -> Job {
        Job::new(
            self.known
                .iter()
                .map(|key| request(TARGET, key, ""))
                .collect(),
            200,
        )
    }

    /// The keys in turn request one of several documents.
    pub fn details(&self, documents: usize) -> Job {
        let asked = (0..documents).zip(self.known.iter().cycle());
        let ask = |(number, key): (usize, &String)| {
            request(
                &format!("/api/v1/models/{}?period=24h", model(number)),
                key,
                "",
            )
        };
        Job::new(asked.map(ask).collect(), 200)
    }

    /// The same, as conditional requests.
    pub fn unchanged(&self, held: &Answer) -> Job {
        let field = format!("If-None-Match: {}\r\n", held.field("etag"));
        Job::new(
            self.known
                .iter()
                .map(|key| request(TARGET, key, &field))
                .collect(),
            304,
        )
    }

    /// Requests with a well-formed unknown key.
    pub fn refused(&self) -> Job {
        Job::new(vec![request(TARGET, &self.unknown, "")], 401)
    }

    /// Requests of a caller above its limit.
    pub fn limited(&self) -> Job {
        Job::new(vec![request(TARGET, &self.spent, "")], 429)
    }
}

/// The id of a model.
pub fn model(number: usize) -> String {
    format!("model-{number:06}")
}

fn request(target: &str, key: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: api.example\r\nX-API-Key: {key}\r\n{fields}\r\n")
        .into_bytes()
}

/// Requests in turn, and the expected status.
#[derive(Clone, Default)]
pub struct Job {
    /// Sent one after another, repeatedly.
    pub requests: Vec<Vec<u8>>,
    /// The expected status.
    pub status: u16,
    /// Their transport.
    pub transport: Transport,
    /// Index of the next request, shared by all connections.
    next: Cell<usize>,
}

impl Job {
    fn new(requests: Vec<Vec<u8>>, status: u16) -> Self {
        Self {
            requests,
            status,
            transport: Transport::Clear,
            next: Cell::new(0),
        }
    }

    /// The same over another transport.
    pub fn over(self, transport: Transport) -> Self {
        let requests = self
            .requests
            .into_iter()
            .map(|request| transport.request(request))
            .collect();
        Self {
            requests,
            transport,
            ..self
        }
    }

    /// The same in random order, always the same one.
    pub fn shuffled(mut self) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for place in (1..self.requests.len()).rev() {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            self.requests
                .swap(place, (state >> 33) as usize % (place + 1));
        }
        self
    }

    /// The next request.
    pub fn next(&self) -> &[u8] {
        let at = self.next.get();
        self.next.set(if at + 1 < self.requests.len() {
            at + 1
        } else {
            0
        });
        &self.requests[at]
    }
}
