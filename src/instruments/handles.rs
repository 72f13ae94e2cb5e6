//! Metric handles for requests and background tasks.

use std::time::Duration;

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram};

use crate::upstream::{BreakerState, ProtectionStatus};
use scoregate_base::clock::Clock;
use scoregate_base::limits::LimitRule;
use scoregate_base::plans::TierIndex;
use scoregate_base::routes::EndpointTable;
use scoregate_base::routes::codes::ErrorCode;
use scoregate_observe::telemetry::metrics::{
    CounterMatrix, FixedLabel as _, MetricFamily, MetricsRegistry,
};

use super::backend_addresses::AddressMetrics;
use super::background::{FetchEnd, SharedFetchEnd, StoreWork, UnitUse, UnreachableDecision};
use super::labels::{PoolLabel, RequestSubject, StatusClass, TierLabel};
use super::leaks::LeakOutcome;
use super::mail::MailMetrics;
use super::metric_handles::metric_handles;
use super::outcome::CacheOutcome;
use super::shared_store::SharedStoreMetrics;

metric_handles! {
    /// Metric handles for requests and their background tasks.
    pub struct Instruments;
    fn register(registry, subjects: &[String], tiers: &[String]);

    requests: CounterMatrix<RequestSubject, StatusClass> = value (registry.counter_matrix("scoregate_requests_total", subjects, &StatusClass::words())),
    durations: MetricFamily<Histogram, RequestSubject> = value (registry.histograms_of("scoregate_request_duration_seconds", subjects)),
    tier_requests: CounterMatrix<TierLabel, StatusClass> = value (registry.counter_matrix("scoregate_tier_requests_total", tiers, &StatusClass::words())),
    refusals: MetricFamily<Counter, ErrorCode> = counters "scoregate_refusals_total",
    limited: CounterMatrix<LimitRule, TierLabel> = value (registry.counter_matrix("scoregate_limited_total", &LimitRule::words(), tiers)),
    client_disconnects: Counter = counter "scoregate_client_disconnects_total",
    panics: Counter = counter "scoregate_panics_total",
    in_progress: Gauge = gauge "scoregate_requests_in_progress",
    slots_in_use: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_in_use",
    slots: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_limit",
    queued: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_queued_total",
    overloaded: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_refused_total",
    served: MetricFamily<Counter, CacheOutcome> = counters "scoregate_documents_served_total",
    ages: Histogram = histogram "scoregate_document_age_seconds",
    not_modified: Counter = counter "scoregate_not_modified_total",
    documents: Gauge = gauge "scoregate_cache_documents",
    bytes: Gauge = gauge "scoregate_cache_bytes",
    fetches_in_progress: Gauge = gauge "scoregate_fetches_in_progress",
    waiters: Histogram = histogram "scoregate_fetch_waiters",
    upstream_calls: MetricFamily<Counter, FetchEnd> = counters "scoregate_upstream_requests_total",
    shared_fetches: MetricFamily<Counter, SharedFetchEnd> = counters "scoregate_shared_fetches_total",
    upstream_durations: Histogram = histogram "scoregate_upstream_duration_seconds",
    upstream_retries: Counter = counter "scoregate_upstream_retries_total",
    upstream_queued: Gauge = gauge "scoregate_upstream_queue_length",
    breaker_state: Gauge = gauge "scoregate_upstream_breaker_state",
    addresses: Option<AddressMetrics> = value (None),
    refreshes: Counter = counter "scoregate_refreshes_total",
    refresh_overdue: Gauge = gauge "scoregate_refresh_overdue_seconds",
    next_refresh: Gauge = gauge "scoregate_next_refresh_seconds",
    mirror_bytes: Gauge = gauge "scoregate_disk_mirror_bytes",
    mirror_failures: Counter = counter "scoregate_disk_mirror_failures_total",
    units: MetricFamily<Counter, UnitUse> = counters "scoregate_quota_units_total",
    store_durations: MetricFamily<Histogram, StoreWork> = histograms "scoregate_store_duration_seconds",
    pub(crate) store_failures: MetricFamily<Counter, StoreWork> = counters "scoregate_store_failures_total",
    store_damaged: Gauge = gauge "scoregate_store_damaged",
    store_file_invalid: Gauge = gauge "scoregate_store_file_invalid",
    ledger_unreachable: Gauge = gauge "scoregate_ledger_unreachable",
    grace_share: Gauge = gauge "scoregate_grace_share",
    /// Decisions made while the ledger is unreachable.
    pub(crate) while_unreachable: MetricFamily<Counter, UnreachableDecision> = counters "scoregate_ledger_unreachable_decisions_total",
    /// Requests that wait for a lease.
    pub(crate) lease_waits: Counter = counter "scoregate_lease_waits_total",
    unreadable_records: Gauge = gauge "scoregate_store_unreadable_records",
    keys: Gauge = gauge "scoregate_keys",
    pub(crate) leaked_keys: MetricFamily<Counter, LeakOutcome> = counters "scoregate_leaked_keys_total",
    pub(crate) mail: MailMetrics = value (MailMetrics::new(registry)),
    pub(crate) shared_store: SharedStoreMetrics = value (SharedStoreMetrics::new(registry)),
}

