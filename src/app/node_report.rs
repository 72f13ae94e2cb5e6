//! Reports this gateway and its usage to the store at fixed intervals, and evaluates the use of the last days on one
//! gateway.

use std::sync::Arc;
use std::time::Duration;

use rustix::system::uname;

use crate::admin::DailySuspects;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::statistics::NodeReporter;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::Store;

use super::administration::ServerKeys;
use super::background::Background;

/// Interval between reports. A gateway that misses three is not live.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Interval between recordings of usage.
const RECORD_EVERY: Duration = Duration::from_mins(1);

/// Interval between checks whether an evaluation of the last days is due.
const JUDGE_EVERY: Duration = Duration::from_mins(1);

/// Starts the reports, the first of them immediately, and the daily evaluation.
pub(super) fn start(
    background: &Background,
    store: Arc<dyn Store>,
    gateway: &Gateway,
    config: &Config,
    keys: &ServerKeys,
    registry: &MetricsRegistry,
) -> Arc<NodeReporter> {
    let requests = Arc::clone(&gateway.recorders.requests);
    let documents = Arc::clone(&gateway.engine.documents);
    let catalogue_size = Box::new(move || documents.catalogue_size());
    let leases = &gateway.leases;
    let reporter = Arc::new(NodeReporter::new(
        store,
        leases,
        requests,
        catalogue_size,
        node_name(config),
    ));
    let first = Arc::clone(&reporter);
    let others = background.repeated(REPORT_EVERY, &reporter, |reporter| async move {
        reporter.report().await;
    });
    // The first report is sent immediately, because other gateways divide limits by the number of live gateways.
    background.spawn(async move {
        first.report().await;
        others.await;
    });
    background.repeat(RECORD_EVERY, &reporter, |reporter| async move {
        reporter.record_usage().await;
    });
    let tells_operator = config.operator.is_some();
    let clock = background.clock.clone();
    let suspects = DailySuspects::new(
        Arc::clone(&keys.administration),
        registry,
        tells_operator,
        clock,
    );
    let judging = (Arc::clone(&reporter), Arc::new(suspects));
    background.repeat(JUDGE_EVERY, &judging, |(reporter, suspects)| async move {
        suspects.judge(reporter.is_oldest()).await;
    });
    reporter
}

/// The name of this gateway; default: the host name.
pub(super) fn node_name(config: &Config) -> String {
    config
        .node_name
        .clone()
        .unwrap_or_else(|| uname().nodename().to_string_lossy().into_owned())
}
