//! The cached documents: lookup, dates, storing, purging, listing. Nothing here waits or fetches. The keys of stored,
//! replaced and removed documents are recorded in [`ChangedKeys`] for the disk mirror. `gateway::stages::fetch` decides
//! how a request uses a document.

#[cfg(test)]
#[path = "tests_of_cached_documents.rs"]
mod tests;

use std::{
    cmp::Reverse,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::cache::{
    Cache, DataMarks, Document, FlightLeader, Freshness, PublishedVersion, RefreshInterval,
    StoredDocument,
    freshness::{KnownRefresh, ttl, verdict},
};
use scoregate_base::{
    clock::{Clock, Mono, Now, Wall},
    routes::{DocumentKey, EndpointTable, Selection},
};

use crate::documents::{
    changed_keys::ChangedKeys,
    found_document::FoundDocument,
    refresh_schedule::{DetectedRefresh, RefreshSchedule},
    retention::Retention,
};

/// Interval between removals of expired documents. A removal visits every document. Expired documents are never served.
const REMOVE_EXPIRED_EVERY: Duration = Duration::from_mins(10);

/// A backend response that confirms a document.
pub struct Confirmation {
    /// The document that was stored when the request was sent.
    pub before: Option<Arc<StoredDocument>>,
    /// When the request was sent.
    pub requested_at: Mono,
    /// When the response arrived.
    pub answered: Now,
    /// The next refresh, if the response states it.
    pub next_refresh: Option<Wall>,
    /// The time of the response's data, if the response states it.
    pub stated_at: Option<Wall>,
}

/// A stored document, for the operator. The field names are the names in `GET /v1/cache/list`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CachedDocument {
    /// The document's address, such as `/api/v1/models`.
    pub document: String,
    /// Total size of the document's bodies in bytes.
    pub bytes: usize,
    /// Number of items.
    pub items: usize,
    /// Seconds since the backend confirmed the document.
    pub confirmed_seconds_ago: u64,
    /// Seconds until the document's refresh is due. Negative when overdue.
    pub due_in_seconds: i64,
}

/// The cached documents, their retention, and the schedule of the backend's refreshes.
pub struct Documents {
    cache: Cache,
    retention: Arc<Retention>,
    schedule: RefreshSchedule,
    changed: Arc<ChangedKeys>,
    marks: DataMarks,
    /// When expired documents were last removed, in nanoseconds of monotonic time.
    expired_removed_at: AtomicU64,
    clock: Clock,
}

impl Documents {
    /// Creates an empty cache for at most `cache_bytes` of bodies. Changes are recorded in `changed`.
    pub(in crate::documents) fn new(
        cache_bytes: u64,
        retention: Retention,
        changed: Arc<ChangedKeys>,
        clock: Clock,
    ) -> Self {
        let evicted = Arc::clone(&changed);
        let (schedule, marks, expired_removed_at) = Default::default();
        let cache = Cache::new(cache_bytes, move |key| evicted.note(key));
        Self {
            cache,
            retention: Arc::new(retention),
            schedule,
            changed,
            marks,
            expired_removed_at,
            clock,
        }
    }

    /// The endpoints whose documents are stored.
    pub fn endpoints(&self) -> EndpointTable {
        self.retention.endpoints.clone()
    }

    /// The retention of documents.
    pub(in crate::documents) fn retention(&self) -> &Arc<Retention> {
        &self.retention
    }

    /// The schedule of the backend's refreshes.
    pub(in crate::documents) fn schedule(&self) -> &RefreshSchedule {
        &self.schedule
    }

    /// The stored document for a request, and whether it may be served at `now`. Does not count as a use.
    pub(crate) fn find(&self, key: &DocumentKey, now: Mono) -> Option<FoundDocument> {
        let stored = self.cache.get(key)?;
        Some(self.judge(key, stored, now))
    }

    /// Like `find`, but without an effect on eviction. Visits every document.
    pub(crate) fn peek(&self, key: &DocumentKey, now: Mono) -> Option<FoundDocument> {
        Some(self.judge(key, self.cache.peek(key)?, now))
    }

