//! Copies of the cached documents on disk, so that a gateway that is restarted during a backend outage can still serve
//! them.
//!
//! Every change in the cache is written in the background. Changes that arrive during a write are written together.
//! `mirror_record` encodes the records, and `store::Mirror` handles the file.

use std::{sync::Arc, thread};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{cache::RefreshInterval, instruments::DocumentInstruments};
use scoregate_base::clock::Clock;
use scoregate_store::{Mirror, MirrorError, MirrorRecord};

use super::{
    cached_documents::Documents,
    changed_keys::ChangedKeys,
    mirror_record::{self, RestoredDocument},
};

/// The file with the copies of a backend's documents.
#[derive(Debug)]
pub struct MirrorWorker {
    /// The mirror file.
    pub mirror: Mirror,
    /// The backend of the documents. Records from other backends are removed.
    pub backend: String,
}

/// Writes changed documents to disk, and reads them back at startup.
pub struct DiskMirror {
    /// `None` if documents are not stored on disk.
    disk: Option<MirrorWorker>,
    documents: Arc<Documents>,
    changed: Arc<ChangedKeys>,
    /// Whether the last write failed. Locked during a write.
    failing: Mutex<bool>,
    clock: Clock,
    instruments: Arc<DocumentInstruments>,
}

impl DiskMirror {
    /// Mirrors `documents`. Their changes arrive through `changed`.
    pub(super) fn new(
        disk: Option<MirrorWorker>,
        documents: Arc<Documents>,
        changed: Arc<ChangedKeys>,
        clock: Clock,
        instruments: Arc<DocumentInstruments>,
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
        // Only one writer may be active, so that an older document never replaces a newer one.
        let mut failing = self.failing.lock();
        let now = self.clock.now();
        let seen_at = self.documents.schedule().last_detected();
        let mut records = Vec::new();
        let mut removed = Vec::new();
        // The keys are taken before the documents are read: a document that changes later is listed again.
        for key in self.changed.take() {
            match self.documents.get(&key) {
                Some(stored) => records.push(mirror_record::write(
                    &key,
                    &stored,
                    seen_at,
                    &disk.backend,
                    now,
                )),
                None => removed.push(key.address()),
            }
        }
        let failed = disk.mirror.write(&records, &removed);
        self.report(&mut failing, failed);
        if let Ok(bytes) = disk.mirror.bytes() {
            self.instruments.mirror_size(bytes);
        }
    }

    /// Counts all failures, but logs a persistent failure, such as a full disk, only once.
    fn report(&self, was_failing: &mut bool, failed: Vec<MirrorError>) {
        let failed_before = std::mem::replace(was_failing, !failed.is_empty());
        for error in failed {
            self.instruments.mirror_failures.increment(1);
            let is_damage = matches!(error, MirrorError::Damaged { .. });
            if is_damage || !failed_before {
                tracing::warn!(%error, "disk mirror failed");
            }
        }
    }

    /// Reads all documents back into the cache. This takes time, so it must be called on a blocking thread.
    pub fn restore(&self) {
        let Some(disk) = &self.disk else { return };
        let mut failing = self.failing.lock();
        let records = disk.mirror.all().unwrap_or_else(|error| {
            self.report(&mut failing, vec![error]);
            Vec::new()
        });
        drop(failing);
        let mut restored = Vec::new();
        let mut unusable = Vec::new();
        for document in self.read_all(disk, &records) {
            match document {
                Ok(document) => restored.push(document),
                Err(name) => unusable.push(name),
            }
        }
        if !records.is_empty() {
            tracing::info!(
                documents = restored.len(),
                unusable = unusable.len(),
                "documents restored from the disk mirror"
            );
        }
        // Unusable records are removed, so that the next start does not read them again.
        let failed = disk.mirror.write(&[], &unusable);
        self.report(&mut self.failing.lock(), failed);
        self.put_restored(restored);
    }

    /// Decodes the records on all cores.
    fn read_all(
        &self,
        disk: &MirrorWorker,
        records: &[MirrorRecord],
    ) -> Vec<Result<RestoredDocument, String>> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let chunk_size = records.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            let parts: Vec<_> = records
                .chunks(chunk_size)
                .map(|chunk| {
                    scope.spawn(move || -> Vec<_> {
                        chunk.iter().map(|record| self.read(disk, record)).collect()
                    })
                })
                .collect();
            parts
                .into_iter()
                .flat_map(|part| part.join().unwrap_or_default())
                .collect()
        })
    }

    /// Decodes a record. Returns the name of an unusable record.
    fn read(&self, disk: &MirrorWorker, record: &MirrorRecord) -> Result<RestoredDocument, String> {
        let retention = self.documents.retention();
        let read = mirror_record::read(record, &disk.backend, retention, self.clock.now());
        read.map_err(|reason| {
            tracing::debug!(name = record.name, %reason, "removing an unusable record of the disk mirror");
            record.name.clone()
        })
    }

    fn put_restored(&self, mut restored: Vec<RestoredDocument>) {
        let now = self.clock.now();
        let schedule = self.documents.schedule();
        let retention = self.documents.retention();
        // The most recently confirmed document has the best estimate of the next refresh.
        restored.sort_by_key(|restored| restored.stored.confirmed);
        let newest = restored
            .iter()
            .rfind(|restored| retention.lifetime(restored.key.route).follows_the_backend());
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
