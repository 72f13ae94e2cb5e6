//! Requests of one account that were counted and not yet taken by `request_counter`.
//!
//! A list instead of an array of all endpoints and outcomes: most applications use a few, and a million of them must fit into
//! memory. Days are entries too, so a request that was in flight at midnight counts on the day on which it began.

use scoregate_base::clock::Day;
use scoregate_base::routes::Route;
use scoregate_store::RequestOutcome;

/// A kind of request. Each is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequestKind {
    /// The day on which the request began.
    pub(super) day: Day,
    /// The endpoint; `None` for other paths.
    pub(super) endpoint: Option<Route>,
    pub(super) outcome: RequestOutcome,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug)]
struct KindCount {
    kind: RequestKind,
    requests: u32,
}

/// Requests since the last recording.
#[derive(Clone, Debug, Default)]
pub(super) struct UnrecordedRequests {
    counts: Vec<KindCount>,
}

impl UnrecordedRequests {
    /// Counts a request.
    pub(super) fn count(&mut self, kind: RequestKind) {
        match self.counts.iter_mut().find(|count| count.kind == kind) {
            Some(count) => count.requests = count.requests.saturating_add(1),
            None => self.counts.push(KindCount { kind, requests: 1 }),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The requests by kind.
    pub(super) fn into_counts(self) -> impl Iterator<Item = (RequestKind, u64)> {
        self.counts.into_iter().map(|count| (count.kind, u64::from(count.requests)))
    }
}