    /// Decides whether a stored document may be served at `now`.
    pub(crate) fn judge(
        &self,
        key: &DocumentKey,
        stored: Arc<StoredDocument>,
        now: Mono,
    ) -> FoundDocument {
        let lifetime = self.retention.lifetime(key.route);
        let due = lifetime.due(&stored, self.schedule.last_detected());
        FoundDocument {
            stored,
            due,
            verdict: verdict(due, &lifetime.windows, now),
        }
    }

    /// The stored document.
    pub(in crate::documents) fn get(&self, key: &DocumentKey) -> Option<Arc<StoredDocument>> {
        self.cache.get(key)
    }

    /// When the refresh of a document is or was due.
    pub(in crate::documents) fn due(&self, key: &DocumentKey, stored: &StoredDocument) -> Mono {
        self.retention
            .lifetime(key.route)
            .due(stored, self.schedule.last_detected())
    }

    /// Whether the backend may be queried for a document. It is not queried if it responded a moment ago and nothing
    /// has changed since.
    pub(in crate::documents) fn may_revalidate(
        &self,
        key: &DocumentKey,
        stored: &StoredDocument,
        now: Mono,
    ) -> bool {
        now >= stored.revalidate_at
            || self
                .retention
                .lifetime(key.route)
                .is_outdated(stored, self.schedule.last_detected())
    }

    /// The backend's next expected refresh according to its newest response.
    pub fn next_refresh(&self, now: Wall) -> Option<Wall> {
        self.schedule.stated_after(now)
    }

    /// The next expected refresh, which may be in the past. `None` if it is unknown.
    pub(in crate::documents) fn expected_refresh(&self, now: Now) -> Option<Wall> {
        // Without a refresher the schedule is not updated, so only the newest response is known.
        if self.retention.probing {
            self.schedule.expected().map(|at| now.wall_at(at))
        } else {
            self.schedule.stated()
        }
    }

    /// Stores a confirmed document, unless it was purged after the request was sent.
    pub(in crate::documents) fn confirm<T, N>(
        &self,
        leader: &FlightLeader<T, N>,
        document: Document,
        confirmation: &Confirmation,
    ) -> Arc<StoredDocument> {
        let key = leader.key();
        let now = confirmation.answered;
        let before = confirmation.before.as_deref();
        let retention = &*self.retention;
        let follows_the_backend = retention.lifetime(key.route).follows_the_backend();
        let known = KnownRefresh {
            stated: confirmation.next_refresh,
            of_the_backend: self.schedule.expected_after(now),
        };
        let dates = retention.dates(key.route, known, document.generated_at(), now.wall);
        // These times are kept in monotonic time, because a step of the wall clock must not make documents fresh or stale.
        let [due, revalidate_at] = [dates.due, dates.revalidate_at].map(|at| now.mono_at(at));
        if follows_the_backend {
            self.schedule.record_data(document.generated_at(), now.wall);
            self.schedule.state(dates.due);
            self.schedule
                .begin(RefreshInterval::new(retention.cadence, due, now.mono));
        }
        // A document that is too large is delivered to the requests that wait for it, but is not stored.
        let fits = self.cache.has_room_for(&document);
        let mut stored = StoredDocument::confirmed(
            document,
            [due, revalidate_at],
            confirmation.requested_at,
            before,
        );
        stored.is_cached = fits;
        let stored = Arc::new(stored);
        leader.while_current(|| {
            if fits {
                self.cache.put(key.clone(), Arc::clone(&stored));
            }
            if let Some(stated) = confirmation.stated_at {
                self.marks.record(key, stated, now.wall);
            }
        });
        if fits {
            // The change is recorded afterwards, because otherwise the mirror could write the previous state.
            self.changed.note(key);
        } else {
            tracing::warn!(document = %key, bytes = stored.document.bytes(), "document too large to be cached");
        }
        stored
    }

