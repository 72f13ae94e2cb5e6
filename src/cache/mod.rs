//! Stored documents: what they are, how long they serve, who fetches them when they are missing.
//!
//! Wraps moka, which is used for what it is good at: a bounded, concurrent map. When an entry is good is decided by
//! [`freshness`] against our own clock; who fills it by [`Flights`]. Not for: upstream calls (`gateway::larder` makes
//! them) nor for anything about callers.

mod absences;
mod copies;
mod document;
mod encode;
mod flight;
pub mod freshness;
mod listing;
mod members;
mod paid_field;
mod rhythm;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::quality::RandomState;
use moka::notification::RemovalCause;
use moka::ops::compute::Op;
use moka::sync::Cache as Moka;

use crate::clock::Mono;
use crate::routes::DocumentKey;

pub use absences::Absences;
pub use copies::is_current;
pub use document::{BadContent, Content, Document, Form, Label, Source};
pub use encode::{Encoding, Representation, negotiate};
pub use flight::{Flights, Landed, Seat, Ticket};
pub use freshness::{Verdict, Windows};
pub use members::{Member, Members, Twice};
pub use rhythm::Rhythm;

/// A document with its dates. Replaced as a whole; only its uses are counted on.
#[derive(Debug)]
pub struct Stored {
    /// The document.
    pub document: Document,
    /// The next expected refresh, in running time: until then it is fresh, as far as was known when it was stored.
    pub due: Mono,
    /// From when on the backend is asked about it.
    pub ask_again: Mono,
    /// When the backend was asked about it that confirmed it last: it is at least as new as that.
    pub confirmed: Mono,
    /// Whether the cache had room for it.
    pub kept: bool,
    /// Whether the backend has said since that there is nothing, once.
    pub doubted: bool,
    /// How often it was asked for of late.
    uses: AtomicU32,
}

impl Stored {
    /// A document that the backend has confirmed, asked at `asked`, after what was stored `before`.
    pub fn confirmed(
        document: Document,
        [due, ask_again]: [Mono; 2],
        asked: Mono,
        before: Option<&Self>,
    ) -> Self {
        let uses = AtomicU32::new(before.map_or(1, Self::uses));
        Self { document, due, ask_again, confirmed: asked, kept: true, doubted: false, uses }
    }

    /// A document that was stored with these dates, by a former process it may be.
    pub fn again(document: Document, [due, ask_again, confirmed]: [Mono; 3], uses: u32) -> Self {
        let uses = AtomicU32::new(uses);
        Self { document, due, ask_again, confirmed, kept: true, doubted: false, uses }
    }

    /// Counts a use.
    pub fn used(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it was asked for of late.
    pub fn uses(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Old uses count for less and less: what nobody asks for any more is refreshed no more. To be said at each refresh.
    pub fn fade(&self) {
        // A use that comes in between may be lost, which does no harm.
        self.uses.store(self.uses() / 2, Ordering::Relaxed);
    }

    /// Whether what the backend sends now is more likely its mistake than the truth: nothing at all, where there was
    /// something. Said for the second time in a row it is believed.
    pub fn is_doubtfully_followed_by(&self, content: &Content) -> bool {
        content.count == 0 && self.document.items() > 0 && !self.doubted
    }

    /// The same, with its refresh due by `now` at the latest.
    #[must_use]
    pub fn overdue(&self, now: Mono) -> Self {
        Self { due: self.due.min(now), ask_again: self.ask_again.min(now), ..self.clone() }
    }

    /// The same, as current at `now` as the backend is, and until its next refresh is due.
    #[must_use]
    pub fn current(&self, now: Mono, due: Mono) -> Self {
        Self { confirmed: now, due, ask_again: due, ..self.clone() }
    }

    /// The same, after such a doubtful answer.
    #[must_use]
    pub fn doubted(&self) -> Self {
        Self { doubted: true, ..self.clone() }
    }
}

impl Clone for Stored {
    fn clone(&self) -> Self {
        let (document, uses) = (self.document.clone(), AtomicU32::new(self.uses()));
        let Self { due, ask_again, confirmed, kept, doubted, .. } = *self;
        Self { document, due, ask_again, confirmed, kept, doubted, uses }
    }
}

/// The stored documents.
#[derive(Debug)]
pub struct Cache {
    /// Under a keyed hash: names of models are strangers' words.
    documents: Moka<DocumentKey, Arc<Stored>, RandomState>,
    most_bytes: u64,
}

impl Cache {
    /// Room for that many bytes of bodies.
    ///
    /// `pushed_out` hears of each document that had to make room, or that was never let in.
    pub fn new(most_bytes: u64, pushed_out: impl Fn(&DocumentKey) + Send + Sync + 'static) -> Self {
        let documents = Moka::builder()
            .max_capacity(most_bytes)
            .weigher(|_, stored: &Arc<Stored>| u32::try_from(stored.document.bytes()).unwrap_or(u32::MAX))
            .eviction_listener(move |key: Arc<DocumentKey>, _, cause| {
                if cause == RemovalCause::Size {
                    pushed_out(&key);
                }
            })
            .build_with_hasher(RandomState::default());
        Self { documents, most_bytes }
    }

    /// The document of that name, if it is stored.
    pub fn get(&self, key: &DocumentKey) -> Option<Arc<Stored>> {
        self.documents.get(key)
    }

    /// Whether a document leaves room for others: at most a quarter of it all.
    pub fn has_room_for(&self, document: &Document) -> bool {
        document.bytes() as u64 <= self.most_bytes / 4
    }

    /// Stores a document, if the table of endpoints says that such documents are stored.
    pub fn put(&self, key: DocumentKey, stored: Arc<Stored>) {
        if key.route.endpoint().stored {
            self.documents.insert(key, stored);
        }
    }

    /// Puts another in the place of a document, if nobody has done that meanwhile.
    pub fn replace(&self, key: &DocumentKey, before: &Arc<Stored>, after: Stored) {
        self.documents.entry_by_ref(key).and_compute_with(|there| match there {
            Some(there) if Arc::ptr_eq(there.value(), before) => Op::Put(Arc::new(after)),
            Some(_) | None => Op::Nop,
        });
    }

    /// All that is stored.
    pub fn all(&self) -> impl Iterator<Item = (Arc<DocumentKey>, Arc<Stored>)> {
        self.documents.iter()
    }

    /// Forgets a document.
    pub fn remove(&self, key: &DocumentKey) {
        self.documents.invalidate(key);
    }

    /// Drops what is gone, and says what that was. Looks at everything, which takes microseconds for each document.
    pub fn drop_what_is(&self, is_gone: impl Fn(&DocumentKey, &Stored) -> bool) -> Vec<Arc<DocumentKey>> {
        let gone: Vec<_> =
            self.all().filter(|(key, stored)| is_gone(key, stored)).map(|(key, _)| key).collect();
        for key in &gone {
            self.documents.invalidate(key.as_ref());
        }
        gone
    }

    /// Does the map's own housekeeping, after which it knows its size: how many documents are stored, and how many bytes
    /// their bodies are. To be called every few seconds.
    pub fn keep_house(&self) -> (u64, u64) {
        self.documents.run_pending_tasks();
        (self.documents.entry_count(), self.documents.weighted_size())
    }
}
