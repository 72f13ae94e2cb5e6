//! Status of the backend on the side port: `GET /v1/upstream/show`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    documents::{BackendStatus, FetchFailure},
    upstream::AddressStatus,
};
use scoregate_base::clock::Wall;

/// The status as JSON.
pub fn view(status: BackendStatus) -> Value {
    let condition = status.condition;
    let addresses = condition.addresses.iter().map(address);
    json!({
        "address": status.address,
        "breaker": condition.breaker.as_str(),
        "retry_in_seconds": seconds(condition.open_time_left),
        "consecutive_failures": condition.failures,
        "max_concurrent_requests": condition.at_once,
        "in_flight": condition.in_flight,
        "queued": condition.queued,
        "retries": condition.retries,
        "failovers": condition.failovers,
        "addresses": addresses.collect::<Vec<_>>(),
        "last_failure": status.last_failure.map(failure),
        "last_success_at": status.last_success.map(Wall::rfc3339),
        "next_refresh_at": status.next_refresh.map(Wall::rfc3339),
        "refresh_overdue_seconds": status.overdue.as_secs(),
    })
}

fn failure(failure: FetchFailure) -> Value {
    let FetchFailure {
        at,
        document,
        reason,
    } = failure;
    json!({ "at": at.rfc3339(), "document": document, "reason": reason })
}

fn address(status: &AddressStatus) -> Value {
    json!({
        "address": *status.name,
        "breaker": status.breaker.as_str(),
        "retry_in_seconds": seconds(status.open_time_left),
        "consecutive_failures": status.consecutive_failures,
        "in_flight": status.in_flight,
        "requests": status.requests,
        "failures": status.failures,
    })
}

/// The time in seconds, rounded up, so that a retry after this time is not too early.
fn seconds(time: Duration) -> u64 {
    time.as_millis()
        .div_ceil(1_000)
        .try_into()
        .unwrap_or(u64::MAX)
}
