//! For whose sake the backend is asked: how urgent that is, and which trace it is a part of.
//!
//! A fetch belongs to its flight and to no client, so the flight is a part of the trace of the request that began it; who
//! boards later can make it more urgent, but not change its trace. Not for: whose turn it is (`upstream`).

use crate::keys::ApplicationId;
use crate::telemetry::trace::Trace;
use crate::upstream::{Urgency, Urgent};

/// For whose sake the backend is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sake {
    /// How urgent it is.
    pub(super) urgency: Urgency,
    /// The trace of the request.
    pub(super) trace: Option<Trace>,
    /// The application that asks.
    pub(crate) caller: Option<ApplicationId>,
}

/// What a flight has with it: by whom it was begun, and how urgent it is by now.
#[derive(Clone, Debug)]
pub(super) struct Note {
    /// How urgent by now.
    pub(super) urgent: Urgent,
    /// The trace of whoever began it.
    pub(super) trace: Option<Trace>,
}

impl Sake {
    /// Of our own accord.
    pub(crate) const NOBODY: Self = Self { urgency: Urgency::Refresh, trace: None, caller: None };

    /// A caller's.
    pub(crate) fn caller(application: ApplicationId, is_paid: bool, trace: Option<Trace>) -> Self {
        let urgency = if is_paid { Urgency::Paid } else { Urgency::Free };
        Self { urgency, trace, caller: Some(application) }
    }

    /// The same where the caller has set something off and does not wait for it.
    pub(super) fn without_waiting(self) -> Self {
        Self { urgency: Urgency::Refresh, ..self }
    }

    /// The note of a flight that begins by this.
    pub(super) fn note(self) -> Note {
        Note { urgent: Urgent::new(self.urgency), trace: self.trace }
    }
}