/// A request that is counted while it waits.
pub(crate) struct WaitingRequest<'i>(&'i Gauge);

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The measurements of an answered request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestObservation {
    pub(crate) subject: RequestSubject,
    pub(crate) tier: Option<TierIndex>,
    pub(crate) status: StatusCode,
    pub(crate) took: Duration,
    /// Source of the document.
    pub(crate) outcome: Option<CacheOutcome>,
    /// Time since the backend confirmed the document.
    pub(crate) age: Option<Duration>,
    /// Error code, and the exhausted rule if any.
    pub(crate) refused: Option<(ErrorCode, Option<LimitRule>)>,
}

impl Instruments {
    /// Creates all handles. `tiers` are the names of the configured tiers, in their order.
    pub fn new(registry: &MetricsRegistry, tiers: &[String], endpoints: &EndpointTable) -> Self {
        // Requests without a valid key have no tier.
        let tiers = [&["none".to_owned()], tiers].concat();
        Self::register(registry, &RequestSubject::words(endpoints), &tiers)
    }

    /// The same with handles for the addresses of the backend, in their order.
    #[must_use]
    pub fn with_addresses(self, registry: &MetricsRegistry, addresses: &[String]) -> Self {
        Self {
            addresses: Some(AddressMetrics::new(registry, addresses)),
            ..self
        }
    }

