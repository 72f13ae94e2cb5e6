//! One request as it grows: each stage writes its field here, and the whole is recorded when it is over.
//!
//! Dropping an exchange that was never finished records a client that left. Not for: deciding anything.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::Gateway;
use super::authenticate::{Caller, has_a_key};
use super::labels::Subject;
use super::observe::Seen;
use super::outcome::Outcome;
use super::pen::Pen;
use super::refusal::Refusal;
use super::told::Told;
use super::usage::Ending;
use crate::clock::Now;
use crate::keys::KeyForm;
use crate::routes::DocumentKey;
use crate::telemetry::trace::Trace;

/// Who is at the other end: of the connection, or of the proxies that it came through.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether what is said to it is encrypted.
    pub is_encrypted: bool,
}

/// The identifier of a request, for its answer and for whoever searches for it.
#[derive(Clone, Debug)]
pub(super) enum RequestId {
    /// The caller's own.
    Given(HeaderValue),
    /// One of ours: hexadecimal digits.
    Fresh([u8; 16]),
}

/// A request and all that has become of it so far.
pub(super) struct Exchange<'g> {
    gateway: &'g Gateway,
    /// When its head was there.
    pub(super) started: Now,
    /// Its identifier.
    pub(super) id: RequestId,
    /// The trace that it is a part of.
    pub(super) trace: Option<Trace>,
    /// The client: whoever sent it, behind all proxies that are believed.
    pub(super) peer: Peer,
    /// What it is about: written by `parse` and `resolve`.
    pub(super) subject: Subject,
    /// The document it asks for: written by `resolve`.
    pub(super) document: Option<DocumentKey>,
    /// Who asks: written by `authenticate`.
    pub(super) caller: Option<Caller>,
    /// Where the document came from: written by `fetch`.
    pub(super) outcome: Option<Outcome>,
    /// How long ago the backend confirmed it: written by `fetch`.
    pub(super) age: Option<Duration>,
    /// Why it was refused.
    pub(super) refusal: Option<Refusal>,
    /// With which status it was answered: written by `handle`, last.
    pub(super) status: Option<StatusCode>,
    /// When.
    pub(super) ended: Option<Now>,
}

impl<'g> Exchange<'g> {
    /// Opens it for a request that comes to this gateway.
    pub(super) fn open(gateway: &'g Gateway, started: Now, peer: Peer, headers: &HeaderMap) -> Self {
        gateway.instruments.begun();
        // A key that was made elsewhere may read like a trace's identifier, which is logged and sent on.
        let trace = Trace::of(headers).filter(|trace| !has_a_key(trace.id(), headers, &gateway.form));
        Self {
            id: RequestId::of(headers, &gateway.form, started),
            gateway,
            trace,
            started,
            peer,
            subject: Subject::Nothing,
            document: None,
            caller: None,
            outcome: None,
            age: None,
            refusal: None,
            status: None,
            ended: None,
        }
    }

    fn told(&self, took: Duration) -> Told {
        Told {
            started: self.started.wall,
            id: self.id.clone(),
            trace: self.trace,
            client: self.peer.address,
            application: self.caller.as_ref().map(|caller| caller.account.id),
            endpoint: self.subject.word(),
            document: self.document.clone(),
            status: self.status,
            code: self.refusal.as_ref().map(Refusal::code),
            outcome: self.outcome,
            age: self.age,
            took,
        }
    }

    /// Whose request it was and how it ended, for whoever looks at who asks.
    fn count_use(&self, ended: Now) {
        let refused = self.refusal.as_ref().map(|refusal| (refusal.fault(), refusal.rule()));
        let ending = Ending::of(refused, self.outcome, self.status);
        match (&self.caller, refused) {
            (Some(caller), _) => self.gateway.usage.count(&caller.account, ending, ended),
            (None, Some(_)) => self.gateway.usage.count_stranger(self.peer.address, ending, ended),
            (None, None) => {}
        }
    }

    /// The request is answered.
    pub(super) fn close(&mut self, status: StatusCode, ended: Now) {
        self.status = Some(status);
        self.ended = Some(ended);
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or_else(|| self.gateway.clock.now());
        let took = ended.mono.since(self.started.mono);
        let seen = self.status.map(|status| Seen {
            subject: self.subject,
            tier: self.caller.as_ref().map(|caller| caller.tier),
            status,
            took,
            outcome: self.outcome,
            age: self.age,
            refused: self.refusal.as_ref().map(|refusal| (refusal.code(), refusal.rule())),
        });
        self.gateway.instruments.record(seen.as_ref());
        let fault = self.refusal.as_ref().map(Refusal::fault);
        self.gateway.request_log.over(fault, took, || self.told(took));
        self.count_use(ended);
    }
}

impl RequestId {
    /// The caller's own identifier if it is well formed and has no key in it, else a new one: it is repeated in the log
    /// and in the bodies of errors, where a key has no place.
    fn of(headers: &HeaderMap, form: &KeyForm, now: Now) -> Self {
        let mut given = headers.get_all("x-request-id").iter();
        let holds_one = |id: &HeaderValue| has_a_key(id.to_str().unwrap_or_default(), headers, form);
        match (given.next(), given.next()) {
            (Some(id), None) if is_well_formed(id) && !holds_one(id) => Self::Given(id.clone()),
            _ => Self::Fresh(fresh(now)),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        let text = match self {
            Self::Given(id) => id.as_bytes(),
            Self::Fresh(id) => id,
        };
        std::str::from_utf8(text).expect("identifiers are visible ASCII, ours and those let in")
    }

    /// As a header's value.
    pub(super) fn value(&self, pen: &mut Pen) -> HeaderValue {
        match self {
            Self::Given(id) => id.clone(),
            Self::Fresh(_) => pen.words(self.as_str()).value(),
        }
    }
}

fn is_well_formed(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (8..=64).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}

/// Unique within this life by its count, and between lives by where the count began.
fn fresh(now: Now) -> [u8; 16] {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static FIRST: OnceLock<u64> = OnceLock::new();
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let first = *FIRST.get_or_init(|| getrandom::u64().unwrap_or(now.wall.millis()));
    let number = first.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    let mut text = [0u8; 16];
    for (place, digit) in text.iter_mut().enumerate() {
        let nibble = (number >> (60 - 4 * place)) & 15;
        *digit = b"0123456789abcdef".get(usize::try_from(nibble).unwrap_or(0)).copied().unwrap_or(b'0');
    }
    text
}
