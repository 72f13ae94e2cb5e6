//! The channel from the cache to the disk mirror. It lists each key of a changed document once.
//!
//! Its size is limited by the number of documents, however slow the disk is.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

use scoregate_base::routes::DocumentKey;

/// Keys of documents that have changed and have not been written yet.
#[derive(Debug)]
pub struct ChangedKeys {
    /// `None` without a disk mirror.
    keys: Option<Mutex<HashSet<DocumentKey>>>,
    noted: Notify,
}

impl ChangedKeys {
    /// Creates a channel. If `is_read` is false, it collects no keys.
    pub fn new(is_read: bool) -> Self {
        Self {
            keys: is_read.then(Mutex::default),
            noted: Notify::new(),
        }
    }

    /// Records that a document was stored, confirmed or removed. Must be called after the change, because otherwise the
    /// previous state may be written.
    pub fn note(&self, key: &DocumentKey) {
        if let Some(keys) = &self.keys {
            keys.lock().insert(key.clone());
            // The writer is notified after the key is listed. The notification is kept while the writer is busy, so
            // that no key has to wait for the next change.
            self.noted.notify_one();
        }
    }

    /// Waits until keys are listed.
    pub async fn wait(&self) {
        self.noted.notified().await;
    }

    /// Removes and returns all keys.
    pub fn take(&self) -> HashSet<DocumentKey> {
        self.keys
            .as_ref()
            .map(|keys| std::mem::take(&mut *keys.lock()))
            .unwrap_or_default()
    }
}
