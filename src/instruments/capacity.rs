//! Metric handles for the limit of concurrent requests.

use metrics::{Counter, Gauge};

use scoregate_observe::telemetry::metrics::MetricFamily;

use super::labels::PoolLabel;
use super::metric_handles::metric_handles;

metric_handles! {
    /// Metric handles for the pools of slots for requests.
    pub struct CapacityInstruments;
    pub fn new(registry);

    slots_in_use: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_in_use",
    slots: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_limit",
    queued: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_queued_total",
    overloaded: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_refused_total",
}

impl CapacityInstruments {
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
}
