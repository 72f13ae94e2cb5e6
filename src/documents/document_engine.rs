//! Assembles the parts of the read-through engine, and implements operations that involve several parts.

use std::sync::Arc;

use crate::{instruments::DocumentInstruments, upstream::ProtectedUpstream};
use scoregate_base::{clock::Clock, routes::Selection};

use super::{
    cached_documents::Documents,
    changed_keys::ChangedKeys,
    disk_mirror::{DiskMirror, MirrorWorker},
    fetcher::Fetcher,
    fleet_documents::{FleetDocuments, SharedFetches},
    refresher::Refresher,
    retention::Retention,
};

/// The read-through engine.
#[derive(Clone)]
pub struct DocumentEngine {
    /// The cached documents.
    pub documents: Arc<Documents>,
    /// Fetches from the backend.
    pub fetcher: Arc<Fetcher>,
    /// Background refreshes.
    pub refresher: Arc<Refresher>,
    /// Copies of the documents on disk.
    pub mirror: Arc<DiskMirror>,
    /// Documents shared with other gateways.
    fleet: Option<Arc<FleetDocuments>>,
}

impl DocumentEngine {
    /// Creates an engine with a cache for at most `cache_bytes` of bodies. The cache is filled from `upstream`,
    /// mirrored on `disk` and shared with other gateways.
    pub fn new(
        cache_bytes: u64,
        retention: Retention,
        upstream: ProtectedUpstream,
        disk: Option<MirrorWorker>,
        shared: Option<SharedFetches>,
        clock: &Clock,
        instruments: &Arc<DocumentInstruments>,
    ) -> Self {
        // Without a disk mirror, nothing reads the keys of changed documents, so they are not collected.
        let changed = Arc::new(ChangedKeys::new(disk.is_some()));
        let documents = Arc::new(Documents::new(
            cache_bytes,
            retention,
            Arc::clone(&changed),
            clock.clone(),
        ));
        let fleet = shared.map(|shared| {
            Arc::new(FleetDocuments::new(
                shared,
                clock.clone(),
                Arc::clone(instruments),
            ))
        });
        let fetcher = Fetcher::new(
            Arc::clone(&documents),
            upstream,
            fleet.clone(),
            clock.clone(),
            Arc::clone(instruments),
        );
        let fetcher = Arc::new(fetcher);
        let refresher = Refresher::new(
            Arc::clone(&documents),
            Arc::clone(&fetcher),
            fleet.clone(),
            clock.clone(),
        );
        let mirror = DiskMirror::new(
            disk,
            Arc::clone(&documents),
            changed,
            clock.clone(),
            Arc::clone(instruments),
        );
        Self {
            documents,
            fetcher,
            refresher: Arc::new(refresher),
            mirror: Arc::new(mirror),
            fleet,
        }
    }

    /// Marks documents as overdue, so that they are served as stale until they are refreshed. With `hard`, they are
    /// removed instead, from memory, from the disk and from the shared store. Results of fetches in flight are not
    /// stored. Returns the number of purged documents.
    pub async fn purge(&self, selection: &Selection, hard: bool) -> usize {
        if let Some(fleet) = self.fleet.as_ref().filter(|_| hard) {
            // Documents are removed from the shared store first, because otherwise a fetch could take them from there
            // again.
            fleet.withdraw(self.documents.names(selection)).await;
        }
        let purged = self.fetcher.purge(selection, hard);
        // The removal is written before the call returns, because a restart must not restore the purged documents.
        self.mirror.flush().await;
        purged
    }

    /// Probes the store of shared documents if it is unreachable. Called every few seconds.
    pub async fn ask_for_shared_documents(&self) {
        if let Some(fleet) = &self.fleet {
            fleet.ask_again().await;
        }
    }

    /// Removes expired documents, and updates the metrics. Called every few seconds.
    pub fn sweep(&self) {
        self.fetcher.sweep();
    }
}
