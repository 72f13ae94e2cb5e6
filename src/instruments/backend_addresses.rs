//! Metric handles for the addresses of the backend.

use metrics::Gauge;

use crate::upstream::{BreakerState, ProtectionStatus};
use scoregate_observe::telemetry::metrics::{
    Counter, MetricFamily, MetricLabel, MetricsRegistry, flag_value,
};

/// Metric handles for the addresses of the backend, in the configured order.
pub struct AddressMetrics {
    requests: MetricFamily<Counter, AddressLabel>,
    failures: MetricFamily<Counter, AddressLabel>,
    usable: MetricFamily<Gauge, AddressLabel>,
    failovers: Counter,
}

/// The number of an address.
#[derive(Clone, Copy)]
struct AddressLabel(usize);

impl AddressMetrics {
    pub(super) fn new(registry: &MetricsRegistry, addresses: &[String]) -> Self {
        Self {
            requests: registry.counters_of("scoregate_upstream_address_requests_total", addresses),
            failures: registry.counters_of("scoregate_upstream_address_failures_total", addresses),
            usable: registry.gauges_of("scoregate_upstream_address_usable", addresses),
            failovers: registry.counter("scoregate_upstream_failovers_total"),
        }
    }

    pub(super) fn set(&self, status: &ProtectionStatus) {
        self.failovers.absolute(status.failovers);
        for (index, address) in status.addresses.iter().enumerate() {
            let label = AddressLabel(index);
            if let Some(requests) = self.requests.of(label) {
                requests.absolute(address.requests);
            }
            if let Some(failures) = self.failures.of(label) {
                failures.absolute(address.failures);
            }
            if let Some(usable) = self.usable.of(label) {
                let is_usable = address.breaker == BreakerState::Closed;
                usable.set(flag_value(is_usable));
            }
        }
    }
}

impl MetricLabel for AddressLabel {
    const NAME: &'static str = "address";
    fn index(self) -> usize {
        self.0
    }
}
