//! The values from which all parts of a server are built.

use rustix::system::uname;
use tokio_util::task::TaskTracker;

use crate::{config::Config, instruments::ServerInstruments};
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

/// The settings, the clock, the metrics, and the tasks that a shutdown waits for.
pub struct StartContext {
    pub config: Config,
    pub clock: Clock,
    pub registry: MetricsRegistry,
    pub instruments: ServerInstruments,
    /// Calls to the ledger, and other work that a shutdown waits for.
    pub calls: TaskTracker,
}

impl StartContext {
    /// Creates a context without tasks.
    pub fn new(config: Config, clock: Clock, registry: MetricsRegistry) -> Self {
        Self {
            instruments: instruments(&config, &registry),
            config,
            clock,
            registry,
            calls: TaskTracker::new(),
        }
    }
}

/// Creates metric handles for the configured tiers. Existing counters keep their values.
pub fn instruments(config: &Config, registry: &MetricsRegistry) -> ServerInstruments {
    let tiers: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    let addresses = config.upstream.addresses();
    ServerInstruments::new(registry, &tiers, &config.endpoints, &addresses)
}

/// The name of this gateway. Default: the host name.
pub fn node_name(config: &Config) -> String {
    config
        .node_name
        .clone()
        .unwrap_or_else(|| uname().nodename().to_string_lossy().into_owned())
}
