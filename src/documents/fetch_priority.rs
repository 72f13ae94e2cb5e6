//! The priority of a fetch, and the trace that it is a part of.
//!
//! A fetch belongs to no client. Its trace is that of the request that started it. Requests that join it later can raise its
//! priority, but do not change its trace. Not for: the order of the queue (`upstream`).

use crate::keys::ApplicationId;
use crate::telemetry::trace::Trace;
use crate::upstream::{Urgency, Urgent};

/// The priority with which a request, or a background task, wants a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchPriority {
    /// Its place in the queue.
    pub(super) urgency: Urgency,
    /// The trace of the request.
    pub(super) trace: Option<Trace>,
    /// The application that sent the request.
    pub(super) caller: Option<ApplicationId>,
}

/// What a fetch carries: its current priority, and the trace of the request that started it.
#[derive(Clone, Debug)]
pub(super) struct FetchContext {
    /// The current priority.
    pub(super) urgent: Urgent,
    /// The trace.
    pub(super) trace: Option<Trace>,
}

impl FetchPriority {
    /// For a background refresh.
    pub(crate) const BACKGROUND: Self = Self { urgency: Urgency::Refresh, trace: None, caller: None };

    /// For a caller's request.
    pub(crate) fn caller(application: ApplicationId, is_paid: bool, trace: Option<Trace>) -> Self {
        let urgency = if is_paid { Urgency::Paid } else { Urgency::Free };
        Self { urgency, trace, caller: Some(application) }
    }

    /// For a refresh that a request triggers and does not wait for.
    pub(super) fn without_waiting(self) -> Self {
        Self { urgency: Urgency::Refresh, ..self }
    }

    /// The context of a fetch that this starts.
    pub(super) fn context(self) -> FetchContext {
        FetchContext { urgent: Urgent::new(self.urgency), trace: self.trace }
    }
}
