//! Status of the backend over the side port: `GET /v1/upstream`.

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::Wall;
use crate::documents::{BackendStatus, FetchFailure, Fetcher};

use super::command::CommandProblem;
use super::paths::UPSTREAM;

#[derive(Clone, Debug, Serialize)]
struct UpstreamView {
    address: String,
    breaker: &'static str,
    retry_in_seconds: u64,
    consecutive_failures: u32,
    max_concurrent_requests: usize,
    in_flight: usize,
    queued: usize,
    retries: u64,
    last_failure: Option<FailureView>,
    last_success_at: Option<String>,
    next_refresh_at: Option<String>,
    refresh_overdue_seconds: u64,
}

#[derive(Clone, Debug, Serialize)]
struct FailureView {
    at: String,
    document: String,
    reason: String,
}

pub(super) fn handle(fetcher: &Fetcher, method: &Method, path: &str) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::GET, UPSTREAM) => Ok(json!(UpstreamView::from(fetcher.status()))),
        _ => Err(CommandProblem::not_found()),
    }
}

impl From<BackendStatus> for UpstreamView {
    fn from(status: BackendStatus) -> Self {
        let condition = status.condition;
        Self {
            address: status.address,
            breaker: condition.breaker.as_str(),
            // Rounded up, so that a retry after this time is not too early.
            retry_in_seconds: condition
                .open_time_left
                .as_millis()
                .div_ceil(1_000)
                .try_into()
                .unwrap_or(u64::MAX),
            consecutive_failures: condition.failures,
            max_concurrent_requests: condition.at_once,
            in_flight: condition.in_flight,
            queued: condition.queued,
            retries: condition.retries,
            last_failure: status.last_failure.map(FailureView::from),
            last_success_at: status.last_success.map(Wall::rfc3339),
            next_refresh_at: status.next_refresh.map(Wall::rfc3339),
            refresh_overdue_seconds: status.overdue.as_secs(),
        }
    }
}

impl From<FetchFailure> for FailureView {
    fn from(FetchFailure { at, document, reason }: FetchFailure) -> Self {
        Self { at: at.rfc3339(), document, reason }
    }
}
