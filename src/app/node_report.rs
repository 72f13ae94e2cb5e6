//! Reports this gateway and its usage to the store, at fixed intervals.

use std::sync::Arc;
use std::time::Duration;

use rustix::system::uname;

use crate::accounts::NodeReporter;
use crate::config::Config;
use crate::gateway::Gateway;
use scoregate_store::Store;

use super::background::Background;

/// Interval between reports. A gateway that misses three is not live.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Interval between recordings of usage.
const RECORD_EVERY: Duration = Duration::from_mins(1);

/// Starts the reports, the first one immediately.
pub(super) fn start(
    background: &Background,
    store: Arc<dyn Store>,
    gateway: &Gateway,
    config: &Config,
) -> Arc<NodeReporter> {
    let requests = Arc::clone(&gateway.recorders.requests);
    let documents = Arc::clone(&gateway.engine.documents);
    let catalogue_size = Box::new(move || documents.catalogue_size());
    let leases = &gateway.leases;
    let reporter = Arc::new(NodeReporter::new(store, leases, requests, catalogue_size, node_name(config)));
    let first = Arc::clone(&reporter);
    let others =
        background.repeated(REPORT_EVERY, &reporter, |reporter| async move { reporter.report().await });
    background.spawn(async move {
        first.report().await;
        others.await;
    });
    background.repeat(RECORD_EVERY, &reporter, |reporter| async move { reporter.record_usage().await });
    reporter
}

/// The name of this gateway; default: the host name.
pub(super) fn node_name(config: &Config) -> String {
    config.node_name.clone().unwrap_or_else(|| uname().nodename().to_string_lossy().into_owned())
}
