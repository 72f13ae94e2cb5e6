//! The backend's status for operators: address, circuit breaker, last failure, next refresh. Its history is in the
//! metrics.

use std::time::Duration;

use parking_lot::Mutex;

use crate::upstream::{ProtectionStatus, UpstreamFailure};
use scoregate_base::clock::Wall;
use scoregate_base::routes::DocumentKey;

/// Failures are truncated, because some quote the response, which can be long.
const MAX_REASON_CHARACTERS: usize = 500;

/// The backend's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// Its address, without credentials.
    pub address: String,
    /// Its queue and circuit breaker.
    pub condition: ProtectionStatus,
    /// The last fetch that failed.
    pub last_failure: Option<FetchFailure>,
    /// The last fetch that succeeded.
    pub last_success: Option<Wall>,
    /// The next expected refresh, possibly in the past.
    pub next_refresh: Option<Wall>,
    /// The time by which that refresh is overdue.
    pub overdue: Duration,
}

/// A fetch that failed at the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchFailure {
    /// The time.
    pub at: Wall,
    /// The document.
    pub document: String,
    /// The reason.
    pub reason: String,
}

/// The last fetch that succeeded, and the last that failed.
#[derive(Debug, Default)]
pub(super) struct LastFetches(Mutex<(Option<Wall>, Option<FetchFailure>)>);

impl LastFetches {
    /// A fetch succeeded, or the backend answered that the model does not exist.
    pub(super) fn succeeded(&self, at: Wall) {
        self.0.lock().0 = Some(at);
    }

    /// A fetch failed.
    pub(super) fn failed(&self, key: &DocumentKey, failure: &UpstreamFailure, at: Wall) {
        let reason = failure
            .to_string()
            .chars()
            .take(MAX_REASON_CHARACTERS)
            .collect();
        self.0.lock().1 = Some(FetchFailure {
            at,
            document: key.to_string(),
            reason,
        });
    }

    /// The last success and the last failure.
    pub(super) fn both(&self) -> (Option<Wall>, Option<FetchFailure>) {
        self.0.lock().clone()
    }
}
