//! Copies of the cached documents on disk, so that a restart during an outage of the backend still serves.
//!
//! Every change in the cache is written in the background. Records are encoded in `mirror_record`, files handled in
//! `store::Mirror`.

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::cache::RefreshInterval;
use crate::instruments::Instruments;
use scoregate_base::clock::Clock;
use scoregate_base::routes::DocumentKey;
use scoregate_store::{Mirror, MirrorError, MirrorRecord};

use super::cached_documents::Documents;
use super::changed_keys::ChangedKeys;
use super::mirror_record::{self, RestoredDocument};

/// The copies of one backend's documents.
#[derive(Debug)]
pub struct MirrorWorker {
    /// The files.
    pub mirror: Mirror,
    /// The backend. Records of other backends are removed.
    pub backend: String,
}

/// Writes changed documents to disk, and reads them back at start.
pub struct DiskMirror {
    /// `None` if documents are not stored on disk.
    disk: Option<MirrorWorker>,
    documents: Arc<Documents>,
    changed: Arc<ChangedKeys>,
    /// Held while writing; whether the last write failed.
    failing: Mutex<bool>,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl DiskMirror {
    /// Mirrors `documents`, whose changes arrive by `changed`.
    pub(super) fn new(
        disk: Option<MirrorWorker>,
        documents: Arc<Documents>,
        changed: Arc<ChangedKeys>,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self {
            disk,
            documents,
            changed,
            failing: Mutex::new(false),
            clock,
            instruments,
        }
    }

    /// Writes changes until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.wait() => self.flush().await,
            }
        }
    }

    /// Writes all pending changes.
    pub async fn flush(self: &Arc<Self>) {
        let mirror = Arc::clone(self);
        if tokio::task::spawn_blocking(move || mirror.write_changes())
            .await
            .is_err()
        {
            tracing::error!("disk mirror panicked");
        }
    }

    fn write_changes(&self) {
        let Some(disk) = &self.disk else { return };
        // One writer at a time, so that an older document is not written over a newer one.
        let mut failing = self.failing.lock();
        let mut failed = None;
        for key in self.changed.take() {
            if let Err(error) = self.write(disk, &key) {
                self.instruments.mirror_failed();
                failed = Some(error);
            }
        }
        // A full disk is logged once and counted every time.
        let failed_before = std::mem::replace(&mut *failing, failed.is_some());
        if let Some(error) = failed.filter(|_| !failed_before) {
            tracing::warn!(%error, "document could not be written to the disk mirror");
        }
        let (_, bytes) = disk.mirror.size();
        self.instruments.mirror_size(bytes);
    }

    fn write(&self, disk: &MirrorWorker, key: &DocumentKey) -> Result<(), MirrorError> {
        match self.documents.get(key) {
            Some(stored) => {
                let now = self.clock.now();
                let seen_at = self.documents.schedule().last_detected();
                disk.mirror.put(&mirror_record::write(
                    key,
                    &stored,
                    seen_at,
                    &disk.backend,
                    now,
                ))
            }
            None => disk.mirror.remove(&key.address()),
        }
    }

    /// Reads all documents back into the cache. Takes time: call it on a blocking thread.
    pub fn restore(&self) {
        let Some(disk) = &self.disk else { return };
        let records = disk.mirror.all().records;
        let chunk_size = records
            .len()
            .div_ceil(thread::available_parallelism().map_or(1, usize::from))
            .max(1);
        let restored: Vec<RestoredDocument> = thread::scope(|scope| {
            let parts: Vec<_> = records
                .chunks(chunk_size)
                .map(|records| {
                    scope.spawn(move || {
                        records
                            .iter()
                            .filter_map(|record| self.read(disk, record))
                            .collect()
                    })
                })
                .collect();
            parts
                .into_iter()
                .flat_map(|part| part.join().unwrap_or_else(|_| Vec::new()))
                .collect()
        });
        let documents = restored.len();
        let unusable = records.len() - restored.len();
        self.put_restored(restored);
        if documents + unusable > 0 {
            tracing::info!(
                documents,
                unusable,
                "documents restored from the disk mirror"
            );
        }
    }

    fn read(&self, disk: &MirrorWorker, record: &MirrorRecord) -> Option<RestoredDocument> {
        let retention = self.documents.retention();
        match mirror_record::read(record, &disk.backend, retention, self.clock.now()) {
            Ok(restored) => Some(restored),
            Err(reason) => {
                tracing::debug!(name = record.name, %reason, "removing an unusable record of the disk mirror");
                if let Err(error) = disk.mirror.remove(&record.name) {
                    tracing::debug!(name = record.name, %error, "record of the disk mirror cannot be removed");
                }
                None
            }
        }
    }

    fn put_restored(&self, mut restored: Vec<RestoredDocument>) {
        let now = self.clock.now();
        let schedule = self.documents.schedule();
        let retention = self.documents.retention();
        // The document confirmed last has the best estimate of the next refresh.
        restored.sort_by_key(|restored| restored.stored.confirmed);
        let follows = |restored: &&RestoredDocument| {
            retention.lifetime(restored.key.route).follows_the_backend()
        };
        let newest = restored.iter().rfind(follows);
        if let Some(refreshed_at) = restored.iter().map(|restored| restored.refreshed_at).max() {
            schedule.record_refresh(refreshed_at);
        }
        if let Some(newest) = newest {
            schedule.state(now.wall_at(newest.stored.due));
            schedule.begin(RefreshInterval::new(
                retention.cadence,
                newest.stored.due,
                now.mono,
            ));
        }
        for RestoredDocument { key, stored, .. } in restored {
            self.documents.put_restored(key, stored);
        }
    }
}
