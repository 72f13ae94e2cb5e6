//! Load clients that survive the program under test: each counts delivered and unanswered requests. Threads with
//! plain sockets, since the server is killed. The content of responses is checked in `client`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pollster::block_on as wait;
use scoregate::clock::Clock;
use scoregate::keys::{ApplicationId, Digest, KeyForm, shown_prefix};
use scoregate::store::{ChangeKind, Embedded, KeyStore as _, OwnLimits, StoreChange, StoredKey};

/// The requested target: small, and available to every tier.
pub const TARGET: &str = "/api/v1/index";
/// More than any test requests in a minute.
const UNREACHABLE_MINUTE_LIMIT: u32 = 4_000_000;
/// Concurrent changes to the store.
const AT_ONCE: u32 = 1_000;

/// An application whose minute limit is never reached.
#[derive(Clone, Debug)]
pub struct LoadClient {
    pub id: ApplicationId,
    pub key: String,
    /// The daily quota.
    pub quota: u32,
}

impl LoadClient {
    /// The maximum size of a lease when this many units are left.
    pub fn lease(&self, left: u32) -> u32 {
        (self.quota / 100).min(left / 4).max(1)
    }
}

/// Creates an application for each tier and daily quota in the store of a stopped program.
pub fn prepare(directory: &Path, wanted: &[(&str, u32)]) -> Vec<LoadClient> {
    let store = Embedded::open(directory).unwrap();
    let made = wanted.iter().map(|(tier, quota)| {
        let (key, change) = creation(tier, Some(*quota));
        LoadClient { id: wait(store.change(change)).unwrap().id, key, quota: *quota }
    });
    made.collect()
}

/// Creates this many applications that send no requests.
pub fn prepare_idle_applications(directory: &Path, count: u32) {
    let store = Embedded::open(directory).unwrap();
    for start in (0..count).step_by(AT_ONCE as usize) {
        let changes = (start..count.min(start + AT_ONCE)).map(|_| store.change(creation("pro", None).1));
        wait(futures_util::future::try_join_all(changes)).unwrap();
    }
}

fn creation(tier: &str, day: Option<u32>) -> (String, StoreChange) {
    let at = Clock::system().now().wall;
    let secret = KeyForm::new("sg_live", false).mint().unwrap();
    let key = StoredKey {
        digest: Digest::of(secret.expose()),
        shown: shown_prefix(secret.expose()).to_owned(),
        created_at: at,
        expires_at: None,
        revoked_at: None,
        name: None,
        last_used_at: None,
    };
    let what = ChangeKind::Create {
        name: format!("a {tier} application"),
        tier: tier.into(),
        own: OwnLimits { minute: Some(UNREACHABLE_MINUTE_LIMIT), day },
        url: None,
        contact: None,
        note: None,
        key,
        owner: None,
    };
    let change = StoreChange {
        at,
        who: "test".into(),
        owner: None,
        application: ApplicationId::mint().unwrap(),
        what,
    };
    (secret.expose().to_owned(), change)
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A complete response.
    Response {
        status: u16,
        /// The remaining allowance that it reports.
        remaining: Option<u32>,
        body: String,
    },
    /// The connection ended before the first byte of a response.
    NoResponse,
    /// The connection ended within a response.
    Partial,
}

impl Reply {
    /// The status and the error code of a response.
    pub fn status_and_code(&self) -> (u16, String) {
        let Self::Response { status, body, .. } = self else { panic!("no answer: {self:?}") };
        let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        (*status, body["code"].as_str().unwrap_or_default().to_owned())
    }
}

pub struct Wire(BufReader<TcpStream>);

