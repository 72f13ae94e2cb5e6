//! Metric handles for the database that several gateways share.

use std::{num::NonZeroU32, time::Duration};

use metrics::{Counter, Gauge};

use scoregate_observe::telemetry::metrics::{MetricFamily, flag_value, number_value};
use scoregate_store::{DatabaseStatus, ExchangeCounts, HotTable};

use super::metric_handles::metric_handles;

metric_handles! {
    /// Metric handles for the shared store.
    pub struct SharedStoreMetrics;
    pub(super) fn new(registry);

    standby_missing: Gauge = gauge "scoregate_store_standby_missing",
    live_rows: MetricFamily<Gauge, HotTable> = gauges "scoregate_store_live_rows",
    dead_rows: MetricFamily<Gauge, HotTable> = gauges "scoregate_store_dead_rows",
    exchanges: Counter = counter "scoregate_store_exchanges_total",
    exchange_reports: Counter = counter "scoregate_store_exchange_reports_total",
    changes_age: Gauge = gauge "scoregate_store_changes_age_seconds",
    /// The difference between the clocks of the store and this machine, in seconds.
    pub(crate) clock_offset: Gauge = gauge "scoregate_store_clock_offset_seconds",
    serves_local_copy: Gauge = gauge "scoregate_store_local_copy",
    local_copy_age: Gauge = gauge "scoregate_store_local_copy_age_seconds",
    gateways: Gauge = gauge "scoregate_fleet_gateways",
    gateways_limit: Gauge = gauge "scoregate_fleet_gateways_limit",
}

impl SharedStoreMetrics {
    /// Sets the state of the database.
    pub(crate) fn status(&self, status: &DatabaseStatus) {
        self.standby_missing.set(flag_value(!status.is_synchronous));
        for table in HotTable::ALL {
            let rows = status.tables.iter().find(|rows| rows.table == table);
            if let Some(live) = self.live_rows.of(table)
                && let Some(dead) = self.dead_rows.of(table)
            {
                live.set(rows.map_or(f64::NAN, |rows| number_value(rows.live)));
                dead.set(rows.map_or(f64::NAN, |rows| number_value(rows.dead)));
            }
        }
    }

    /// Sets the number of ledger exchanges and of the reports in them.
    pub(crate) fn exchanges(&self, counts: ExchangeCounts) {
        self.exchanges.absolute(counts.transactions);
        self.exchange_reports.absolute(counts.reports);
    }

    /// Sets the number of live gateways on the store, and the configured maximum.
    pub(crate) fn fleet(&self, live: u32, limit: NonZeroU32) {
        self.gateways.set(f64::from(live));
        self.gateways_limit.set(f64::from(limit.get()));
    }

    /// Sets the time since the change feed of the store was last read.
    pub(crate) fn changes_age(&self, age: Duration) {
        self.changes_age.set(age.as_secs_f64());
    }

    /// Sets whether keys come from the local copy of the store.
    pub(crate) fn serves_local_copy(&self, serves: bool) {
        self.serves_local_copy.set(flag_value(serves));
    }

    /// Sets the age of the local copy on disk: the time since its contents were read from the store.
    pub(crate) fn local_copy_age(&self, age: Duration) {
        self.local_copy_age.set(age.as_secs_f64());
    }
}
