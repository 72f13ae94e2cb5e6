//! The priority of a fetch, and its trace.
//!
//! A fetch does not belong to a client. It belongs to the trace of the request that started it. Requests that join it
//! later can raise its priority but do not change its trace. `upstream` defines the order of the queue.

use std::sync::Arc;

use crate::upstream::{CurrentPriority, PriorityClass};
use scoregate_base::{clock::Mono, keys::ApplicationId};
use scoregate_observe::{telemetry::trace::TraceContext, traces::RequestSpan};

/// The priority with which a request or a background task fetches a document.
#[derive(Clone, Copy, Debug)]
pub struct FetchPriority<'r> {
    /// The priority class in the queue.
    pub(super) class: PriorityClass,
    /// The trace of the request.
    pub(super) trace: Option<&'r TraceContext>,
    /// The span of the request, if it is recorded.
    pub(super) span: Option<&'r Arc<RequestSpan>>,
    /// The application of the request.
    pub(super) caller: Option<ApplicationId>,
    /// The document must have been confirmed at this time or later, if this is set.
    pub(super) confirmed_since: Option<Mono>,
}

/// The current priority of a fetch, and the trace of the request that started it.
#[derive(Clone, Debug)]
pub struct FetchContext {
    pub priority: CurrentPriority,
    pub trace: Option<TraceContext>,
    pub confirmed_since: Option<Mono>,
    pub span: Option<Arc<RequestSpan>>,
}

impl FetchPriority<'static> {
    /// The priority of a background refresh.
    pub const BACKGROUND: Self = Self {
        class: PriorityClass::Refresh,
        trace: None,
        span: None,
        caller: None,
        confirmed_since: None,
    };
}

impl<'r> FetchPriority<'r> {
    /// The priority of a caller's request.
    pub fn caller(
        application: ApplicationId,
        is_paid: bool,
        trace: Option<&'r TraceContext>,
        span: Option<&'r Arc<RequestSpan>>,
    ) -> Self {
        let class = if is_paid {
            PriorityClass::Paid
        } else {
            PriorityClass::Free
        };
        Self {
            class,
            trace,
            span,
            caller: Some(application),
            confirmed_since: None,
        }
    }

    /// The priority of a refresh that a request triggers but does not wait for.
    pub(super) fn without_waiting(self) -> Self {
        Self {
            class: PriorityClass::Refresh,
            ..self
        }
    }

    /// The context of a fetch that starts with this priority.
    pub(super) fn context(self) -> FetchContext {
        FetchContext {
            priority: CurrentPriority::new(self.class),
            trace: self.trace.copied(),
            span: self.span.cloned(),
            confirmed_since: self.confirmed_since,
        }
    }
}
