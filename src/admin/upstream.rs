//! Status of the backend over the side port: `GET /v1/upstream`.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use crate::documents::{BackendStatus, FetchFailure, Fetcher};
use crate::upstream::AddressStatus;
use scoregate_base::clock::Wall;

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
    failovers: u64,
    failovers_denied: u64,
    addresses: Vec<AddressView>,
    last_failure: Option<FailureView>,
    last_success_at: Option<String>,
    next_refresh_at: Option<String>,
    refresh_overdue_seconds: u64,
}

/// An address of the backend.
#[derive(Clone, Debug, Serialize)]
struct AddressView {
    address: String,
    is_standby: bool,
    is_healthy: bool,
    failed_check: Option<String>,
    breaker: &'static str,
    retry_in_seconds: u64,
    consecutive_failures: u32,
    in_flight: usize,
    /// Share of requests while it starts slowly.
    weight_percent: u32,
    requests: u64,
    failures: u64,
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
            retry_in_seconds: seconds(condition.open_time_left),
            consecutive_failures: condition.failures,
            max_concurrent_requests: condition.at_once,
            in_flight: condition.in_flight,
            queued: condition.queued,
            retries: condition.retries,
            failovers: condition.failovers,
            failovers_denied: condition.failovers_denied,
            addresses: condition.addresses.into_iter().map(AddressView::from).collect(),
            last_failure: status.last_failure.map(FailureView::from),
            last_success_at: status.last_success.map(Wall::rfc3339),
            next_refresh_at: status.next_refresh.map(Wall::rfc3339),
            refresh_overdue_seconds: status.overdue.as_secs(),
        }
    }
}

impl From<(Arc<str>, AddressStatus)> for AddressView {
    fn from((name, status): (Arc<str>, AddressStatus)) -> Self {
        Self {
            address: name.to_string(),
            is_standby: status.priority > 0,
            is_healthy: status.is_healthy,
            failed_check: status.failed_check,
            breaker: status.breaker.as_str(),
            retry_in_seconds: seconds(status.open_time_left),
            consecutive_failures: status.consecutive_failures,
            in_flight: status.in_flight,
            weight_percent: status.weight / 10,
            requests: status.requests,
            failures: status.failures,
        }
    }
}

/// Rounded up, so that a retry after this time is not too early.
fn seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)
}

impl From<FetchFailure> for FailureView {
    fn from(FetchFailure { at, document, reason }: FetchFailure) -> Self {
        Self { at: at.rfc3339(), document, reason }
    }
}
