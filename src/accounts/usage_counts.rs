//! A caller's request counts, as shown to operators: today and in the last full minute.

use serde::{Deserialize, Serialize};

use scoregate_base::clock::{Mono, Now};
use scoregate_store::RequestOutcome;

const NANOS_A_MINUTE: u64 = 60_000_000_000;

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All requests.
    pub requests: u64,
    /// Documents delivered.
    pub delivered: u64,
    /// Documents delivered after a wait for the backend.
    pub waited: u64,
    /// 304 responses.
    pub unchanged: u64,
    /// Requests refused because of a limit.
    pub limited: u64,
    /// Requests refused because of another client error.
    pub client_errors: u64,
    /// Requests for which the gateway or the backend failed.
    pub failed: u64,
}

/// Counted requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedRequests {
    /// Since midnight UTC or the start of the process.
    pub today: RequestCounts,
    /// In the last full minute.
    pub last_minute: RequestCounts,
    /// Upper bound on the number of requests before tracking began.
    pub missed: u64,
}

/// Tracked counts of a caller.
#[derive(Clone, Default)]
pub struct UsageCounts {
    today: RequestCounts,
    minute: u64,
    this_minute: RequestCounts,
    last_minute: RequestCounts,
}

impl RequestCounts {
    /// Requests with this outcome.
    pub(crate) fn with_outcome(outcome: RequestOutcome, requests: u64) -> Self {
        let mut counts = Self {
            requests,
            ..Self::default()
        };
        match outcome {
            RequestOutcome::Ok => counts.delivered = requests,
            RequestOutcome::NotModified => counts.unchanged = requests,
            RequestOutcome::RateLimited | RequestOutcome::QuotaExceeded => {
                counts.limited = requests;
            }
            RequestOutcome::ClientError => counts.client_errors = requests,
            RequestOutcome::ServerError => counts.failed = requests,
            RequestOutcome::Disconnected => {}
        }
        counts
    }

    fn add(&mut self, more: &Self) {
        self.requests += more.requests;
        self.delivered += more.delivered;
        self.waited += more.waited;
        self.unchanged += more.unchanged;
        self.limited += more.limited;
        self.client_errors += more.client_errors;
        self.failed += more.failed;
    }
}

impl UsageCounts {
    /// Whether nothing was counted.
    pub const fn is_empty(&self) -> bool {
        self.today.requests == 0
    }

    /// Adds requests of a minute.
    pub fn add(&mut self, more: &RequestCounts, minute: u64) {
        if minute > self.minute {
            self.last_minute = self.last_full_minute(minute);
            (self.minute, self.this_minute) = (minute, RequestCounts::default());
        }
        self.today.add(more);
        // Counts do not arrive in the order of their minutes, so the count of the previous minute may still increase.
        if minute == self.minute {
            self.this_minute.add(more);
        } else if minute + 1 == self.minute {
            self.last_minute.add(more);
        }
    }

    fn last_full_minute(&self, minute: u64) -> RequestCounts {
        match minute.checked_sub(self.minute) {
            Some(0) => self.last_minute,
            Some(1) => self.this_minute,
            Some(_) | None => RequestCounts::default(),
        }
    }

    /// The counts. Up to `overestimate` requests were not tracked.
    pub fn counted(&self, overestimate: u64, now: Now) -> CountedRequests {
        let last_minute = self.last_full_minute(minute_of(now.mono));
        CountedRequests {
            today: self.today,
            last_minute,
            missed: overestimate,
        }
    }
}

/// The number of a minute in monotonic time, which clock steps do not affect.
#[inline]
pub const fn minute_of(at: Mono) -> u64 {
    at.nanos() / NANOS_A_MINUTE
}
