//! The reports of this gateway and its usage to the store, and the judgement of the use of the last days.

use std::sync::Arc;

use rustix::system::uname;

use crate::admin::DailySuspects;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::statistics::NodeReporter;
use scoregate_store::Store;

use super::administration::ServerKeys;
use super::start_context::StartContext;

/// The reporter of this gateway.
pub(super) fn reporter(config: &Config, store: Arc<dyn Store>, gateway: &Gateway) -> NodeReporter {
    let documents = Arc::clone(&gateway.engine.documents);
    NodeReporter::new(
        store,
        &gateway.leases,
        Arc::clone(&gateway.recorders.requests),
        Box::new(move || documents.catalogue_size()),
        node_name(config),
    )
}

/// The daily judgement, which one gateway makes.
pub(super) fn suspects(context: &StartContext, keys: &ServerKeys) -> DailySuspects {
    DailySuspects::new(
        Arc::clone(&keys.administration),
        &context.registry,
        context.config.operator.is_some(),
        context.clock.clone(),
    )
}

/// The name of this gateway; default: the host name.
pub(super) fn node_name(config: &Config) -> String {
    config
        .node_name
        .clone()
        .unwrap_or_else(|| uname().nodename().to_string_lossy().into_owned())
}
