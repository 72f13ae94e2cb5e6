//! A request from its head to its records: log line, metrics, counts and span.
//!
//! Dropping an unfinished exchange records that the client disconnected.

use std::{sync::Arc, time::Duration};

use http::StatusCode;

use crate::{
    accounts::{CountedRequest, RequestKind},
    gateway::{
        Refusal, RequestRecorders, Responsibility,
        observation::{
            access_log::AccessRecord,
            request_span::{TracedRequest, method},
        },
        response::reply::{Answered, DocumentReply, Reply},
        stages::{
            authenticate::Caller,
            parse::{ParsedRequest, ReceivedRequest},
            resolve::ResolvedTarget,
        },
    },
    instruments::{RequestObservation, RequestSubject},
};
use scoregate_base::{clock::Now, keys::KeyForm, routes::codes::ErrorCode};
use scoregate_observe::{
    telemetry::trace::{SpanId, TRACEPARENT, TraceContext},
    traces::{RequestSpan, Tracer},
};
use scoregate_store::RequestOutcome;

use super::{peer::Peer, progress::Identified, request_id::RequestId};

/// A request with the data that is recorded when it ends.
pub struct Exchange<'g> {
    recorders: &'g RequestRecorders,
    /// When the head was received.
    pub(crate) started: Now,
    pub(crate) id: RequestId,
    /// The trace that the request belongs to.
    pub(crate) trace: Option<TraceContext>,
    /// The span, if the request is sampled. Set once the caller is known.
    pub(crate) span: Option<Arc<RequestSpan>>,
    /// The client behind all trusted proxies.
    pub(crate) peer: Peer,
    /// The endpoint or the kind of page, once it is known.
    pub(crate) subject: RequestSubject,
    /// Set when a request with a valid key is answered, is refused or has to wait.
    pub(crate) caller: Option<Caller>,
    /// Set together with `caller`, if a document is requested.
    pub(crate) target: Option<ResolvedTarget>,
    is_finished: bool,
}

/// The end of a request. The status is `None` if the client disconnected.
struct RequestEnd<'e> {
    status: Option<StatusCode>,
    document: Option<&'e DocumentReply>,
    refusal: Option<&'e Refusal>,
    at: Now,
}

impl<'g> Exchange<'g> {
    /// Opens the exchange of a received request.
    pub(crate) fn open(
        recorders: &'g RequestRecorders,
        form: &KeyForm,
        started: Now,
        peer: Peer,
        request: &ReceivedRequest<'_>,
    ) -> Self {
        Self {
            id: RequestId::new(request.headers, &request.credentials, form, started),
            trace: trace(request, form),
            recorders,
            span: None,
            started,
            peer,
            subject: RequestSubject::Nothing,
            caller: None,
            target: None,
            is_finished: false,
        }
    }

    /// Keeps the caller and the document for the records.
    #[inline]
    pub(crate) fn identified(&mut self, identified: Identified) {
        self.caller = Some(identified.caller);
        self.target = Some(identified.target);
    }

    /// Decides whether spans are recorded. Called once the caller is known, because clients without a key must not
    /// cause an export.
    pub(crate) fn begin_span(&mut self, request: &ParsedRequest<'_>, form: &KeyForm) {
        if let Some(tracer) = &self.recorders.tracer {
            self.sample(tracer, request, form);
        }
    }

    /// Continues a trace that the caller has sampled, within a rate limit, or begins a new trace for a random sample of requests.
    fn sample(&mut self, tracer: &Arc<Tracer>, request: &ParsedRequest<'_>, form: &KeyForm) {
        let sampled = match self.trace {
            None => tracer.new_trace().map(|trace| (trace, None)),
            Some(trace) if !trace.is_sampled() => None,
            Some(trace) => {
                // Span ids are exported, and an imported key may have the form of a span id.
                let parent = SpanId::of_caller(request.headers.map())
                    .filter(|parent| !request.credentials.appear_in(&parent.to_string(), form));
                let is_taken = parent.is_some() && tracer.takes_callers_trace(self.started);
                if !is_taken {
                    self.trace = Some(trace.unsampled());
                }
                is_taken.then_some((trace, parent))
            }
        };
        if let Some((trace, parent)) = sampled {
            let method = method(&request.head.method);
            self.trace = Some(trace);
            self.span = Some(tracer.begin(trace, parent, method, self.started));
        }
    }

