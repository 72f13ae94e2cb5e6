//! The bounded cache of documents.

use std::sync::Arc;

use foldhash::quality::RandomState;
use moka::{
    notification::RemovalCause,
    ops::compute::{CompResult, Op},
    sync::Cache as Moka,
};

use scoregate_base::routes::DocumentKey;

use super::{document::Document, stored::StoredDocument};

/// The hash is keyed, because clients choose the names of models.
type DocumentMap = Moka<DocumentKey, Arc<StoredDocument>, RandomState>;

/// Stored documents, limited by the total size of their bodies.
#[derive(Debug)]
pub struct Cache {
    documents: DocumentMap,
    most_bytes: u64,
}

impl Cache {
    /// Creates a cache for at most `most_bytes` bytes of bodies. `evicted` is called for every document that is evicted
    /// or not admitted.
    pub fn new(most_bytes: u64, evicted: impl Fn(&DocumentKey) + Send + Sync + 'static) -> Self {
        let documents = Moka::builder()
            .max_capacity(most_bytes)
            .weigher(|_, stored: &Arc<StoredDocument>| weight(stored))
            .eviction_listener(
                move |key: Arc<DocumentKey>, stored: Arc<StoredDocument>, cause| {
                    // Evicted documents are withdrawn too: a memo must not serve a document that the cache no longer
                    // has.
                    stored.withdraw();
                    if cause == RemovalCause::Size {
                        evicted(&key);
                    }
                },
            )
            .build_with_hasher(RandomState::default());
        Self {
            documents,
            most_bytes,
        }
    }

    /// Returns a stored document.
    pub fn get(&self, key: &DocumentKey) -> Option<Arc<StoredDocument>> {
        self.documents.get(key)
    }

    /// Returns a stored document without counting this as a use for eviction. Iterates over all documents.
    pub fn peek(&self, key: &DocumentKey) -> Option<Arc<StoredDocument>> {
        self.documents
            .iter()
            .find(|(stored_key, _)| **stored_key == *key)
            .map(|(_, stored)| stored)
    }

    /// Whether a document may be stored: it may use at most a quarter of the capacity.
    pub fn has_room_for(&self, document: &Document) -> bool {
        // A single document must not displace most other documents.
        document.bytes() as u64 <= self.most_bytes / 4
    }

    /// Stores a document if the endpoint table allows it.
    pub fn put(&self, key: DocumentKey, stored: Arc<StoredDocument>) {
        if key.route.endpoint().stored {
            self.documents.entry(key).and_compute_with(|entry| {
                if let Some(entry) = entry {
                    // The old document is withdrawn before the new one can be read, so that no thread serves the old
                    // document after the new one.
                    entry.value().withdraw();
                }
                Op::Put(stored)
            });
        }
    }

    /// Replaces `before` with `after`, the same document with other dates, unless another document has been stored
    /// since.
    pub fn replace(
        &self,
        key: &DocumentKey,
        before: &Arc<StoredDocument>,
        after: Arc<StoredDocument>,
    ) {
        self.documents
            .entry_by_ref(key)
            .and_compute_with(|entry| match entry {
                Some(entry) if Arc::ptr_eq(entry.value(), before) => {
                    before.withdraw();
                    Op::Put(after)
                }
                _ => Op::Nop,
            });
    }

    /// All stored documents.
    pub fn all(&self) -> Vec<(DocumentKey, Arc<StoredDocument>)> {
        self.documents
            .iter()
            .map(|(key, stored)| (key.as_ref().clone(), stored))
            .collect()
    }

    /// Removes a document.
    pub fn remove(&self, key: &DocumentKey) {
        self.documents.invalidate(key);
    }

    /// Removes all documents for which `is_unwanted` returns true, and returns their keys. Iterates over all documents.
    pub fn remove_all_if(
        &self,
        is_unwanted: impl Fn(&DocumentKey, &StoredDocument) -> bool,
    ) -> Vec<DocumentKey> {
        let mut removed: Vec<DocumentKey> = self
            .all()
            .into_iter()
            .filter(|(key, stored)| is_unwanted(key, stored))
            .map(|(key, _)| key)
            .collect();
        // The condition is checked again under the lock of the entry: the document may have been replaced since it was
        // listed.
        removed.retain(|key| self.remove_if(key, |stored| is_unwanted(key, stored)));
        removed
    }

    fn remove_if(&self, key: &DocumentKey, is_unwanted: impl Fn(&StoredDocument) -> bool) -> bool {
        let result = self
            .documents
            .entry_by_ref(key)
            .and_compute_with(|entry| match entry {
                Some(entry) if is_unwanted(entry.value()) => Op::Remove,
                _ => Op::Nop,
            });
        matches!(result, CompResult::Removed(_))
    }

    /// Evicts documents in excess of the capacity, and returns the number of stored documents and the total size of
    /// their bodies. Called every few seconds.
    pub fn evict_excess(&self) -> (u64, u64) {
        self.documents.run_pending_tasks();
        (self.documents.entry_count(), self.documents.weighted_size())
    }
}

fn weight(stored: &StoredDocument) -> u32 {
    u32::try_from(stored.document.bytes()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use crate::cache::sample::{key, stored};

    use super::*;

    #[test]
    fn concurrent_changes_keep_weights_and_capacity_consistent() {
        let most = 4 * u64::from(weight(&stored(&key(10))));
        let cache = Cache::new(most, |_| {});
        std::thread::scope(|scope| {
            for seed in 1..=4_u64 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut draw = seed;
                    for _ in 0..30_000 {
                        draw = draw
                            .wrapping_mul(6_364_136_223_846_793_005)
                            .wrapping_add(1_442_695_040_888_963_407);
                        let key = key((draw >> 33) % 8);
                        match (draw >> 50) % 16 {
                            0 => cache.remove(&key),
                            1 => drop(cache.remove_all_if(|removed, _| *removed == key)),
                            2..8 => drop(cache.evict_excess()),
                            _ => cache.put(key.clone(), stored(&key)),
                        }
                    }
                });
            }
        });
        let (documents, bytes) = cache.evict_excess();
        assert!(
            documents > 0 && bytes <= most,
            "{documents} documents with {bytes} of {most} bytes"
        );
    }

    #[test]
    fn frequently_used_documents_survive_eviction() {
        let wanted = key(1_000);
        let each = u64::from(weight(&stored(&key(1_001))));
        let cache = Cache::new(20 * each, |_| {});
        cache.put(wanted.clone(), stored(&wanted));
        for number in 1_001..1_500 {
            cache
                .get(&wanted)
                .unwrap_or_else(|| panic!("it was evicted for {number}"))
                .used();
            cache.put(key(number), stored(&key(number)));
            cache.evict_excess();
        }
        assert!(cache.all().len() <= 20);
    }
}
