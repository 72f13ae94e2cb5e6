//! The backend's status for operators: address, circuit breaker, last failure, next refresh. Metrics provide the history.

use std::time::Duration;

use parking_lot::Mutex;

use crate::upstream::{ProtectionStatus, UpstreamFailure};
use scoregate_base::{clock::Wall, routes::DocumentKey};

/// Maximum length of a failure text. Some failures quote the response, which can be long.
const MAX_REASON_CHARACTERS: usize = 500;

/// The backend's status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The backend's address, without credentials.
    pub address: String,
    /// The state of the backend's queue and circuit breaker.
    pub condition: ProtectionStatus,
    /// The last fetch that failed.
    pub last_failure: Option<FetchFailure>,
    /// The last fetch that succeeded.
    pub last_success: Option<Wall>,
    /// The next expected refresh. It may be in the past.
    pub next_refresh: Option<Wall>,
    /// How long `next_refresh` has been overdue.
    pub overdue: Duration,
}

/// A fetch that failed at the backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchFailure {
    /// When the fetch failed.
    pub at: Wall,
    /// The document's address.
    pub document: String,
    /// The reason for the failure.
    pub reason: String,
}

/// The last fetch that succeeded, and the last that failed.
#[derive(Debug, Default)]
pub struct LastFetches(Mutex<(Option<Wall>, Option<FetchFailure>)>);

impl LastFetches {
    /// Records that a fetch succeeded, or that the backend reported that the model does not exist.
    pub fn succeeded(&self, at: Wall) {
        self.0.lock().0 = Some(at);
    }

    /// Records that a fetch failed.
    pub fn failed(&self, key: &DocumentKey, failure: &UpstreamFailure, at: Wall) {
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
    pub fn both(&self) -> (Option<Wall>, Option<FetchFailure>) {
        self.0.lock().clone()
    }
}
