//! A document as it is stored: with its dates, and how often it was asked for. Not for: how long it serves by these
//! (`freshness`).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::Mono;

use super::document::{Document, DocumentContent};

/// A document with its dates. Replaced as a whole; only its uses are counted on.
#[derive(Debug)]
pub struct StoredDocument {
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

impl StoredDocument {
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
    pub fn is_doubtfully_followed_by(&self, content: &DocumentContent) -> bool {
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

impl Clone for StoredDocument {
    fn clone(&self) -> Self {
        let (document, uses) = (self.document.clone(), AtomicU32::new(self.uses()));
        let Self { due, ask_again, confirmed, kept, doubted, .. } = *self;
        Self { document, due, ask_again, confirmed, kept, doubted, uses }
    }
}
