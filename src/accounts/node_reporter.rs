//! Reports this gateway to the store: that it runs, what it holds, the units that it delivered, and the requests that it
//! answered. For information only;
//! requests never wait for it.

use std::num::NonZeroU32;
use std::sync::Arc;

use crate::instruments::{Instruments, StoreWork};
use scoregate_base::clock::{Clock, Day, Wall};
use scoregate_store::{NodeList, NodeRegistry, NodeStatus, RequestStore, Store, StoreError, UsageStore};

use super::delivered_units::DeliveredUnits;
use super::leasing::Leases;
use super::request_counter::RequestCounter;

/// Reports this gateway.
pub struct NodeReporter {
    nodes: Arc<dyn NodeRegistry>,
    usage: Arc<dyn UsageStore>,
    totals: Arc<dyn RequestStore>,
    /// Identifies this process in the store.
    node: u64,
    /// The largest number of gateways on the store.
    max_gateways: NonZeroU32,
    delivered: Arc<DeliveredUnits>,
    requests: Arc<RequestCounter>,
    clock: Clock,
    instruments: Arc<Instruments>,
    name: String,
    version: &'static str,
    started_at: Wall,
    /// One report at a time, so that none follows the removal.
    progress: tokio::sync::Mutex<ReportProgress>,
}

struct ReportProgress {
    usage_recorded_at: Wall,
    is_failing: bool,
    is_removed: bool,
}

impl NodeReporter {
    /// Reports under a name, which several gateways may have.
    pub fn new(
        store: Arc<dyn Store>,
        leases: &Leases,
        requests: Arc<RequestCounter>,
        clock: Clock,
        instruments: Arc<Instruments>,
        name: String,
        version: &'static str,
    ) -> Self {
        let started_at = clock.now().wall;
        let progress = ReportProgress { usage_recorded_at: started_at, is_failing: false, is_removed: false };
        let progress = tokio::sync::Mutex::new(progress);
        let (nodes, usage) = (Arc::clone(&store) as _, Arc::clone(&store) as _);
        let totals = store;
        Self {
            nodes,
            usage,
            totals,
            node: leases.calls().node,
            max_gateways: leases.gateways().unwrap_or(NonZeroU32::MIN),
            delivered: Arc::clone(&leases.calls().delivered),
            requests,
            clock,
            instruments,
            name,
            version,
            started_at,
            progress,
        }
    }

    /// Reports the status of this gateway, and counts the live ones. A failure is logged when it begins. Called every few
    /// seconds.
    pub async fn report(&self) {
        let mut progress = self.progress.lock().await;
        if progress.is_removed {
            return;
        }
        match self.exchange(progress.usage_recorded_at).await {
            Ok(nodes) => {
                let now = self.clock.now().wall;
                self.instruments.shared_store().fleet(nodes.live(now).count(), self.max_gateways);
                if std::mem::take(&mut progress.is_failing) {
                    tracing::info!("this gateway is listed in the store again");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut progress.is_failing, true) {
                    tracing::warn!(%error, "this gateway cannot be listed in the store; requests are not affected");
                }
            }
        }
    }

    /// Records the units that this gateway delivered, and the requests that it answered, since the last call. Called every
    /// minute.
    pub async fn record_usage(&self) {
        let mut progress = self.progress.lock().await;
        self.record(&mut progress).await;
    }

    /// Records the last units and requests, and removes this gateway from the list. Called once requests have ended.
    pub async fn stop(&self) {
        let mut progress = self.progress.lock().await;
        progress.is_removed = true;
        // The store is not asked again if it does not answer, so that a shutdown waits for it once.
        if self.record(&mut progress).await
            && let Err(error) = self.nodes.remove_node(self.node).await
        {
            tracing::warn!(%error, "this gateway remains in the list of the store for a day");
        }
    }

    async fn exchange(&self, usage_recorded_at: Wall) -> Result<NodeList, StoreError> {
        let now = self.clock.now().wall;
        let status = NodeStatus {
            node: self.node,
            name: self.name.clone(),
            version: self.version.into(),
            started_at: self.started_at,
            last_seen_at: now,
            units_held: self.delivered.held(now.day()),
            usage_recorded_at,
        };
        self.nodes.report_node(status).await?;
        self.nodes.nodes().await
    }

    /// Returns whether everything is recorded.
    async fn record(&self, progress: &mut ReportProgress) -> bool {
        let started = self.clock.now();
        let recording = self.record_all(started.wall.day());
        match self.instruments.measured(&self.clock, StoreWork::Usage, recording).await {
            Ok(()) => progress.usage_recorded_at = started.wall,
            Err(error) => {
                tracing::warn!(%error, "usage was not recorded; the next attempt includes it");
                return false;
            }
        }
        true
    }

    async fn record_all(&self, today: Day) -> Result<(), StoreError> {
        self.delivered.record(&*self.usage, self.node, today).await?;
        self.requests.record(&*self.totals, self.node, today).await
    }
}
