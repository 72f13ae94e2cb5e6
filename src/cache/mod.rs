//! Stored documents: what they are, how long they serve, who fetches them when they are missing.
//!
//! They lie in a plain concurrent map, where a hit has one short look. What may stay in it moka decides, which is
//! used for what it is good at: it knows each document's weight and hears how often it is used, in samples while there is
//! room for all. When an entry is good is decided by [`freshness`] against our own clock; who fills it by [`SingleFlight`]. Not
//! for: upstream calls (`documents` makes them) nor for anything about callers.

mod copies;
mod document;
mod encode;
pub mod freshness;
mod listing;
mod members;
mod negative_cache;
mod paid_field;
mod refresh_interval;
mod single_flight;
mod stored;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use foldhash::quality::RandomState;
use moka::notification::RemovalCause;
use moka::sync::Cache as Moka;

use crate::routes::DocumentKey;

pub use copies::is_current;
pub use document::{Document, DocumentContent, DocumentForm, EnvelopeFields, Validators};
pub use encode::{ContentCoding, Representation, negotiate};
pub use freshness::{Freshness, StaleWindows};
pub use members::{DuplicateMember, Member, Members};
pub use negative_cache::NegativeCache;
pub use paid_field::BadContent;
pub use refresh_interval::RefreshInterval;
pub use single_flight::{FlightCompletion, FlightLeader, FlightRole, SingleFlight};
pub use stored::StoredDocument;

/// While there is room for all, of so many uses of a document one is told to whoever decides what may stay: to tell it
/// takes as long as all else that is done to find a document.
const TOLD: u32 = 8;

/// Under a keyed hash: names of models are strangers' words.
type DocumentMap = DashMap<DocumentKey, Arc<StoredDocument>, RandomState>;

/// The stored documents.
///
/// What is stored has its weight in `room`, or the bound would not hold: so whoever puts one in writes to `documents` first,
/// and whoever takes one out of `room` looks whether another one is there since. The other way round there may be a weight
/// without a document, until the next one of that name.
#[derive(Debug)]
pub struct Cache {
    documents: Arc<DocumentMap>,
    /// The weights of all documents.
    room: Moka<DocumentKey, u32, RandomState>,
    most_bytes: u64,
    /// Whether some may have to make room soon.
    is_crowded: AtomicBool,
}

impl Cache {
    /// Room for that many bytes of bodies.
    ///
    /// `pushed_out` hears of each document that had to make room, or that was never let in.
    pub fn new(most_bytes: u64, pushed_out: impl Fn(&DocumentKey) + Send + Sync + 'static) -> Self {
        let documents = Arc::<DocumentMap>::default();
        let held = Arc::clone(&documents);
        let room = Moka::builder()
            .max_capacity(most_bytes)
            .weigher(|_, weight: &u32| *weight)
            .eviction_listener(move |key: Arc<DocumentKey>, _, cause| {
                if cause == RemovalCause::Size {
                    held.remove(key.as_ref());
                    pushed_out(&key);
                }
            })
            .build_with_hasher(RandomState::default());
        Self { documents, room, most_bytes, is_crowded: AtomicBool::new(false) }
    }

    /// The document of that name, if it is stored.
    pub fn get(&self, key: &DocumentKey) -> Option<Arc<StoredDocument>> {
        let stored = self.documents.get(key).map(|there| Arc::clone(&there))?;
        if stored.uses() % TOLD == 1 || self.is_crowded.load(Ordering::Relaxed) {
            self.room.get(key);
        }
        Some(stored)
    }

    /// Whether a document leaves room for others: at most a quarter of it all.
    pub fn has_room_for(&self, document: &Document) -> bool {
        document.bytes() as u64 <= self.most_bytes / 4
    }

    /// Stores a document, if the table of endpoints says that such documents are stored.
    pub fn put(&self, key: DocumentKey, stored: Arc<StoredDocument>) {
        if key.route.endpoint().stored {
            let weight = weight(&stored);
            self.documents.insert(key.clone(), stored);
            self.room.insert(key, weight);
        }
    }

    /// Puts the same document with other dates in the place of one, if nobody has done that meanwhile.
    pub fn replace(&self, key: &DocumentKey, before: &Arc<StoredDocument>, after: StoredDocument) {
        if let Some(mut there) = self.documents.get_mut(key).filter(|there| Arc::ptr_eq(there, before)) {
            *there = Arc::new(after);
        }
    }

