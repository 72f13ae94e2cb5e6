//! The channel from the cache to the disk mirror: keys of changed documents, each listed once.
//!
//! Bounded by the number of documents, however slow the disk is.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

use scoregate_base::routes::DocumentKey;

/// Keys of documents that changed and are not written yet.
#[derive(Debug)]
pub(super) struct ChangedKeys {
    /// `None` without a disk mirror.
    keys: Option<Mutex<HashSet<DocumentKey>>>,
    noted: Notify,
}

impl ChangedKeys {
    /// A channel that stays empty unless it is read.
    pub(super) fn new(is_read: bool) -> Self {
        Self {
            keys: is_read.then(Mutex::default),
            noted: Notify::new(),
        }
    }

    /// Notes that a document was stored, confirmed or removed. Must be called after the change: a key noted before it
    /// may be written too early.
    pub(super) fn note(&self, key: &DocumentKey) {
        if let Some(keys) = &self.keys {
            keys.lock().insert(key.clone());
            // The writer is notified after the key is listed. The notification is kept while the writer is busy, so no
            // key waits for another change.
            self.noted.notify_one();
        }
    }

    /// Waits for keys.
    pub(super) async fn wait(&self) {
        self.noted.notified().await;
    }

    /// Takes all keys.
    pub(super) fn take(&self) -> HashSet<DocumentKey> {
        self.keys
            .as_ref()
            .map(|keys| std::mem::take(&mut *keys.lock()))
            .unwrap_or_default()
    }
}