    /// Records a refresh of the backend if a document that was current has changed.
    pub(in crate::documents) fn detect(
        &self,
        key: &DocumentKey,
        before: Option<&Arc<StoredDocument>>,
        stored: &Arc<StoredDocument>,
        at: Mono,
    ) {
        let Some(before) =
            before.filter(|before| before.confirmed >= self.schedule.last_detected())
        else {
            return;
        };
        let has_changed = !stored.document.has_same_data(&before.document);
        if has_changed && self.retention.lifetime(key.route).follows_the_backend() {
            let document = key.clone();
            let before = Arc::clone(before);
            let stored = Arc::clone(stored);
            self.schedule.record_changed_document(DetectedRefresh {
                document,
                before,
                stored,
                at,
            });
        }
    }

    /// Stores a document that another gateway fetched, unless it was purged after the flight began.
    pub(in crate::documents) fn adopt<T, N>(
        &self,
        leader: &FlightLeader<T, N>,
        mut stored: StoredDocument,
        now: Now,
    ) -> Arc<StoredDocument> {
        let key = leader.key();
        let retention = &*self.retention;
        if retention.lifetime(key.route).follows_the_backend() {
            self.schedule
                .record_data(stored.document.generated_at(), now.wall);
            self.schedule.state(now.wall_at(stored.due));
            self.schedule.begin(RefreshInterval::new(
                retention.cadence,
                stored.due,
                now.mono,
            ));
        }
        stored.is_cached = self.cache.has_room_for(&stored.document);
        let stored = Arc::new(stored);
        leader.while_current(|| {
            if stored.is_cached {
                self.cache.put(key.clone(), Arc::clone(&stored));
            }
            self.marks
                .record(key, stored.document.generated_at(), now.wall);
        });
        self.changed.note(key);
        stored
    }

    /// Adds the version in the shared store to a document, unless the document has been replaced since.
    pub(in crate::documents) fn replace_published(
        &self,
        key: &DocumentKey,
        before: &Arc<StoredDocument>,
        version: PublishedVersion,
    ) -> Arc<StoredDocument> {
        let published = Arc::new(before.published_as(version));
        self.cache.replace(key, before, Arc::clone(&published));
        published
    }

    /// The time of newer data that was previously received for this document, if there is any.
    pub(in crate::documents) fn newer_data(&self, key: &DocumentKey, stated: Wall) -> Option<Wall> {
        self.marks.newer(key, stated, self.clock.now().wall)
    }

    /// Stores a document that was read from the disk mirror.
    pub(in crate::documents) fn put_restored(&self, key: DocumentKey, stored: StoredDocument) {
        let generated_at = stored.document.generated_at();
        let now = self.clock.now().wall;
        self.marks.record(&key, generated_at, now);
        if self.retention.lifetime(key.route).follows_the_backend() {
            self.schedule.record_data(generated_at, now);
        }
        self.cache.put(key, Arc::new(stored));
    }

    /// Stores a document with a changed state, without recording a change for the disk mirror.
    pub(in crate::documents) fn put(&self, key: DocumentKey, stored: Arc<StoredDocument>) {
        self.cache.put(key, stored);
    }

    /// Removes a document. The caller records the change once no older document can be stored.
    pub(in crate::documents) fn remove(&self, key: &DocumentKey) {
        self.cache.remove(key);
    }

    /// Records for the disk mirror that a document has changed.
    pub(in crate::documents) fn note_change(&self, key: &DocumentKey) {
        self.changed.note(key);
    }

    /// Replaces `before` with the same document with new dates, unless `before` has been replaced since.
    pub(in crate::documents) fn replace(
        &self,
        key: &DocumentKey,
        before: &Arc<StoredDocument>,
        after: StoredDocument,
    ) {
        self.cache.replace(key, before, Arc::new(after));
        self.changed.note(key);
    }

