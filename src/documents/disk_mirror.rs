//! The last good documents are kept on disk, so that a restart while the backend is down still serves.
//!
//! The shelf follows what is at hand: whatever changes there is noted, and written in the background, off every
//! request's path. Not for: what stands on a label (`keepsake`), nor for files (`store::Shelf`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cache::Rhythm;
use crate::routes::DocumentKey;
use crate::store::{Jar, Shelf, ShelfError};

use super::larder::Larder;
use super::mirror_record::{self, Opened};

/// Where the last good documents are kept.
#[derive(Debug, Default)]
pub struct Keepsakes {
    /// None where documents are not kept.
    shelf: Option<Shelf>,
    /// Which backend they are from: another one's are of no use.
    backend: String,
    /// The documents that changed and are not written yet.
    changed: Mutex<HashSet<DocumentKey>>,
    ring: Notify,
    /// Held by the one who writes, with whether the last that was to be written could not be.
    fails: Mutex<bool>,
}

impl Keepsakes {
    /// Keeps documents of this backend on `shelf`.
    pub fn new(shelf: Shelf, backend: String) -> Self {
        Self { shelf: Some(shelf), backend, ..Self::default() }
    }

    /// Notes that a document was stored, confirmed or removed; after that is done, or it may be written as it was before.
    pub(super) fn note(&self, key: &DocumentKey) {
        if self.shelf.is_some() {
            lock(&self.changed).insert(key.clone());
            self.ring.notify_one();
        }
    }
}

/// Each step is one call or one assignment, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Larder {
    /// Keeps on disk what is at hand, until `stop`.
    pub async fn keep_on_disk(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.keepsakes.ring.notified() => self.put_by().await,
            }
        }
    }

    /// Writes what changed and is not written yet.
    pub async fn put_by(self: &Arc<Self>) {
        let larder = Arc::clone(self);
        if tokio::task::spawn_blocking(move || larder.write_what_changed()).await.is_err() {
            tracing::error!("writing documents to disk panicked");
        }
    }

    fn write_what_changed(&self) {
        let Some(disk) = &self.keepsakes.shelf else { return };
        // One writer at a time, so that what is older is not written over what is newer.
        let mut fails = lock(&self.keepsakes.fails);
        let (changed, mut failed) = (std::mem::take(&mut *lock(&self.keepsakes.changed)), None);
        for key in changed {
            if let Err(error) = self.write(disk, &key) {
                self.instruments.shelf_failed();
                failed = Some(error);
            }
        }
        // A disk that is full is told of once in words, and by the metric each time.
        let failed_before = std::mem::replace(&mut *fails, failed.is_some());
        if let Some(error) = failed.filter(|_| !failed_before) {
            tracing::warn!(%error, "a document was not kept on disk");
        }
        let (_, bytes) = disk.size();
        self.instruments.shelf(bytes);
    }

    fn write(&self, disk: &Shelf, key: &DocumentKey) -> Result<(), ShelfError> {
        match self.cache.get(key) {
            Some(stored) => {
                let (now, seen_at) = (self.clock.now(), self.refreshes.seen_at());
                disk.put(&mirror_record::jar(key, &stored, seen_at, &self.keepsakes.backend, now))
            }
            None => disk.remove(&key.address()),
        }
    }

    /// Takes what is on disk back to hand. Takes a while: not for a thread that serves.
    pub fn restore(&self) {
        let Some(disk) = &self.keepsakes.shelf else { return };
        let jars = disk.all().jars;
        let each = jars.len().div_ceil(thread::available_parallelism().map_or(1, usize::from)).max(1);
        let opened: Vec<Opened> = thread::scope(|scope| {
            let parts: Vec<_> = jars
                .chunks(each)
                .map(|jars| scope.spawn(move || jars.iter().filter_map(|jar| self.open(disk, jar)).collect()))
                .collect();
            parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|_| Vec::new())).collect()
        });
        let (documents, useless) = (opened.len(), jars.len() - opened.len());
        self.take_back(opened);
        if documents + useless > 0 {
            tracing::info!(documents, useless, "documents were restored from disk");
        }
    }

    fn open(&self, disk: &Shelf, jar: &Jar) -> Option<Opened> {
        let license = &self.keeping.load().license;
        match mirror_record::open(jar, &self.keepsakes.backend, license, self.clock.now()) {
            Ok(opened) => Some(opened),
            Err(reason) => {
                tracing::debug!(name = jar.name, %reason, "what was kept on disk is of no use");
                if let Err(error) = disk.remove(&jar.name) {
                    tracing::debug!(%error, "and stays there");
                }
                None
            }
        }
    }

    fn take_back(&self, mut opened: Vec<Opened>) {
        let (now, keeping) = (self.clock.now(), self.keeping.load());
        // The one that was confirmed last knows best when the backend refreshes.
        opened.sort_by_key(|opened| opened.stored.confirmed);
        let newest = opened.iter().rfind(|opened| keeping.life(opened.key.route).follows_the_backend());
        if let Some(refreshed_at) = opened.iter().map(|opened| opened.refreshed_at).max() {
            self.refreshes.saw_one(refreshed_at);
        }
        if let Some(newest) = newest {
            self.refreshes.hear_of(now.wall_at(newest.stored.due));
            self.refreshes.begin(Rhythm::new(keeping.cadence, newest.stored.due, now.mono));
        }
        for Opened { key, stored, .. } in opened {
            self.cache.put(key, Arc::new(stored));
        }
    }
}