impl Wire {
    /// Opens one; none if the connection is refused.
    pub fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self(BufReader::new(stream)))
    }

    /// Opens one with this read timeout.
    pub fn open_with_timeout(address: SocketAddr, timeout: Duration) -> Option<Self> {
        let connection = Self::open(address)?;
        connection.0.get_ref().set_read_timeout(Some(timeout)).ok()?;
        Some(connection)
    }

    /// Sends a request and reads the response to its end.
    pub fn get(&mut self, target: &str, key: &str) -> Reply {
        self.send(target, &format!("X-API-Key: {key}\r\n"))
    }

    /// Sends a request with these header lines and reads the response to its end.
    pub fn send(&mut self, target: &str, lines: &str) -> Reply {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
        if self.0.get_mut().write_all(request.as_bytes()).is_err() {
            return Reply::NoResponse;
        }
        let mut first = String::new();
        match self.0.read_line(&mut first) {
            Ok(0) | Err(_) if first.is_empty() => Reply::NoResponse,
            Ok(_) | Err(_) => self.rest(&first).unwrap_or(Reply::Partial),
        }
    }

    fn rest(&mut self, first: &str) -> Option<Reply> {
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let (mut length, mut remaining) = (0, None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "x-ratelimit-remaining" => remaining = value.parse().ok(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).ok()?;
        Some(Reply::Response { status, remaining, body: String::from_utf8(body).ok()? })
    }
}

/// The remaining daily quota of a load client, by `/me`.
pub fn remaining(address: SocketAddr, load_client: &LoadClient) -> u32 {
    match Wire::open(address).map(|mut connection| connection.get("/api/v1/me", &load_client.key)) {
        Some(Reply::Response { status: 200, remaining: Some(left), .. }) => left,
        other => panic!("/me of {}: {other:?}", load_client.id),
    }
}

/// Requests of a load client during one run of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete responses with status 200.
    pub delivered: u32,
    /// Requests without a response.
    pub unanswered: u32,
    /// Truncated responses.
    pub broken: u32,
}

impl Tally {
    /// Requests that may or may not have been delivered.
    pub fn unconfirmed(self) -> u32 {
        self.unanswered + self.broken
    }
}

/// A group of callers of one load client.
#[derive(Clone, Copy, Debug)]
pub struct CallerGroup<'p> {
    pub load_client: &'p LoadClient,
    /// Number of connections.
    pub callers: u32,
    /// Maximum number of requests per connection.
    pub most: u32,
    /// Whether each request uses a new connection.
    pub reconnects: bool,
}

/// Runs all groups until they finish, until their quota is spent or until the program ends, and calls `at` after
/// `moment` answered requests. Returns a tally for each group, and whether that moment was reached.
pub fn run_load(
    address: SocketAddr,
    groups: &[CallerGroup<'_>],
    moment: u32,
    at: impl FnOnce(),
) -> (Vec<Tally>, bool) {
    let answered = AtomicU32::new(0);
    let (reached, moments) = channel();
    std::thread::scope(|scope| {
        let mut callers = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            for _ in 0..group.callers {
                let (answered, reached) = (&answered, reached.clone());
                let request = move || (number, run_caller(address, *group, answered, moment, &reached));
                callers.push(scope.spawn(request));
            }
        }
        drop(reached);
        let came = moments.recv().is_ok();
        if came {
            at();
        }
        let mut tallies = vec![Tally::default(); groups.len()];
        for caller in callers {
            let (number, one) = caller.join().unwrap();
            let sum = &mut tallies[number];
            sum.delivered += one.delivered;
            sum.unanswered += one.unanswered;
            sum.broken += one.broken;
        }
        (tallies, came)
    })
}

fn run_caller(
    address: SocketAddr,
    group: CallerGroup<'_>,
    answered: &AtomicU32,
    moment: u32,
    reached: &Sender<()>,
) -> Tally {
    let mut tally = Tally::default();
    let Some(mut connection) = Wire::open(address) else { return tally };
    for _ in 0..group.most {
        if group.reconnects {
            let Some(fresh) = Wire::open(address) else { return tally };
            connection = fresh;
        }
        let reply = connection.get(TARGET, &group.load_client.key);
        match reply {
            Reply::Response { status: 200, .. } => tally.delivered += 1,
            Reply::Response { status: 429, .. } => {
                assert_eq!(reply.status_and_code().1, "quota_exceeded");
                return tally;
            }
            // A slow disk of the machine is no failure of the program: nothing was granted, nothing is owed.
            Reply::Response { .. } => assert_eq!(reply.status_and_code(), (503, "overloaded".into())),
            Reply::NoResponse => {
                tally.unanswered += 1;
                return tally;
            }
            Reply::Partial => {
                tally.broken += 1;
                return tally;
            }
        }
        if 1 + answered.fetch_add(1, Ordering::Relaxed) == moment {
            reached.send(()).expect("the receiver exists until all callers have finished");
        }
    }
    tally
}