    /// All that is stored.
    pub fn all(&self) -> Vec<(DocumentKey, Arc<StoredDocument>)> {
        self.documents.iter().map(|there| (there.key().clone(), Arc::clone(there.value()))).collect()
    }

    /// Forgets a document.
    pub fn remove(&self, key: &DocumentKey) {
        self.remove_if(key, |_| true);
    }

    /// Drops what is gone, and says what that was. Looks at everything.
    pub fn drop_what_is(&self, is_gone: impl Fn(&DocumentKey, &StoredDocument) -> bool) -> Vec<DocumentKey> {
        let all = self.documents.iter().filter(|there| is_gone(there.key(), there.value()));
        let mut gone: Vec<DocumentKey> = all.map(|there| there.key().clone()).collect();
        gone.retain(|key| self.remove_if(key, |stored| is_gone(key, stored)));
        gone
    }

    fn remove_if(&self, key: &DocumentKey, may_go: impl Fn(&StoredDocument) -> bool) -> bool {
        let is_removed = self.documents.remove_if(key, |_, stored| may_go(stored)).is_some();
        if is_removed {
            self.leave_room(key);
        }
        is_removed
    }

    /// A document is taken out. Another one may have been put in its place since: that has its weight again then.
    fn leave_room(&self, key: &DocumentKey) {
        self.room.invalidate(key);
        if let Some(weight) = self.documents.get(key).map(|there| weight(&there)) {
            self.room.insert(key.clone(), weight);
        }
    }

    /// Has those make room that have to, and says how many documents are stored then, and how many bytes their bodies are.
    /// To be called every few seconds.
    pub fn keep_house(&self) -> (u64, u64) {
        self.room.run_pending_tasks();
        let bytes = self.room.weighted_size();
        self.is_crowded.store(bytes > self.most_bytes / 8 * 7, Ordering::Relaxed);
        (self.documents.len() as u64, bytes)
    }
}

fn weight(stored: &StoredDocument) -> u32 {
    u32::try_from(stored.document.bytes()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::clock::{Mono, Wall};
    use crate::routes::{ModelId, Period, Query, Route};

    fn key(number: u64) -> DocumentKey {
        let id = ModelId::new(&format!("model-{number}"));
        DocumentKey::new(Route::Model, id, Query::default(), Period::Day)
    }

    fn stored(key: &DocumentKey) -> Arc<StoredDocument> {
        let data = Bytes::from(format!("[{{\"id\":\"{}\"}}]", key.id.as_ref().unwrap()));
        let (generated_at, source) = (Wall::from_seconds(1), Validators::default());
        let content = DocumentContent { data, count: 1, generated_at, source };
        let document = Document::build(content, &EnvelopeFields { key, license: "Cite us." }, None).unwrap();
        Arc::new(StoredDocument::confirmed(document, [Mono::default(); 2], Mono::default(), None))
    }

    #[test]
    fn whatever_is_done_at_once_each_document_has_its_weight_and_the_bound_holds() {
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
                            1 => drop(cache.drop_what_is(|gone, _| *gone == key)),
                            2..8 => drop(cache.keep_house()),
                            _ => cache.put(key.clone(), stored(&key)),
                        }
                    }
                });
            }
        });
        let (documents, bytes) = cache.keep_house();
        assert!(documents > 0 && bytes <= most, "{documents} of {bytes} bytes in {most}");
        for (key, _) in cache.all() {
            assert!(cache.room.contains_key(&key), "{key:?} is stored for ever");
        }
    }

    #[test]
    fn one_that_is_put_in_while_another_of_its_name_is_taken_out_has_its_weight() {
        let (cache, key) = (Cache::new(1_000_000, |_| {}), key(1));
        cache.put(key.clone(), stored(&key));
        cache.documents.remove(&key);
        cache.put(key.clone(), stored(&key));
        cache.leave_room(&key);
        assert!(cache.room.contains_key(&key));
    }

    #[test]
    fn what_is_asked_for_again_and_again_stays_when_others_have_to_make_room() {
        let wanted = key(1_000);
        let each = u64::from(weight(&stored(&key(1_001))));
        let cache = Cache::new(20 * each, |_| {});
        cache.put(wanted.clone(), stored(&wanted));
        for number in 1_001..1_500 {
            cache.get(&wanted).unwrap_or_else(|| panic!("it had to make room for {number}")).used();
            cache.put(key(number), stored(&key(number)));
            cache.keep_house();
        }
        assert!(cache.all().len() <= 20);
    }
}
