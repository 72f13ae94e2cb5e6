//! The channel from the cache to its copies on disk: keys whose documents changed, each held once.
//!
//! It is bounded by the number of documents, however long the disk takes.

use std::collections::HashSet;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::routes::DocumentKey;

/// Keys of documents that changed and are not written yet.
#[derive(Debug)]
pub(super) struct ChangedKeys {
    /// None where documents are not kept on disk.
    keys: Option<Mutex<HashSet<DocumentKey>>>,
    noted: Notify,
}

impl ChangedKeys {
    /// A channel that holds nothing unless it is read.
    pub(super) fn new(is_read: bool) -> Self {
        Self { keys: is_read.then(Mutex::default), noted: Notify::new() }
    }

    /// Notes that a document was stored, confirmed or removed. Call it after the change: a key that was noted earlier may be
    /// written before.
    pub(super) fn note(&self, key: &DocumentKey) {
        if let Some(keys) = &self.keys {
            lock(keys).insert(key.clone());
            self.noted.notify_one();
        }
    }

    /// Waits until keys were noted.
    pub(super) async fn wait(&self) {
        self.noted.notified().await;
    }

    /// Takes all keys.
    pub(super) fn take(&self) -> HashSet<DocumentKey> {
        self.keys.as_ref().map(|keys| std::mem::take(&mut *lock(keys))).unwrap_or_default()
    }
}

/// Each step is one call, so a panic elsewhere does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
