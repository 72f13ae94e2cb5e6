//! What is known of the backend's refreshes: when one was last seen, and the rhythm in which the next is looked for.
//!
//! Not for: looking for it (`refresher`), nor for the dates of a document (`cache::freshness`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::cache::{Rhythm, Stored};
use crate::clock::{Mono, Now, Wall};
use crate::routes::DocumentKey;

/// The backend's refreshes, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Refreshes {
    /// When one was last seen, in nanoseconds of running time: what was confirmed before that is outdated.
    seen_at: AtomicU64,
    /// When the next is expected, as the newest answer has it, in seconds of the wall; zero while nothing is known.
    heard_of: AtomicU64,
    /// None before there is a document to ask about.
    rhythm: Mutex<Option<Rhythm>>,
    begins: Notify,
    /// The newest that a caller's fetch has come upon; until the refresher takes note.
    met: Mutex<Option<Met>>,
    meets: Notify,
    /// Whether the refresher is at work, and not waiting for something to do.
    is_at_work: AtomicBool,
}

/// The refresher is at work until this is dropped.
pub(super) struct AtWork<'r>(&'r AtomicBool);

/// A refresh that a fetch for a caller has come upon.
#[derive(Clone, Debug)]
pub(super) struct Met {
    /// The document that has changed.
    pub(super) document: DocumentKey,
    /// As it is since.
    pub(crate) stored: Arc<Stored>,
    /// When that came.
    pub(super) at: Mono,
}

impl Refreshes {
    /// When one was last seen.
    pub(super) fn seen_at(&self) -> Mono {
        Mono::from_nanos(self.seen_at.load(Ordering::Acquire))
    }

    /// One was seen.
    pub(super) fn saw_one(&self, now: Mono) {
        self.seen_at.fetch_max(now.nanos(), Ordering::AcqRel);
    }

    /// A document has changed since the last one was seen. If the next is overdue this is it, whoever asked; else it may be
    /// the affair of that document alone, and such changes, one by one, must not have everything asked for anew.
    pub(super) fn met(&self, met: Met) {
        if self.rhythm().is_some_and(|rhythm| rhythm.expected() <= met.at) {
            *self.met.lock().unwrap_or_else(PoisonError::into_inner) = Some(met);
            self.meets.notify_one();
        }
    }

    /// Waits until a fetch for a caller comes upon a refresh that was not seen yet.
    pub(super) async fn is_met(&self) -> Met {
        loop {
            let met = self.met.lock().unwrap_or_else(PoisonError::into_inner).take();
            match met.filter(|met| met.at > self.seen_at()) {
                Some(met) => return met,
                None => self.meets.notified().await,
            }
        }
    }

    /// An answer has it that the next is due then.
    pub(super) fn hear_of(&self, due: Wall) {
        self.heard_of.store(due.seconds(), Ordering::Relaxed);
    }

    /// When the next is expected, as the newest answer has it, if that is yet to come.
    pub(super) fn heard_of(&self, now: Wall) -> Option<Wall> {
        self.last_heard_of().filter(|heard_of| *heard_of > now)
    }

    /// When the next is expected, or was, as the newest answer has it.
    pub(super) fn last_heard_of(&self) -> Option<Wall> {
        let heard_of = self.heard_of.load(Ordering::Relaxed);
        (heard_of > 0).then(|| Wall::from_seconds(heard_of))
    }

    /// When the next is expected, or was, by the rhythm.
    pub(super) fn awaited(&self) -> Option<Mono> {
        self.rhythm().map(|rhythm| rhythm.expected())
    }

    /// When the next is expected by the rhythm, if that is yet to come.
    pub(super) fn expected(&self, now: Now) -> Option<Wall> {
        self.awaited().filter(|awaited| *awaited > now.mono).map(|awaited| now.wall_at(awaited))
    }

    /// The first document that is stored begins the rhythm.
    pub(super) fn begin(&self, rhythm: Rhythm) {
        let mut known = self.lock();
        if known.is_none() {
            *known = Some(rhythm);
            self.begins.notify_one();
        }
    }

    /// The rhythm; waits for its beginning.
    pub(crate) async fn begun(&self) -> Rhythm {
        loop {
            match self.rhythm() {
                Some(rhythm) => return rhythm,
                None => self.begins.notified().await,
            }
        }
    }

    /// The refresher is at work as long as this is kept.
    pub(super) fn at_work(&self) -> AtWork<'_> {
        self.is_at_work.store(true, Ordering::Release);
        AtWork(&self.is_at_work)
    }

    /// Whether it is.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_at_work.load(Ordering::Acquire)
    }

    /// Takes the rhythm a step further.
    pub(super) fn step(&self, step: impl Fn(Rhythm) -> Rhythm) {
        let mut rhythm = self.lock();
        *rhythm = rhythm.map(step);
    }

    fn rhythm(&self) -> Option<Rhythm> {
        *self.lock()
    }

    /// A rhythm is replaced as a whole, so a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, Option<Rhythm>> {
        self.rhythm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