    /// Recently used documents that are refreshed on the backend's schedule, most used first, and the document that is polled
    /// even if it is not in use. Visits every document.
    pub(in crate::documents) fn in_use(&self) -> Vec<(DocumentKey, Arc<StoredDocument>)> {
        let retention = &*self.retention;
        let follows = |key: &DocumentKey| retention.lifetime(key.route).follows_the_backend();
        let always = retention.polled_when_idle();
        let mut used: Vec<_> = self
            .cache
            .all()
            .into_iter()
            .filter(|(key, stored)| {
                (stored.uses() > 0 && follows(key)) || always.as_ref() == Some(key)
            })
            .collect();
        used.sort_by_key(|(_, stored)| Reverse(stored.uses()));
        used
    }

    /// Halves every document's use count.
    pub(in crate::documents) fn decay_uses(&self) {
        self.cache
            .all()
            .iter()
            .for_each(|(_, stored)| stored.decay_uses());
    }

    /// The addresses of the selected documents.
    pub(in crate::documents) fn names(&self, selection: &Selection) -> Vec<String> {
        let selected = self
            .cache
            .all()
            .into_iter()
            .filter(|(key, _)| selection.fits(key));
        selected.map(|(key, _)| key.address()).collect()
    }

    /// Marks documents as overdue, or removes them with `hard`. Returns the number of documents.
    pub(in crate::documents) fn purge(&self, selection: &Selection, hard: bool) -> usize {
        if hard {
            // A hard purge accepts older data, so it also removes the selected documents' data marks.
            self.marks.remove(|key| selection.fits(key));
            self.schedule.forget_data();
        }
        let now = self.clock.now().mono;
        let selected = self
            .cache
            .all()
            .into_iter()
            .filter(|(key, _)| selection.fits(key));
        let mut purged = 0;
        for (key, stored) in selected {
            purged += 1;
            if hard {
                self.cache.remove(&key);
                self.changed.note(&key);
            } else {
                self.replace(&key, &stored, stored.overdue(now));
            }
        }
        purged
    }

    /// All stored documents, by address.
    pub fn list(&self) -> Vec<CachedDocument> {
        let now = self.clock.now().mono;
        let mut all: Vec<CachedDocument> = self
            .cache
            .all()
            .into_iter()
            .map(
                |(key, stored): (DocumentKey, Arc<StoredDocument>)| CachedDocument {
                    document: key.address(),
                    bytes: stored.document.bytes(),
                    items: stored.document.items(),
                    confirmed_seconds_ago: now.since(stored.confirmed).as_secs(),
                    due_in_seconds: ttl(self.due(&key, &stored), now),
                },
            )
            .collect();
        all.sort_by(|one, other| one.document.cmp(&other.document));
        all
    }

    /// Evicts documents that exceed the capacity, and periodically removes expired documents. Returns the numbers of
    /// documents and bytes.
    pub(in crate::documents) fn sweep(&self, now: Mono) -> (u64, u64) {
        // Two concurrent sweeps would only visit the documents twice, so no ordering is needed.
        let removed_at = Mono::from_nanos(self.expired_removed_at.load(Ordering::Relaxed));
        if now.since(removed_at) >= REMOVE_EXPIRED_EVERY {
            self.remove_expired(now);
        }
        self.cache.evict_excess()
    }

    fn remove_expired(&self, now: Mono) {
        self.expired_removed_at
            .store(now.nanos(), Ordering::Relaxed);
        let retention = &*self.retention;
        let last_detected = self.schedule.last_detected();
        // `find` decides in the same way: a document that becomes outdated early also expires early.
        let is_expired = |key: &DocumentKey, stored: &StoredDocument| {
            let lifetime = retention.lifetime(key.route);
            verdict(lifetime.due(stored, last_detected), &lifetime.windows, now)
                == Freshness::Expired
        };
        for key in self.cache.remove_all_if(is_expired) {
            self.changed.note(&key);
        }
    }

    /// Number of documents that are stored and not expired. For tests.
    pub fn count(&self) -> u64 {
        self.remove_expired(self.clock.mono());
        self.cache.evict_excess().0
    }
}
