//! Reports this gateway to the store: that it is live, the units that it holds, and the requests that it answered. The
//! reports are for information only. Requests never wait for them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::instruments::StoreWork;
use scoregate_base::{
    clock::{Now, Wall},
    evidence::HourEvidence,
};
use scoregate_store::{NodeList, NodeStatus, Store, StoreError};

use crate::{
    quota::{Leases, LedgerCalls},
    statistics::request_counter::RequestCounter,
};

/// Time after the end of an hour by which all its requests have been counted.
const RECORDED_AFTER: Duration = Duration::from_mins(2);
/// Time after the end of an hour by which all live gateways have recorded it.
const MERGED_AFTER: Duration = Duration::from_mins(6);
/// Maximum number of hours that are merged in one transaction.
// This limits the size of a transaction after a long outage.
const MERGED_AT_ONCE: usize = 500;

/// Reports this gateway.
pub struct NodeReporter {
    store: Store,
    /// The ledger calls, which contain the number of this process and the units that it holds.
    calls: Arc<LedgerCalls>,
    requests: Arc<RequestCounter>,
    catalogue_size: CatalogueSize,
    name: String,
    started_at: Wall,
    is_oldest: AtomicBool,
    /// The lock allows only one report at a time, so that no report follows the removal of this gateway.
    progress: tokio::sync::Mutex<ReportProgress>,
}

/// Returns the current size of the catalogue, as the number of positions in evidence of use.
pub type CatalogueSize = Box<dyn Fn() -> u16 + Send + Sync>;

struct ReportProgress {
    usage_recorded_at: Wall,
    /// Evidence from all hours before this one has been merged.
    merged_until: u32,
    is_failing: bool,
    is_removed: bool,
}

impl NodeReporter {
    /// A reporter for the gateway `name`. The name need not be unique.
    pub fn new(
        store: Store,
        leases: &Leases,
        requests: Arc<RequestCounter>,
        catalogue_size: CatalogueSize,
        name: String,
    ) -> Self {
        let calls = Arc::clone(&leases.calls);
        let started_at = calls.clock.now().wall;
        let progress = tokio::sync::Mutex::new(ReportProgress {
            usage_recorded_at: started_at,
            merged_until: 0,
            is_failing: false,
            is_removed: false,
        });
        let is_oldest = AtomicBool::new(false);
        Self {
            store,
            calls,
            requests,
            catalogue_size,
            name,
            started_at,
            is_oldest,
            progress,
        }
    }

    /// Reports the status of this gateway, and counts the live gateways. Only the first of several consecutive failures is
    /// logged. Called every few seconds.
    pub async fn report(&self) {
        let mut progress = self.progress.lock().await;
        if progress.is_removed {
            return;
        }
        match self.exchange(progress.usage_recorded_at).await {
            Ok(nodes) => {
                let now = self.calls.clock.now().wall;
                self.is_oldest
                    // A periodic task reads the flag, so a late value only delays its work.
                    .store(nodes.is_oldest(self.calls.node, now), Ordering::Relaxed);
                if std::mem::take(&mut progress.is_failing) {
                    tracing::info!("this gateway is listed in the store again");
                }
                if let Err(error) = self.requests.begin_day(&self.store, now.day()).await {
                    tracing::warn!(%error, "networks and user agents are not counted until the store returns the key of the day");
                }
                self.found_live(nodes.live(now).count());
            }
            Err(error) => {
                if !std::mem::replace(&mut progress.is_failing, true) {
                    tracing::warn!(%error, "this gateway cannot be listed in the store; requests are not affected");
                }
            }
        }
    }

    /// Divides minute limits by the number of live gateways if that number exceeds `store.gateways`.
    fn found_live(&self, live: usize) {
        let live = u32::try_from(live).unwrap_or(u32::MAX);
        let (limit, is_exceeded) = self.calls.minutes.found_live(live);
        self.calls.instruments.store.shared.fleet(live, limit);
        if is_exceeded {
            tracing::warn!(
                live,
                "more gateways are live than store.gateways; this gateway divides limits by the number of live gateways. Set store.gateways \
                 to the largest number of gateways that run at the same time"
            );
        }
    }

    /// Whether, according to the last report, this gateway was started before all other live gateways.
    pub fn is_oldest(&self) -> bool {
        self.is_oldest.load(Ordering::Relaxed)
    }

    /// Records the requests that this gateway has answered since the last call. Called every minute.
    pub async fn record_usage(&self) {
        let mut progress = self.progress.lock().await;
        let now = self.calls.clock.now();
        if self.record(&mut progress, now, false).await {
            self.merge_evidence(&mut progress, now.wall).await;
        }
    }

    /// Records the last requests, and removes this gateway from the list. Called once requests have ended.
    pub async fn stop(&self) {
        let mut progress = self.progress.lock().await;
        // The flag is set under the lock, when no report is in progress. A later report would list this gateway again.
        progress.is_removed = true;
        // If the store does not respond, it is not called again, so that a shutdown waits for it only once.
        if self
            .record(&mut progress, self.calls.clock.now(), true)
            .await
            && let Err(error) = self.store.remove_node(self.calls.node).await
        {
            tracing::warn!(%error, "this gateway stays listed in the store for a day");
        }
    }

    async fn exchange(&self, usage_recorded_at: Wall) -> Result<NodeList, StoreError> {
        let now = self.calls.clock.now().wall;
        let status = NodeStatus {
            node: self.calls.node,
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: self.started_at,
            last_seen_at: now,
            units_held: self.calls.leasing.held(now.day()),
            usage_recorded_at,
        };
        self.store.report_node(status).await?;
        self.store.nodes().await
    }

    /// Returns whether everything was recorded.
    async fn record(&self, progress: &mut ReportProgress, now: Now, is_stopping: bool) -> bool {
        let recording = self.record_all(now.wall, is_stopping);
        match self
            .calls
            .instruments
            .store
            .measured(&self.calls.clock, StoreWork::Usage, recording)
            .await
        {
            Ok(()) => progress.usage_recorded_at = now.wall,
            Err(error) => {
                tracing::warn!(%error, "usage was not recorded; the next attempt includes it");
                return false;
            }
        }
        true
    }

    async fn record_all(&self, now: Wall, is_stopping: bool) -> Result<(), StoreError> {
        let node = self.calls.node;
        self.requests
            .record(now.day(), |totals| self.store.record_requests(node, totals))
            .await?;
        let until = if is_stopping {
            u32::MAX
        } else {
            HourEvidence::hour_of(now.minus(RECORDED_AFTER))
        };
        self.requests
            .record_evidence(until, |hours| self.store.record_evidence(node, hours))
            .await
    }

    /// Merges the evidence of hours that all gateways have recorded. This gateway must have recorded them by `now`.
    async fn merge_evidence(&self, progress: &mut ReportProgress, now: Wall) {
        let until = HourEvidence::hour_of(now.minus(MERGED_AFTER));
        while progress.merged_until < until {
            match self
                .store
                .merge_evidence(until, (self.catalogue_size)(), MERGED_AT_ONCE)
                .await
            {
                Ok(true) => {}
                Ok(false) => progress.merged_until = until,
                Err(error) => {
                    tracing::warn!(%error, "evidence of use was not merged; the next attempt includes it");
                    return;
                }
            }
        }
    }
}
