//! Metric handles for the ledger.

use metrics::{Counter, Gauge};

use scoregate_observe::telemetry::metrics::{MetricFamily, flag_value};

use super::{
    background::{UnitUse, UnreachableDecision},
    metric_handles::metric_handles,
    store::StoreInstruments,
};

metric_handles! {
    /// Metric handles for quota units.
    pub struct LedgerInstruments;
    pub fn new(registry);

    units: MetricFamily<Counter, UnitUse> = counters "scoregate_quota_units_total",
    grace_share: Gauge = gauge "scoregate_grace_share",
    /// Decisions made while the ledger is unreachable.
    pub(crate) while_unreachable: MetricFamily<Counter, UnreachableDecision> = counters "scoregate_ledger_unreachable_decisions_total",
    /// Requests that wait for a lease.
    pub(crate) lease_waits: Counter = counter "scoregate_lease_waits_total",
    /// Handles of the store, because ledger operations are store operations.
    pub(crate) store: StoreInstruments = value (StoreInstruments::new(registry)),
}

impl LedgerInstruments {
    /// Counts units of a daily quota.
    pub(crate) fn units(&self, what: UnitUse, count: u32) {
        self.units.add(what, u64::from(count));
    }

    /// Sets whether this gateway holds a share of today's grace.
    pub(crate) fn holds_grace_share(&self, holds: bool) {
        self.grace_share.set(flag_value(holds));
    }
}
