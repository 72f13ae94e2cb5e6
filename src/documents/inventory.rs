//! What is done to all documents at once: they are listed, purged, swept.
//!
//! Not for: a single request (`larder`).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::cache::Stored;
use crate::cache::freshness::{Verdict, ttl, verdict};
use crate::clock::Mono;
use crate::routes::{DocumentKey, Selection};

use super::larder::Larder;

/// What is gone is nobody's any more, whether it is there or not; to find it means to look at everything.
const CLEAR_EVERY: Duration = Duration::from_mins(10);

/// A document at hand, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which one, in words.
    pub document: String,
    /// Bytes of all its bodies.
    pub bytes: usize,
    /// How many items its data has.
    pub items: usize,
    /// How long ago the backend confirmed it.
    pub confirmed: Duration,
    /// Seconds until its refresh is due; less than nothing once it is overdue.
    pub due_in: i64,
}

impl Larder {
    /// Has documents asked for anew: they are served, marked stale, while they are refreshed; with `hard` they are gone at
    /// once, from the disk too. What flights under way bring is not stored. Says how many were stored.
    pub async fn purge(self: &Arc<Self>, selection: &Selection, hard: bool) -> usize {
        let purged = self.mark(selection, hard);
        self.put_by().await;
        purged
    }

    fn mark(&self, selection: &Selection, hard: bool) -> usize {
        let now = self.clock.now().mono;
        self.flights.forget(|key| selection.fits(key));
        self.absences.forget(|key| selection.fits(key));
        let (mut purged, fitting) = (0, self.cache.all().into_iter().filter(|(key, _)| selection.fits(key)));
        for (key, stored) in fitting {
            purged += 1;
            if hard {
                self.cache.remove(&key);
            } else {
                self.cache.replace(&key, &stored, stored.overdue(now));
            }
            self.keepsakes.note(&key);
        }
        purged
    }

    /// Everything that is stored, for the operator: in the order of what it is.
    pub fn inventory(&self) -> Vec<Kept> {
        let now = self.clock.now().mono;
        let kept = |(key, stored): (DocumentKey, Arc<Stored>)| Kept {
            document: key.address(),
            bytes: stored.document.bytes(),
            items: stored.document.items(),
            confirmed: now.since(stored.confirmed),
            due_in: ttl(self.due(&key, &stored), now),
        };
        let mut all: Vec<Kept> = self.cache.all().into_iter().map(kept).collect();
        all.sort_by(|one, other| one.document.cmp(&other.document));
        all
    }

    /// Drops now and then what is gone, and tells the metrics how much is there. Called every few seconds.
    pub fn sweep(&self) {
        let here = self.clock.now();
        let now = here.mono;
        if now.since(Mono::from_nanos(self.cleared.load(Ordering::Relaxed))) >= CLEAR_EVERY {
            self.clear(now);
        }
        self.absences.sweep(now);
        let (documents, bytes) = self.cache.keep_house();
        self.instruments.larder(documents, bytes, self.flights.len());
        self.instruments.upstream(self.upstream.condition());
        let awaited = self.awaited_refresh(here).unwrap_or(here.wall);
        self.instruments.next_refresh(here.wall.since(awaited), awaited.since(here.wall));
    }

    fn clear(&self, now: Mono) {
        self.cleared.store(now.nanos(), Ordering::Relaxed);
        let keeping = self.keeping.load();
        let is_gone = |key: &DocumentKey, stored: &Stored| {
            verdict(stored.due, &keeping.life(key.route).windows, now) == Verdict::Gone
        };
        for key in self.cache.drop_what_is(is_gone) {
            self.keepsakes.note(&key);
        }
    }

    /// How many documents are stored that are not gone. For tests.
    pub fn documents(&self) -> u64 {
        self.clear(self.clock.mono());
        self.cache.keep_house().0
    }
}
