//! The parts of a running server that its tasks, a reload and the shutdown use.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{
    accounts::KeyDirectory,
    admin::{DailySuspects, Readiness},
    config::Config,
    documents::DocumentEngine,
    gateway::Gateway,
    mail::QueueMonitor,
    quota::Leases,
    statistics::NodeReporter,
};
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::{
    administration::ServerKeys,
    start_context::{StartContext, node_name},
    storage::StorageGauges,
    watched_files::WatchedFiles,
};

/// The shared parts of a running server. They live until shutdown, except the gateway, which a reload replaces.
pub struct ServerParts {
    pub clock: Clock,
    pub gateway: Arc<ArcSwap<Gateway>>,
    pub engine: DocumentEngine,
    pub leases: Arc<Leases>,
    pub key_directory: Arc<KeyDirectory>,
    pub keys: ServerKeys,
    pub files: Arc<WatchedFiles>,
    pub storage: Arc<StorageGauges>,
    pub readiness: Arc<Readiness>,
    pub reporter: NodeReporter,
    pub suspects: DailySuspects,
    /// The monitor of the mail queue, if mail is sent.
    pub mail_queue: Option<QueueMonitor>,
}

/// Creates the object that reports this gateway to the store.
pub fn reporter(config: &Config, store: Store, gateway: &Gateway) -> NodeReporter {
    let documents = Arc::clone(&gateway.engine.documents);
    NodeReporter::new(
        store,
        &gateway.leases,
        Arc::clone(&gateway.recorders.requests),
        Box::new(move || documents.catalogue_size()),
        node_name(config),
    )
}

/// The daily evaluation of suspects, which only one gateway runs.
pub fn suspects(context: &StartContext, keys: &ServerKeys) -> DailySuspects {
    DailySuspects::new(
        Arc::clone(&keys.administration),
        &context.registry,
        context.config.operator.is_some(),
        context.clock.clone(),
    )
}
