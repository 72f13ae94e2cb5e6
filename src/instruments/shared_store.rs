//! Metric handles for the database that several gateways share.

use metrics::{Counter, Gauge};

use crate::store::{DatabaseStatus, ExchangeCounts, HotTable};
use crate::telemetry::metrics::{MetricFamily, MetricLabel, MetricsRegistry};

/// Metric handles for the shared store.
pub(crate) struct SharedStoreMetrics {
    standby_missing: Gauge,
    live_rows: MetricFamily<Gauge, HotTable>,
    dead_rows: MetricFamily<Gauge, HotTable>,
    exchanges: Counter,
    exchange_reports: Counter,
}

impl SharedStoreMetrics {
    pub(super) fn new(registry: &MetricsRegistry) -> Self {
        let tables = HotTable::ALL.map(|table| table.name().to_owned());
        Self {
            standby_missing: registry.gauge("scoregate_store_standby_missing"),
            live_rows: registry.gauges("scoregate_store_live_rows", &tables),
            dead_rows: registry.gauges("scoregate_store_dead_rows", &tables),
            exchanges: registry.counter("scoregate_store_exchanges_total"),
            exchange_reports: registry.counter("scoregate_store_exchange_reports_total"),
        }
    }

    /// Sets the state of the database.
    #[expect(clippy::cast_precision_loss, reason = "gauges of counts far below 2^52")]
    pub(crate) fn status(&self, status: &DatabaseStatus) {
        self.standby_missing.set(f64::from(u8::from(!status.is_synchronous)));
        for rows in &status.tables {
            if let (Some(live), Some(dead)) = (self.live_rows.of(rows.table), self.dead_rows.of(rows.table)) {
                live.set(rows.live as f64);
                dead.set(rows.dead as f64);
            }
        }
    }

    /// Sets the number of exchanges of the ledger.
    pub(crate) fn exchanges(&self, counts: ExchangeCounts) {
        self.exchanges.absolute(counts.transactions);
        self.exchange_reports.absolute(counts.reports);
    }
}

impl MetricLabel for HotTable {
    const NAME: &'static str = "table";
    fn index(self) -> usize {
        self as usize
    }
}
