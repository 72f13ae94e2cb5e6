//! Metric handles for the limit on concurrent requests.

use metrics::{Counter, Gauge};

use scoregate_observe::telemetry::metrics::{MetricFamily, number_value};

use super::{labels::PoolLabel, metric_handles::metric_handles};

metric_handles! {
    /// Metric handles for the pools of concurrency slots.
    pub struct CapacityInstruments;
    pub fn new(registry);

    slots_in_use: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_in_use",
    slots: MetricFamily<Gauge, PoolLabel> = gauges "scoregate_concurrency_limit",
    pub(crate) queued: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_queued_total",
    pub(crate) overloaded: MetricFamily<Counter, PoolLabel> = counters "scoregate_overload_refused_total",
}

impl CapacityInstruments {
    /// Sets the number of slots in use in a pool.
    pub(crate) fn slots_in_use(&self, pool: PoolLabel, in_use: usize) {
        if let Some(gauge) = self.slots_in_use.of(pool) {
            gauge.set(number_value(in_use as u64));
        }
    }

    /// Sets the number of slots of a pool.
    pub(crate) fn slots(&self, pool: PoolLabel, slots: usize) {
        if let Some(gauge) = self.slots.of(pool) {
            gauge.set(number_value(slots as u64));
        }
    }
}
