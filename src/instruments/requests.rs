//! Metric handles for requests.

use std::time::Duration;

use http::StatusCode;
use metrics::{Counter, Gauge, Histogram};

use scoregate_base::{
    limits::LimitRule,
    plans::TierIndex,
    routes::{EndpointTable, codes::ErrorCode},
};
use scoregate_observe::telemetry::metrics::{
    CounterMatrix, FixedLabel as _, MetricFamily, MetricsRegistry, number_value,
};

use super::{
    background::UnitUse,
    labels::{RequestSubject, StatusClass, TierLabel},
    metric_handles::metric_handles,
    outcome::CacheOutcome,
};

metric_handles! {
    /// Metric handles for requests.
    pub struct RequestInstruments;
    fn register(registry, subjects: &[String], tiers: &[String]);

    requests: CounterMatrix<RequestSubject, StatusClass> = value (registry.counter_matrix("scoregate_requests_total", subjects, &StatusClass::words())),
    durations: MetricFamily<Histogram, RequestSubject> = value (registry.histograms_of("scoregate_request_duration_seconds", subjects)),
    tier_requests: CounterMatrix<TierLabel, StatusClass> = value (registry.counter_matrix("scoregate_tier_requests_total", tiers, &StatusClass::words())),
    refusals: MetricFamily<Counter, ErrorCode> = counters "scoregate_refusals_total",
    limited: CounterMatrix<LimitRule, TierLabel> = value (registry.counter_matrix("scoregate_limited_total", &LimitRule::words(), tiers)),
    client_disconnects: Counter = counter "scoregate_client_disconnects_total",
    panics: Counter = counter "scoregate_panics_total",
    in_progress: Gauge = gauge "scoregate_requests_in_progress",
    served: MetricFamily<Counter, CacheOutcome> = counters "scoregate_documents_served_total",
    ages: Histogram = histogram "scoregate_document_age_seconds",
    not_modified: Counter = counter "scoregate_not_modified_total",
    units: MetricFamily<Counter, UnitUse> = counters "scoregate_quota_units_total",
    keys: Gauge = gauge "scoregate_keys",
}

/// Counts a request as waiting until this value is dropped.
pub struct WaitingRequest<'i>(&'i Gauge);

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The measurements of an answered request.
#[derive(Clone, Copy, Debug)]
pub struct RequestObservation {
    pub subject: RequestSubject,
    pub tier: Option<TierIndex>,
    pub status: StatusCode,
    pub took: Duration,
    /// Source of the document.
    pub outcome: Option<CacheOutcome>,
    /// Time since the backend confirmed the document.
    pub age: Option<Duration>,
    /// The error code, and the exhausted rule if there is one.
    pub refused: Option<(ErrorCode, Option<LimitRule>)>,
}

impl RequestInstruments {
    /// Creates all handles. `tiers` are the names of the configured tiers, in the configured order.
    pub fn new(registry: &MetricsRegistry, tiers: &[String], endpoints: &EndpointTable) -> Self {
        // Requests without a valid key have no tier.
        let tiers = [&["none".to_owned()], tiers].concat();
        Self::register(registry, &RequestSubject::words(endpoints), &tiers)
    }

    /// Counts a waiting request until the result is dropped.
    pub(crate) fn request_waits(&self) -> WaitingRequest<'_> {
        self.in_progress.increment(1.0);
        WaitingRequest(&self.in_progress)
    }

    /// Records a finished request. `observation` is `None` if the client disconnected before the response.
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

    /// Counts a panic in a request.
    pub(crate) fn panicked(&self) {
        self.panics.increment(1);
    }

    /// Sets the number of known keys.
    pub(crate) fn keys(&self, known: usize) {
        self.keys.set(number_value(known as u64));
    }
}