    /// Counts a request that waits, until the result is dropped.
    pub(crate) fn request_waits(&self) -> WaitingRequest<'_> {
        self.in_progress.increment(1.0);
        WaitingRequest(&self.in_progress)
    }

    /// Records a finished request: answered, or with `None` abandoned by its client.
    pub(crate) fn record(&self, observation: Option<&RequestObservation>) {
        let Some(observation) = observation else {
            self.client_disconnects.increment(1);
            return;
        };
        let class = StatusClass::of(observation.status);
        let tier = TierLabel(observation.tier);
        self.requests.count(observation.subject, class);
        self.tier_requests.count(tier, class);
        if let Some(duration) = self.durations.of(observation.subject) {
            duration.record(observation.took.as_secs_f64());
        }
        if let Some((code, rule)) = observation.refused {
            self.refusals.count(code);
            if let Some(rule) = rule {
                self.limited.count(rule, tier);
            }
            return;
        }
        if let Some(outcome) = observation.outcome {
            self.served.count(outcome);
            if observation.status == StatusCode::OK {
                self.units.count(UnitUse::Delivered);
            } else {
                self.not_modified.increment(1);
            }
        }
        if let Some(age) = observation.age {
            self.ages.record(age.as_secs_f64());
        }
    }

    /// Sets the slots in use of a pool.
    pub(crate) fn slots_in_use(&self, pool: PoolLabel, in_use: usize) {
        if let Some(gauge) = self.slots_in_use.of(pool) {
            gauge.set(f64::from(u32::try_from(in_use).unwrap_or(u32::MAX)));
        }
    }

    /// Sets the number of slots of a pool.
    pub(crate) fn slots(&self, pool: PoolLabel, slots: usize) {
        if let Some(gauge) = self.slots.of(pool) {
            gauge.set(f64::from(u32::try_from(slots).unwrap_or(u32::MAX)));
        }
    }

    /// Counts a request that waits for a slot.
    pub(crate) fn queued(&self, pool: PoolLabel) {
        self.queued.count(pool);
    }

    /// Counts a request refused for lack of a slot.
    pub(crate) fn overloaded(&self, pool: PoolLabel) {
        self.overloaded.count(pool);
    }

    /// Counts a panic in a request.
    pub(crate) fn panicked(&self) {
        self.panics.increment(1);
    }

    /// Counts the result of asking other gateways for a document.
    pub(crate) fn shared_fetch(&self, end: SharedFetchEnd) {
        self.shared_fetches.count(end);
    }

    /// Records an upstream request and the number of requests that waited for it.
    pub(crate) fn fetched(&self, end: FetchEnd, took: Duration, waiters: usize) {
        self.upstream_calls.count(end);
        if end.was_sent() {
            self.upstream_durations.record(took.as_secs_f64());
        }
        self.waiters
            .record(u32::try_from(waiters).unwrap_or(u32::MAX));
    }

    /// Sets the state of circuit breaker and queue.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge of a count far below 2^52"
    )]
    pub(crate) fn upstream(&self, status: &ProtectionStatus) {
        if let Some(addresses) = &self.addresses {
            addresses.set(status);
        }
        self.upstream_retries.absolute(status.retries);
        self.upstream_queued.set(status.queued as f64);
        self.breaker_state.set(match status.breaker {
            BreakerState::Closed => 0.0,
            BreakerState::HalfOpen => 1.0,
            BreakerState::Open => 2.0,
        });
    }

    /// Counts a detected refresh of the backend.
    pub(crate) fn refreshed(&self) {
        self.refreshes.increment(1);
    }

    /// Sets how long the next refresh is overdue, or the time until it is due.
    pub(crate) fn next_refresh(&self, overdue: Duration, remaining: Duration) {
        self.refresh_overdue.set(overdue.as_secs_f64());
        self.next_refresh.set(remaining.as_secs_f64());
    }

    /// Sets the size of the disk mirror.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge of a count far below 2^52"
    )]
    pub(crate) fn mirror_size(&self, bytes: u64) {
        self.mirror_bytes.set(bytes as f64);
    }

    /// Counts a document that could not be written to or removed from the disk mirror.
    pub(crate) fn mirror_failed(&self) {
        self.mirror_failures.increment(1);
    }

    /// Sets the size of the cache.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge of counts far below 2^52"
    )]
    pub(crate) fn cache_size(&self, documents: u64, bytes: u64, fetches_in_progress: usize) {
        self.documents.set(documents as f64);
        self.bytes.set(bytes as f64);
        self.fetches_in_progress.set(fetches_in_progress as f64);
    }

    /// Counts units of a daily quota.
    pub(crate) fn units(&self, what: UnitUse, count: u32) {
        self.units.add(what, u64::from(count));
    }

    /// Sets whether the store file was deleted or replaced.
    pub(crate) fn store_file_invalid(&self, invalid: bool) {
        self.store_file_invalid.set(f64::from(u8::from(invalid)));
    }

    pub(crate) fn store_is_damaged(&self, damaged: bool) {
        self.store_damaged.set(f64::from(u8::from(damaged)));
    }

    /// Sets whether this gateway holds a share of today's grace.
    pub(crate) fn holds_grace_share(&self, holds: bool) {
        self.grace_share.set(f64::from(u8::from(holds)));
    }

    pub(crate) fn ledger_unreachable(&self, unreachable: bool) {
        self.ledger_unreachable
            .set(f64::from(u8::from(unreachable)));
    }

    /// Runs a store operation, records its duration, and counts it if the store failed.
    pub(crate) async fn measured<T>(
        &self,
        clock: &Clock,
        operation: StoreWork,
        running: impl Future<Output = Result<T, scoregate_store::StoreError>>,
    ) -> Result<T, scoregate_store::StoreError> {
        let started = clock.mono();
        let done = running.await;
        self.store_operation(operation, clock.mono().since(started));
        if done
            .as_ref()
            .is_err_and(scoregate_store::StoreError::is_failure)
        {
            self.store_failures.count(operation);
        }
        done
    }

    /// Records the duration of a store operation, successful or not.
    pub(crate) fn store_operation(&self, operation: StoreWork, time: Duration) {
        if let Some(durations) = self.store_durations.of(operation) {
            durations.record(time.as_secs_f64());
        }
    }

    /// Sets the number of known keys.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge of counts far below 2^52"
    )]
    pub(crate) fn keys(&self, known: usize) {
        self.keys.set(known as f64);
    }

    /// Counts unusable records of the store.
    pub(crate) fn unreadable_records(&self, records: usize) {
        self.unreadable_records
            .set(f64::from(u32::try_from(records).unwrap_or(u32::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_instruments_are_declared() {
        let tiers = ["free", "pro", "developer", "teams", "enterprise"].map(String::from);
        let registry = MetricsRegistry::default();
        let instruments = Instruments::new(&registry, &tiers, &EndpointTable::default())
            .with_addresses(&registry, &["a:80".into()]);
        instruments.units(UnitUse::Leased, 3);
    }
}