    /// Logs a refusal that is not the caller's fault.
    pub(crate) fn log(&self, refusal: &Refusal) {
        let is_internal = match refusal.responsibility() {
            Responsibility::Caller => return,
            Responsibility::Upstream => false,
            // These refusals are too frequent to be logged individually: `concurrency_limit` logs a summary, and
            // `ledger_calls` logs that the ledger became unreachable.
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
    #[inline]
    pub(crate) fn finish(&mut self, answered: Answered<'_>, status: StatusCode, at: Now) {
        self.is_finished = true;
        self.record(&RequestEnd {
            status: Some(status),
            document: answered.ok().and_then(Reply::document),
            refusal: answered.err(),
            at,
        });
    }

    fn record(&self, end: &RequestEnd<'_>) {
        let took = end.at.mono.since(self.started.mono);
        let seen = end.status.map(|status| RequestObservation {
            subject: self.subject,
            tier: self.caller.as_ref().map(|caller| caller.tier),
            status,
            took,
            outcome: end.document.map(DocumentReply::outcome),
            age: end.document.map(DocumentReply::age),
            refused: end.refusal.map(|refusal| (refusal.code(), refusal.rule())),
        });
        self.recorders.instruments.record(seen.as_ref());
        let fault = end.refusal.map(Refusal::responsibility);
        self.recorders
            .request_log
            .record(fault, took, || self.access_record(end, took));
        self.count(end);
        if let Some(span) = &self.span {
            self.end_span(span, end);
        }
    }

    fn access_record(&self, end: &RequestEnd<'_>, took: Duration) -> AccessRecord {
        let target = self.target.as_ref();
        AccessRecord {
            started: self.started.wall,
            id: self.id.clone(),
            trace: self.trace,
            client: self.peer.address,
            is_tool_call: self.peer.is_tool_call,
            application: self.caller.as_ref().map(|caller| caller.account.id),
            day: end.document.and_then(|document| document.charged),
            endpoint: self.subject.as_str(),
            document: target.and_then(ResolvedTarget::named).cloned(),
            status: end.status,
            code: end.refusal.map(Refusal::code),
            key: end.refusal.and_then(Refusal::key_fault),
            outcome: end.document.map(DocumentReply::outcome),
            age: end.document.map(DocumentReply::age),
            took,
        }
    }

    /// Counts a request with a valid key by endpoint and outcome, and a refused request without a valid key by address.
    fn count(&self, end: &RequestEnd<'_>) {
        let Some(caller) = &self.caller else {
            if let Some(refusal) = end.refusal {
                // For an address, a refusal by the guard counts as rate limited.
                let outcome = match refusal.rule() {
                    Some(_) => RequestOutcome::RateLimited,
                    None => refusal.outcome(),
                };
                let address = self.peer.address;
                self.recorders.usage.count(address, outcome, end.at);
            }
            return;
        };
        let outcome = match (end.status, end.refusal) {
            (None, _) => RequestOutcome::Disconnected,
            (Some(_), Some(refusal)) => refusal.outcome(),
            (Some(StatusCode::NOT_MODIFIED), None) => RequestOutcome::NotModified,
            (Some(_), None) => RequestOutcome::Ok,
        };
        let request = CountedRequest {
            kind: RequestKind {
                day: self.started.wall.day(),
                endpoint: self.subject.endpoint(),
                outcome,
            },
            document: end.document.map(|document| document.document),
            waited: end
                .document
                .is_some_and(|document| document.outcome().waited()),
            at: end.at,
        };
        self.recorders.requests.count(&caller.account, request);
    }

    /// Records the span of a sampled request.
    fn end_span(&self, span: &RequestSpan, end: &RequestEnd<'_>) {
        let request = TracedRequest {
            is_encrypted: self.peer.is_encrypted,
            subject: self.subject,
            document: self.target.as_ref().and_then(ResolvedTarget::named),
            status: end.status,
            code: end.refusal.map(Refusal::code),
            outcome: end.document.map(DocumentReply::outcome),
            application: self.caller.as_ref().map(|caller| caller.account.id),
            request_id: self.id.as_str(),
        };
        request.end(span, end.at.mono);
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.record(&RequestEnd {
                status: None,
                document: None,
                refusal: None,
                at: self.recorders.clock.now(),
            });
        }
    }
}

/// The trace of the caller. The trace id is logged and sent to the backend, so it is ignored if it equals a key that
/// was sent: an imported key may have this form.
fn trace(request: &ReceivedRequest<'_>, form: &KeyForm) -> Option<TraceContext> {
    if !request.headers.may_have(&TRACEPARENT) {
        return None;
    }
    let trace = TraceContext::of(request.headers.map())?;
    (!request.credentials.appear_in(trace.id(), form)).then_some(trace)
}
