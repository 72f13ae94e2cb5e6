//! A stored document with its dates and use count. `freshness` explains the dates.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use scoregate_base::clock::{Mono, Wall};

use super::document::{Document, DocumentContent};

/// The version of a document in the store that gateways share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedVersion {
    /// The number of the claim that published the content.
    pub number: u64,
    /// When the request that last confirmed the content was sent, according to the store's clock.
    pub confirmed: Wall,
}

/// A document with its dates. It is replaced as a whole; only the counters change in place.
#[derive(Debug)]
pub struct StoredDocument {
    /// The document.
    pub document: Document,
    /// The next expected refresh in monotonic time, as known when the document was stored.
    pub due: Mono,
    /// When the document may be requested from the backend again.
    pub revalidate_at: Mono,
    /// When the request that last confirmed the document was sent. The document is at least as new as that request.
    pub confirmed: Mono,
    /// Whether the cache had room for the document.
    pub is_cached: bool,
    /// Whether the backend has sent one empty list since this document was confirmed.
    pub is_suspect: bool,
    /// The document's version in the shared store, if it is stored there.
    pub published: Option<PublishedVersion>,
    /// Recent use count.
    uses: AtomicU32,
    /// Whether the cache has replaced, removed or evicted this document. Set before a new document can be read, so that
    /// no reader gets the old document after the new one.
    withdrawn: AtomicBool,
}

impl StoredDocument {
    /// Creates a document that was confirmed by the response to a request sent at `requested_at`. It replaces `before`.
    pub fn confirmed(
        document: Document,
        [due, revalidate_at]: [Mono; 2],
        requested_at: Mono,
        before: Option<&Self>,
    ) -> Self {
        let uses = AtomicU32::new(before.map_or(1, Self::uses));
        Self {
            document,
            due,
            revalidate_at,
            confirmed: requested_at,
            is_cached: true,
            is_suspect: false,
            published: None,
            uses,
            withdrawn: AtomicBool::new(false),
        }
    }

    /// Restores a document that was stored with these dates, possibly by an earlier process.
    pub fn restored(
        document: Document,
        [due, revalidate_at, confirmed]: [Mono; 3],
        uses: u32,
    ) -> Self {
        let uses = AtomicU32::new(uses);
        Self {
            document,
            due,
            revalidate_at,
            confirmed,
            is_cached: true,
            is_suspect: false,
            published: None,
            uses,
            withdrawn: AtomicBool::new(false),
        }
    }

    /// Marks the document as replaced, removed or evicted.
    pub(super) fn withdraw(&self) {
        // This pairs with the load in `is_withdrawn`, which per-thread memos use without reading the cache.
        self.withdrawn.store(true, Ordering::Release);
    }

    /// Whether the cache has replaced, removed or evicted the document.
    pub fn is_withdrawn(&self) -> bool {
        self.withdrawn.load(Ordering::Acquire)
    }

    /// Counts a use.
    pub fn used(&self) {
        // The count only ranks documents, so no memory ordering is needed.
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Recent use count.
    pub fn uses(&self) -> u32 {
        self.uses.load(Ordering::Relaxed)
    }

    /// Halves the use count, so that documents that are no longer requested are no longer refreshed. Called at each
    /// refresh.
    pub fn decay_uses(&self) {
        // A concurrent use may be lost, which is harmless.
        self.uses.store(self.uses() / 2, Ordering::Relaxed);
    }

    /// Whether the new content is suspect: an empty list after a list with items. A second empty list in a row is
    /// accepted.
    pub fn makes_suspect(&self, content: &DocumentContent) -> bool {
        content.count == 0 && self.document.items() > 0 && !self.is_suspect
    }

    /// The same document, with its refresh due by `now` at the latest.
    #[must_use]
    pub fn overdue(&self, now: Mono) -> Self {
        Self {
            due: self.due.min(now),
            revalidate_at: self.revalidate_at.min(now),
            ..self.clone()
        }
    }

    /// The same document, confirmed at `now`, with its next refresh at `due`.
    #[must_use]
    pub fn current(&self, now: Mono, due: Mono) -> Self {
        Self {
            confirmed: now,
            due,
            revalidate_at: due,
            ..self.clone()
        }
    }

    /// The same document, with its version in the shared store.
    #[must_use]
    pub fn published_as(&self, published: PublishedVersion) -> Self {
        Self {
            published: Some(published),
            ..self.clone()
        }
    }

    /// The same document, marked because the backend sent suspect content.
    #[must_use]
    pub fn suspected(&self) -> Self {
        Self {
            is_suspect: true,
            ..self.clone()
        }
    }
}

impl Clone for StoredDocument {
    fn clone(&self) -> Self {
        let document = self.document.clone();
        let uses = AtomicU32::new(self.uses());
        let Self {
            due,
            revalidate_at,
            confirmed,
            is_cached,
            is_suspect,
            published,
            ..
        } = *self;
        // The copy is a new entry, so it is not withdrawn.
        let withdrawn = AtomicBool::new(false);
        Self {
            document,
            due,
            revalidate_at,
            confirmed,
            is_cached,
            is_suspect,
            published,
            uses,
            withdrawn,
        }
    }
}
