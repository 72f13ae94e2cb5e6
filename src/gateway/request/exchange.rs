//! The state of one request. Each stage sets its field; the request is recorded when it ends.
//!
//! Dropping an exchange that was not closed records a client that disconnected.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::request::Parts;

use crate::accounts::DocumentUse;
use crate::documents::FoundDocument;
use crate::gateway::observation::access_log::AccessRecord;
use crate::gateway::observation::recorders::RequestRecorders;
use crate::gateway::observation::request_outcome::outcome;
use crate::gateway::observation::request_span::{TracedRequest, method};
use crate::gateway::refusal::{Refusal, Responsibility};
use crate::gateway::stages::authenticate::Caller;
use crate::gateway::stages::resolve::ResolvedTarget;
use crate::instruments::{CacheOutcome, RequestObservation, RequestSubject};
use scoregate_base::clock::{Day, Now};
use scoregate_base::keys::KeyForm;
use scoregate_base::limits::LimitStatus;
use scoregate_base::routes::codes::ErrorCode;
use scoregate_observe::telemetry::trace::{SpanId, TRACEPARENT, TraceContext};
use scoregate_observe::traces::{RequestSpan, Tracer};

use super::credentials::Credentials;
use super::request_headers::RequestHeaders;
use super::request_id::RequestId;

/// The other end of the connection, or the client behind trusted proxies.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether its connection is encrypted.
    pub is_encrypted: bool,
    /// Whether the request is a call of a tool.
    pub is_tool_call: bool,
}

/// A request and its results so far.
pub(crate) struct Exchange<'g> {
    recorders: &'g RequestRecorders,
    form: &'g KeyForm,
    /// When its head was received.
    pub(crate) started: Now,
    pub(crate) id: RequestId,
    /// The trace it belongs to.
    pub(crate) trace: Option<TraceContext>,
    /// Its span, if it is sampled. Set after `authenticate`.
    pub(crate) span: Option<Arc<RequestSpan>>,
    /// The client behind all trusted proxies.
    pub(crate) peer: Peer,
    /// Endpoint and model. Set by `parse` and `resolve`.
    pub(crate) subject: RequestSubject,
    /// Set by `resolve`.
    pub(crate) target: Option<ResolvedTarget>,
    /// The stored document. Set with `target`.
    pub(crate) found: Option<FoundDocument>,
    /// Set by `authenticate`.
    pub(crate) caller: Option<Caller>,
    /// Source of the document. Set by `fetch`, or for a hit.
    pub(crate) outcome: Option<CacheOutcome>,
    /// Time since the backend confirmed the document. Set with `outcome`.
    pub(crate) age: Option<Duration>,
    /// The document as it was requested, unless `charge` has counted it. Set with `outcome`.
    pub(crate) document: Option<DocumentUse>,
    /// The UTC day that was charged with a unit. Set by `charge` or `settle`.
    pub(crate) charged: Option<Day>,
    /// Status of the minute and the day. Set by `charge`.
    pub(crate) limit_statuses: Option<[LimitStatus; 2]>,
    /// Whether `charge` has counted the request by endpoint and outcome.
    pub(crate) is_counted: bool,
    pub(crate) refusal: Option<Refusal>,
    /// Status of the response. Set by `handle`, last.
    pub(crate) status: Option<StatusCode>,
    pub(crate) ended: Option<Now>,
}

impl<'g> Exchange<'g> {
    /// Opens the exchange of a received request.
    pub(crate) fn open(
        recorders: &'g RequestRecorders,
        form: &'g KeyForm,
        started: Now,
        peer: Peer,
        headers: RequestHeaders<'_>,
        credentials: &Credentials<'_>,
    ) -> Self {
        // An imported key may have the form of a trace id, which is logged and sent to the backend.
        let trace = headers
            .may_have(&TRACEPARENT)
            .then(|| TraceContext::of(headers.map()))
            .flatten();
        let trace = trace.filter(|trace| !credentials.appear_in(trace.id(), form));
        Self {
            id: RequestId::of(headers, credentials, form, started),
            recorders,
            form,
            trace,
            span: None,
            started,
            peer,
            subject: RequestSubject::Nothing,
            target: None,
            found: None,
            caller: None,
            outcome: None,
            age: None,
            document: None,
            charged: None,
            limit_statuses: None,
            is_counted: false,
            refusal: None,
            status: None,
            ended: None,
        }
    }

    /// Decides whether spans are recorded. Called once the caller is known: clients without a key cause no export.
    pub(crate) fn begin_span(&mut self, head: &Parts, credentials: &Credentials<'_>) {
        if let Some(tracer) = &self.recorders.tracer {
            self.sample(tracer, head, credentials);
        }
    }

