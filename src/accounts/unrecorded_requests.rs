//! Requests of one account that were counted and not yet taken by `request_counter`.
//!
//! A list instead of an array of all endpoints and outcomes: most applications use a few, and a million of them must fit into
//! memory. Days are entries too, so a request that was in flight at midnight counts on the day on which it began.

use scoregate_base::clock::{Day, Mono};
use scoregate_base::routes::Route;
use scoregate_store::RequestOutcome;

use super::usage_counts::{RequestCounts, minute_of};

/// A kind of request. Each is counted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequestKind {
    /// The day on which the request began.
    pub(super) day: Day,
    /// The endpoint; `None` for other paths.
    pub(super) endpoint: Option<Route>,
    pub(super) outcome: RequestOutcome,
}

/// Requests of one kind in a minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindCount {
    kind: RequestKind,
    minute: u64,
    requests: u32,
    /// Delivered documents that waited for the backend.
    waited: u32,
}

/// Requests since the last recording.
#[derive(Clone, Debug, Default)]
pub(super) struct UnrecordedRequests {
    counts: Vec<KindCount>,
}

impl UnrecordedRequests {
    /// Counts a request that ended at this time.
    pub(super) fn count(&mut self, kind: RequestKind, waited: bool, at: Mono) {
        let (minute, waited) = (minute_of(at), u32::from(waited));
        match self.counts.iter_mut().find(|count| count.kind == kind && count.minute == minute) {
            Some(count) => {
                count.requests = count.requests.saturating_add(1);
                count.waited = count.waited.saturating_add(waited);
            }
            None => self.counts.push(KindCount { kind, minute, requests: 1, waited }),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The requests by kind and minute.
    pub(super) fn into_counts(self) -> impl Iterator<Item = KindCount> {
        self.counts.into_iter()
    }
}

impl KindCount {
    pub(super) const fn kind(&self) -> RequestKind {
        self.kind
    }

    pub(super) const fn day(&self) -> Day {
        self.kind.day
    }

    pub(super) fn requests(&self) -> u64 {
        u64::from(self.requests)
    }

    /// The requests as an operator sees them, and their minute. `/me` delivers no document.
    pub(super) fn requests_of_minute(&self) -> (RequestCounts, u64) {
        let (requests, none) = (self.requests(), RequestCounts::default());
        let counted = match self.kind.outcome {
            RequestOutcome::Ok if self.kind.endpoint == Some(Route::Me) => none,
            RequestOutcome::Ok => {
                RequestCounts { delivered: requests, waited: u64::from(self.waited), ..none }
            }
            RequestOutcome::NotModified => RequestCounts { unchanged: requests, ..none },
            RequestOutcome::RateLimited | RequestOutcome::QuotaExceeded => {
                RequestCounts { limited: requests, ..none }
            }
            RequestOutcome::ClientError => RequestCounts { client_errors: requests, ..none },
            RequestOutcome::ServerError => RequestCounts { failed: requests, ..none },
            RequestOutcome::Disconnected => none,
        };
        (RequestCounts { requests, ..counted }, self.minute)
    }
}
