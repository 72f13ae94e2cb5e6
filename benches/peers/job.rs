//! The job that all have to do: who asks, for what, within which limits, and what they have to get.
//! Not for: who does it (`contestants`).

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;

use scoregate::keys::{Digest, KeyForm};

use crate::answer::Answer;

/// Requests a minute that each application may make: counted by all, reached by nobody.
pub(crate) const MINUTE: u32 = 1_000_000;
/// The same for a day.
pub(crate) const DAY: u32 = 100_000_000;
/// The document that is asked for.
pub(crate) const TARGET: &str = "/api/v1/models?period=24h";
/// How many applications ask where nothing else is said, each by a key of its own.
pub(crate) const APPLICATIONS: usize = 100;

/// The keys that everybody knows, one that nobody does, and one whose minute is spent after the first request.
pub(crate) struct Keys {
    known: Vec<String>,
    unknown: String,
    spent: String,
}

impl Keys {
    /// So many new ones.
    pub(crate) fn mint(count: usize) -> Self {
        let form = KeyForm::new("sg_live", false);
        let mint = || form.mint().unwrap().expose().to_owned();
        Self { known: (0..count).map(|_| mint()).collect(), unknown: mint(), spent: mint() }
    }

    /// Lines for `scoregate keys import`.
    pub(crate) fn csv(&self) -> String {
        let mut text = "sha256,name,tier\n".to_owned();
        for (number, key) in self.known.iter().enumerate() {
            writeln!(text, "{},application {number},load", Digest::of(key)).unwrap();
        }
        writeln!(text, "{},of a spent minute,spent", Digest::of(&self.spent)).unwrap();
        text
    }

    /// Writes what the peers read: `KEY APPLICATION` a line, and the same as nginx's `map` wants it.
    pub(crate) fn write(&self, directory: &Path) {
        let (mut plain, mut nginx) = (String::new(), String::new());
        for (number, key) in self.known.iter().enumerate() {
            writeln!(plain, "{key} app{number}").unwrap();
            writeln!(nginx, "\"{key}\" app{number};").unwrap();
        }
        std::fs::write(directory.join("keys.txt"), plain).unwrap();
        std::fs::write(directory.join("keys.nginx"), nginx).unwrap();
    }

    /// All that are known as one pattern.
    pub(crate) fn pattern(&self) -> String {
        self.known.join("|")
    }

    /// All that are known as Envoy's `credentials`.
    pub(crate) fn credentials(&self) -> String {
        let mut text = String::new();
        for (number, key) in self.known.iter().enumerate() {
            write!(text, "{{key: {key}, client: app{number}}}, ").unwrap();
        }
        text
    }

    /// Each key in turn asks for the document.
    pub(crate) fn hits(&self) -> Job {
        Job::new(self.known.iter().map(|key| request(TARGET, key, "")).collect(), 200)
    }

    /// The keys in turn ask for one of so many documents each.
    pub(crate) fn details(&self, documents: usize) -> Job {
        let asked = (0..documents).zip(self.known.iter().cycle());
        let ask = |(number, key): (usize, &String)| {
            request(&format!("/api/v1/models/{}?period=24h", model(number)), key, "")
        };
        Job::new(asked.map(ask).collect(), 200)
    }

    /// The same, by callers that have it already.
    pub(crate) fn unchanged(&self, held: &Answer) -> Job {
        let field = format!("If-None-Match: {}\r\n", held.field("etag"));
        Job::new(self.known.iter().map(|key| request(TARGET, key, &field)).collect(), 304)
    }

    /// A stranger with a well-formed key asks.
    pub(crate) fn refused(&self) -> Job {
        Job::new(vec![request(TARGET, &self.unknown, "")], 401)
    }

    /// Somebody asks who has asked too often already.
    pub(crate) fn limited(&self) -> Job {
        Job::new(vec![request(TARGET, &self.spent, "")], 429)
    }
}

/// What a model is called.
pub(crate) fn model(number: usize) -> String {
    format!("model-{number:06}")
}

fn request(target: &str, key: &str, fields: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: api.example\r\nX-API-Key: {key}\r\n{fields}\r\n").into_bytes()
}

/// Requests in turn, and the status that each has to get.
#[derive(Default)]
pub(crate) struct Job {
    /// What is sent, one after the other and again from the first.
    pub(crate) requests: Vec<Vec<u8>>,
    /// What is answered.
    pub(crate) status: u16,
    /// Where in them whoever asks is: who comes later goes on there.
    next: Cell<usize>,
}

impl Job {
    fn new(requests: Vec<Vec<u8>>, status: u16) -> Self {
        Self { requests, status, next: Cell::new(0) }
    }

    /// The same in no order. Each time the same one.
    pub(crate) fn shuffled(mut self) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for place in (1..self.requests.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.requests.swap(place, (state >> 33) as usize % (place + 1));
        }
        self
    }

    /// The next request.
    pub(crate) fn next(&self) -> &[u8] {
        let at = self.next.get();
        self.next.set(if at + 1 < self.requests.len() { at + 1 } else { 0 });
        &self.requests[at]
    }
}