    /// Continues a trace that the caller has sampled, within a limit, or begins a new one at random.
    fn sample(&mut self, tracer: &Arc<Tracer>, head: &Parts, credentials: &Credentials<'_>) {
        let sampled = match self.trace {
            None => tracer.new_trace().map(|trace| (trace, None)),
            Some(trace) if !trace.is_sampled() => None,
            Some(trace) => {
                // An imported key may have the form of a span id, which is exported.
                let parent = SpanId::of_caller(&head.headers)
                    .filter(|parent| !credentials.appear_in(&parent.to_string(), self.form));
                let is_taken = parent.is_some() && tracer.takes_callers_trace(self.started);
                if !is_taken {
                    self.trace = Some(trace.unsampled());
                }
                is_taken.then_some((trace, parent))
            }
        };
        if let Some((trace, parent)) = sampled {
            self.trace = Some(trace);
            self.span = Some(tracer.begin(trace, parent, method(&head.method), self.started));
        }
    }

    /// Records the span of a sampled request.
    fn end_span(&self, span: &RequestSpan, ended: Now) {
        let request = TracedRequest {
            is_encrypted: self.peer.is_encrypted,
            subject: self.subject,
            document: self.target.as_ref().and_then(ResolvedTarget::named),
            status: self.status,
            code: self.refusal.as_ref().map(Refusal::code),
            outcome: self.outcome,
            application: self.caller.as_ref().map(|caller| caller.account.id),
            request_id: self.id.as_str(),
        };
        request.end(span, ended.mono);
    }

    fn access_record(&self, took: Duration) -> AccessRecord {
        AccessRecord {
            started: self.started.wall,
            id: self.id.clone(),
            trace: self.trace,
            client: self.peer.address,
            is_tool_call: self.peer.is_tool_call,
            application: self.caller.as_ref().map(|caller| caller.account.id),
            day: self.charged,
            endpoint: self.subject.as_str(),
            document: self
                .target
                .as_ref()
                .and_then(ResolvedTarget::named)
                .cloned(),
            status: self.status,
            code: self.refusal.as_ref().map(Refusal::code),
            outcome: self.outcome,
            age: self.age,
            took,
        }
    }

    /// Counts the request by endpoint and outcome if it has a valid key, else its refusal by address.
    fn count_use(&self, ended: Now) {
        match (&self.caller, &self.refusal) {
            (Some(_), _) if self.is_counted => {}
            (Some(caller), refusal) => {
                let day = self.started.wall.day();
                let endpoint = self.subject.endpoint();
                let kind = (day, endpoint, outcome(refusal.as_ref(), self.status));
                let waited = self.outcome.is_some_and(CacheOutcome::waited);
                self.recorders
                    .requests
                    .count(&caller.account, kind, self.document, waited, ended);
            }
            (None, Some(refusal)) => {
                let refused = (refusal.responsibility(), refusal.rule());
                self.recorders
                    .usage
                    .count(self.peer.address, refused, ended);
            }
            (None, None) => {}
        }
    }

    /// Logs a refusal that is not the caller's fault.
    pub(crate) fn log(&self, refusal: &Refusal) {
        let is_internal = match refusal.responsibility() {
            Responsibility::Caller => return,
            Responsibility::Upstream => false,
            // Too frequent to log one by one: `concurrency_limit` logs a summary, and `leases` when the ledger becomes unreachable.
            Responsibility::Us if refusal.code() == ErrorCode::Overloaded => return,
            Responsibility::Us => true,
        };
        let request = self.id.as_str();
        let code = refusal.code().row().word;
        if is_internal {
            tracing::error!(request, code, "internal error");
        } else {
            tracing::debug!(request, code, "backend failure without a stored document");
        }
    }

    /// Records the response.
    pub(crate) fn close(&mut self, refusal: Option<Refusal>, status: StatusCode, ended: Now) {
        (self.refusal, self.status, self.ended) = (refusal, Some(status), Some(ended));
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or_else(|| self.recorders.clock.now());
        let took = ended.mono.since(self.started.mono);
        let seen = self.status.map(|status| RequestObservation {
            subject: self.subject,
            tier: self.caller.as_ref().map(|caller| caller.tier),
            status,
            took,
            outcome: self.outcome,
            age: self.age,
            refused: self
                .refusal
                .as_ref()
                .map(|refusal| (refusal.code(), refusal.rule())),
        });
        self.recorders.instruments.record(seen.as_ref());
        let fault = self.refusal.as_ref().map(Refusal::responsibility);
        self.recorders
            .request_log
            .record(fault, took, || self.access_record(took));
        self.count_use(ended);
        if let Some(span) = &self.span {
            self.end_span(span, ended);
        }
    }
}
