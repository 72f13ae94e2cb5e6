//! Metric handles for documents: the cache, fetches, the backend, and the disk mirror.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use crate::upstream::{BreakerState, ProtectionStatus};
use scoregate_observe::telemetry::metrics::{MetricFamily, number_value};

use super::{
    backend_addresses::AddressMetrics,
    background::{FetchEnd, SharedFetchEnd},
    metric_handles::metric_handles,
};

metric_handles! {
    /// Metric handles for documents and the backend. `addresses` are the addresses of the backend, in the configured
    /// order.
    pub struct DocumentInstruments;
    pub fn new(registry, addresses: &[String]);

    documents: Gauge = gauge "scoregate_cache_documents",
    bytes: Gauge = gauge "scoregate_cache_bytes",
    fetches_in_progress: Gauge = gauge "scoregate_fetches_in_progress",
    waiters: Histogram = histogram "scoregate_fetch_waiters",
    pub(crate) panics: Counter = counter "scoregate_panics_total",
    upstream_calls: MetricFamily<Counter, FetchEnd> = counters "scoregate_upstream_requests_total",
    pub(crate) shared_fetches: MetricFamily<Counter, SharedFetchEnd> = counters "scoregate_shared_fetches_total",
    upstream_durations: Histogram = histogram "scoregate_upstream_duration_seconds",
    upstream_retries: Counter = counter "scoregate_upstream_retries_total",
    upstream_queued: Gauge = gauge "scoregate_upstream_queue_length",
    breaker_state: Gauge = gauge "scoregate_upstream_breaker_state",
    addresses: AddressMetrics = value (AddressMetrics::new(registry, addresses)),
    pub(crate) refreshes: Counter = counter "scoregate_refreshes_total",
    refresh_overdue: Gauge = gauge "scoregate_refresh_overdue_seconds",
    next_refresh: Gauge = gauge "scoregate_next_refresh_seconds",
    mirror_bytes: Gauge = gauge "scoregate_disk_mirror_bytes",
    pub(crate) mirror_failures: Counter = counter "scoregate_disk_mirror_failures_total",
}

impl DocumentInstruments {
    /// Records an upstream request and the number of requests that waited for it.
    pub(crate) fn fetched(&self, end: FetchEnd, took: Duration, waiters: usize) {
        self.upstream_calls.count(end);
        if end.was_sent() {
            self.upstream_durations.record(took.as_secs_f64());
        }
        self.waiters
            .record(u32::try_from(waiters).unwrap_or(u32::MAX));
    }

    /// Sets the state of the circuit breaker and the queue.
    pub(crate) fn upstream(&self, status: &ProtectionStatus) {
        self.addresses.set(status);
        self.upstream_retries.absolute(status.retries);
        self.upstream_queued.set(number_value(status.queued as u64));
        self.breaker_state.set(match status.breaker {
            BreakerState::Closed => 0.0,
            BreakerState::HalfOpen => 1.0,
            BreakerState::Open => 2.0,
        });
    }

    /// Sets how long the next refresh has been overdue, and how long remains until it is due. At least one of them is zero.
    pub(crate) fn next_refresh(&self, overdue: Duration, remaining: Duration) {
        self.refresh_overdue.set(overdue.as_secs_f64());
        self.next_refresh.set(remaining.as_secs_f64());
    }

    /// Sets the size of the disk mirror.
    pub(crate) fn mirror_size(&self, bytes: u64) {
        self.mirror_bytes.set(number_value(bytes));
    }

    /// Sets the size of the cache.
    pub(crate) fn cache_size(&self, documents: u64, bytes: u64, fetches_in_progress: usize) {
        self.documents.set(number_value(documents));
        self.bytes.set(number_value(bytes));
        self.fetches_in_progress
            .set(number_value(fetches_in_progress as u64));
    }
}
