//! Reports this gateway and its usage to the store, at fixed intervals.

use std::sync::Arc;
use std::time::Duration;

use rustix::system::uname;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::NodeReporter;
use crate::config::Config;
use crate::gateway::Gateway;
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::tasks::repeat;

/// Interval between reports. A gateway that misses three is not live.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Interval between recordings of usage.
const RECORD_EVERY: Duration = Duration::from_mins(1);

/// Starts the reports, the first one immediately.
pub(super) fn start(
    background: &TaskTracker,
    store: Arc<dyn Store>,
    gateway: &Gateway,
    config: &Config,
    clock: &Clock,
    stop: &CancellationToken,
) -> Arc<NodeReporter> {
    let requests = Arc::clone(&gateway.recorders.requests);
    let reporter = Arc::new(NodeReporter::new(store, &gateway.leases, requests, node_name(config)));
    let (reports, usage) = (Arc::clone(&reporter), Arc::clone(&reporter));
    let (clock_of_reports, stop_of_reports) = (clock.clone(), stop.clone());
    background.spawn(async move {
        reports.report().await;
        repeat(REPORT_EVERY, clock_of_reports, stop_of_reports, async move || reports.report().await).await;
    });
    let record = async move || usage.record_usage().await;
    background.spawn(repeat(RECORD_EVERY, clock.clone(), stop.clone(), record));
    reporter
}

/// The name of this gateway; default: the host name.
pub(super) fn node_name(config: &Config) -> String {
    config.node_name.clone().unwrap_or_else(|| uname().nodename().to_string_lossy().into_owned())
}
