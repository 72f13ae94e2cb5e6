//! The values that all parts of a server are built from.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::instruments::Instruments;
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

/// The settings, the clock, the metrics, and the tasks that a shutdown waits for.
pub(super) struct StartContext {
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) registry: MetricsRegistry,
    pub(super) instruments: Arc<Instruments>,
    /// Calls to the ledger, and other work that a shutdown waits for.
    pub(super) calls: TaskTracker,
}

impl StartContext {
    /// Without tasks.
    pub(super) fn new(config: Config, clock: Clock, registry: MetricsRegistry) -> Self {
        Self {
            instruments: instruments(&config, &registry),
            config,
            clock,
            registry,
            calls: TaskTracker::new(),
        }
    }
}

/// Handles for the configured tiers; existing counts continue.
pub(super) fn instruments(config: &Config, registry: &MetricsRegistry) -> Arc<Instruments> {
    let tiers: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    let instruments = Instruments::new(registry, &tiers, &config.endpoints);
    Arc::new(instruments.with_addresses(registry, &config.upstream.addresses()))
}
