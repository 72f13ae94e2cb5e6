//! The state of one request. Each stage sets its field; the request is recorded when it ends.
//!
//! Dropping an exchange that was not closed records a client that disconnected.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::sync::Notify;

use crate::clock::Now;
use crate::instruments::{CacheOutcome, RequestObservation, RequestSubject};
use crate::telemetry::trace::{TRACEPARENT, TraceContext};

use super::Gateway;
use super::access_log::AccessRecord;
use super::authenticate::Caller;
use super::credentials::Credentials;
use super::refusal::Refusal;
use super::request_headers::RequestHeaders;
use super::request_id::RequestId;
use super::resolve::ResolvedTarget;
use super::usage::RequestEnding;

/// Who is at the other end: of the connection, or of the proxies that it came through.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether what is said to it is encrypted.
    pub is_encrypted: bool,
}

/// Whether a valid key was presented on a connection. Set by the gateway, read by the server, which may close connections
/// without a key first.
#[derive(Debug, Default)]
pub struct Authenticated {
    is_set: AtomicBool,
    noticed: Arc<Notify>,
}

impl Authenticated {
    /// Not so far. `noticed` is notified when a key is presented.
    pub fn not_yet(noticed: Arc<Notify>) -> Self {
        Self { is_set: AtomicBool::new(false), noticed }
    }

    /// Whether one was.
    pub fn get(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }

    /// One was. Every call but the first costs a load.
    pub fn set(&self) {
        if !self.get() {
            self.is_set.store(true, Ordering::Relaxed);
            self.noticed.notify_one();
        }
    }
}

/// A request and all that has become of it so far.
pub(super) struct Exchange<'g> {
    gateway: &'g Gateway,
    /// When its head was there.
    pub(super) started: Now,
    /// Its identifier.
    pub(super) id: RequestId,
    /// The trace that it is a part of.
    pub(super) trace: Option<TraceContext>,
    /// The client: whoever sent it, behind all proxies that are believed.
    pub(super) peer: Peer,
    /// What it is about: written by `parse` and `resolve`.
    pub(crate) subject: RequestSubject,
    /// What it asks for: written by `resolve`.
    pub(super) target: Option<ResolvedTarget>,
    /// Who asks: written by `authenticate`.
    pub(super) caller: Option<Caller>,
    /// Where the document came from: written by `fetch`.
    pub(crate) outcome: Option<CacheOutcome>,
    /// How long ago the backend confirmed it: written by `fetch`.
    pub(crate) age: Option<Duration>,
    /// Why it was refused.
    pub(super) refusal: Option<Refusal>,
    /// With which status it was answered: written by `handle`, last.
    pub(crate) status: Option<StatusCode>,
    /// When.
    pub(super) ended: Option<Now>,
}

impl<'g> Exchange<'g> {
    /// Opens it for a request that comes to this gateway.
    pub(super) fn open(
        gateway: &'g Gateway,
        started: Now,
        peer: Peer,
        headers: RequestHeaders<'_>,
        credentials: &Credentials<'_>,
    ) -> Self {
        gateway.instruments.begun();
        // A key that was made elsewhere may read like a trace's identifier, which is logged and sent on.
        let trace = headers.may_have(&TRACEPARENT).then(|| TraceContext::of(headers.map())).flatten();
        let trace = trace.filter(|trace| !credentials.appear_in(trace.id(), &gateway.form));
        Self {
            id: RequestId::of(headers, credentials, &gateway.form, started),
            gateway,
            trace,
            started,
            peer,
            subject: RequestSubject::Nothing,
            target: None,
            caller: None,
            outcome: None,
            age: None,
            refusal: None,
            status: None,
            ended: None,
        }
    }

    fn told(&self, took: Duration) -> AccessRecord {
        AccessRecord {
            started: self.started.wall,
            id: self.id.clone(),
            trace: self.trace,
            client: self.peer.address,
            application: self.caller.as_ref().map(|caller| caller.account.id),
            endpoint: self.subject.word(),
            document: self.target.as_ref().and_then(ResolvedTarget::named).cloned(),
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
        let ending = RequestEnding::of(refused, self.outcome, self.status);
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
        let seen = self.status.map(|status| RequestObservation {
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
