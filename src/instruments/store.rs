//! Metric handles for the store.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::{MetricFamily, flag_value, number_value};
use scoregate_store::StoreError;

use super::{
    background::StoreWork, leaks::LeakOutcome, metric_handles::metric_handles,
    shared_store::SharedStoreMetrics,
};

metric_handles! {
    /// Metric handles for the store and its keys.
    pub struct StoreInstruments;
    pub fn new(registry);

    durations: MetricFamily<Histogram, StoreWork> = histograms "scoregate_store_duration_seconds",
    pub(crate) failures: MetricFamily<Counter, StoreWork> = counters "scoregate_store_failures_total",
    damaged: Gauge = gauge "scoregate_store_damaged",
    file_invalid: Gauge = gauge "scoregate_store_file_invalid",
    ledger_unreachable: Gauge = gauge "scoregate_ledger_unreachable",
    unreadable_records: Gauge = gauge "scoregate_store_unreadable_records",
    keys: Gauge = gauge "scoregate_keys",
    pub(crate) leaked_keys: MetricFamily<Counter, LeakOutcome> = counters "scoregate_leaked_keys_total",
    pub(crate) shared: SharedStoreMetrics = value (SharedStoreMetrics::new(registry)),
}

impl StoreInstruments {
    /// Runs a store operation, records its duration, and counts a failure of the store.
    pub(crate) async fn measured<T>(
        &self,
        clock: &Clock,
        operation: StoreWork,
        running: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let started = clock.mono();
        let done = running.await;
        self.operation(operation, clock.mono().since(started));
        if done.as_ref().is_err_and(StoreError::is_failure) {
            self.failures.count(operation);
        }
        done
    }

    /// Records the duration of a store operation, whether or not it succeeded.
    pub(crate) fn operation(&self, operation: StoreWork, time: Duration) {
        if let Some(durations) = self.durations.of(operation) {
            durations.record(time.as_secs_f64());
        }
    }

    /// Sets whether the store file was deleted or replaced.
    pub(crate) fn file_invalid(&self, invalid: bool) {
        self.file_invalid.set(flag_value(invalid));
    }

    pub(crate) fn is_damaged(&self, damaged: bool) {
        self.damaged.set(flag_value(damaged));
    }

    pub(crate) fn ledger_unreachable(&self, unreachable: bool) {
        self.ledger_unreachable.set(flag_value(unreachable));
    }

    /// Sets the number of unusable records in the store.
    pub(crate) fn unreadable_records(&self, records: usize) {
        self.unreadable_records.set(number_value(records as u64));
    }

    /// Sets the number of known keys.
    pub(crate) fn keys(&self, known: usize) {
        self.keys.set(number_value(known as u64));
    }
}
