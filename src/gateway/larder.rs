//! The documents at hand, and the one way to have one fetched.
//!
//! A fetch is a flight in a task of its own that belongs to no client; what it brings is stored before it lands. What
//! could not be had is remembered for a while. Not for: what a request makes of it (`fetch`), nor for what a document
//! looks like.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;

use crate::cache::freshness::{next_refresh, ttl, verdict};
use crate::cache::{
    Absences, Cache, Content, Document, Flights, Label, Landed, Seat, Stored, Ticket, Verdict, Windows,
};
use crate::clock::{Clock, Mono, Now, Wall};
use crate::routes::{DocumentKey, Selection};
use crate::upstream::{Failure, Fetched, Protected, Urgency, Urgent};

use super::counted::FetchEnd;
use super::observe::Instruments;
use super::outcome::Outcome;

/// How documents are kept.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// How long they are usable after their refresh was due.
    pub windows: Windows,
    /// How often the backend refreshes, where it does not say.
    pub cadence: Duration,
    /// How long a request waits for a fetch.
    pub patience: Duration,
    /// The attribution notice in every document.
    pub license: String,
}

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

/// Why a fetch brought no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoDocument {
    /// The backend knows no such model.
    NoSuchModel,
    /// The backend gave none.
    Failed(Failure),
}

/// Why a request waited in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InVain {
    /// The fetch brought no document.
    Without(NoDocument),
    /// It takes longer than a request may wait.
    NotInTime,
    /// It died without a result; what it died of was logged where it did.
    Died,
}

type Landing = Result<Arc<Stored>, NoDocument>;

/// So long a fetch that failed is not made again, however many ask. Short: the next good answer has to be seen soon.
const FAILED_FOR: Duration = Duration::from_millis(500);
/// So long a model that the backend does not know is not asked for again.
const UNKNOWN_FOR: Duration = Duration::from_mins(1);

/// Everything needed to find a document or have it fetched.
pub struct Larder {
    cache: Cache,
    flights: Flights<Landing, Urgent>,
    absences: Absences<NoDocument>,
    upstream: Protected,
    keeping: ArcSwap<Keeping>,
    /// When the backend is next expected to refresh, in seconds of the wall; zero while nothing is known.
    next_refresh: AtomicU64,
    tasks: TaskTracker,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl Larder {
    /// A larder that is filled from `upstream`; fetches run as tasks of `tasks`.
    pub fn new(
        cache: Cache,
        upstream: Protected,
        keeping: Keeping,
        tasks: TaskTracker,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        let (flights, keeping) = (Flights::default(), ArcSwap::from_pointee(keeping));
        let (absences, next_refresh) = (Absences::default(), AtomicU64::new(0));
        Self { cache, flights, absences, upstream, keeping, next_refresh, tasks, clock, instruments }
    }

    /// What is stored, and what it is good for at `now`.
    pub(super) fn find(&self, key: &DocumentKey, now: Mono) -> Option<(Arc<Stored>, Verdict)> {
        let stored = self.cache.get(key)?;
        let verdict = verdict(stored.due, &self.keeping.load().windows, now);
        Some((stored, verdict))
    }

    /// Has a document refreshed. Nobody waits for it, so while the backend rests it is not even tried: every request for
    /// a stale document comes by here.
    pub(super) fn refresh(self: &Arc<Self>, key: &DocumentKey) {
        if !self.upstream.rests() {
            drop(self.board(key, Urgency::Refresh));
        }
    }

    /// Waits for the flight of a document, as long as a request's patience lasts.
    pub(super) async fn wait(
        self: &Arc<Self>,
        key: &DocumentKey,
        urgency: Urgency,
    ) -> Result<(Arc<Stored>, Outcome), InVain> {
        let patience = self.keeping.load().patience;
        let (landed, outcome) = self.board(key, urgency);
        let landing = self.clock.within(patience, landed.result()).await.map_err(|_| InVain::NotInTime)?;
        let stored = landing.ok_or(InVain::Died)?.map_err(InVain::Without)?;
        Ok((stored, outcome))
    }

    /// Takes a seat in the flight of a document; starts it if there is none.
    fn board(self: &Arc<Self>, key: &DocumentKey, urgency: Urgency) -> (Landed<Landing>, Outcome) {
        match self.flights.board(key, Urgent::new(urgency)) {
            Seat::Shared(landed, urgent) => {
                urgent.raise(urgency);
                (landed, Outcome::Shared)
            }
            Seat::First(ticket, landed) => {
                // It was asked for and could not be had, a moment ago.
                if let Some(why) = self.absences.get(key, self.clock.now().mono) {
                    ticket.land(Err(why));
                    return (landed, Outcome::Shared);
                }
                // Another flight may have landed between the look at the cache and the boarding of this one.
                let stored = self.cache.get(key);
                if let Some(stored) = stored.filter(|stored| self.clock.now().mono < stored.due) {
                    ticket.land(Ok(stored));
                    return (landed, Outcome::Shared);
                }
                let larder = Arc::clone(self);
                self.tasks.spawn(async move { larder.fly(ticket).await });
                (landed, Outcome::Miss)
            }
        }
    }

    /// Makes one fetch and brings its flight to its end.
    async fn fly(&self, ticket: Ticket<Landing, Urgent>) {
        let before = self.cache.get(ticket.key());
        let started = self.clock.now();
        let known = before.as_ref().map(|stored| stored.document.source());
        let fetched = self.upstream.fetch(ticket.key(), known, ticket.note()).await;
        let now = self.clock.now();
        let landing = match fetched {
            Ok(Fetched::Content { content, next_refresh }) => {
                self.store(&ticket, content, next_refresh, before, now).await
            }
            Ok(Fetched::Unchanged { next_refresh }) => match before {
                Some(before) => Ok(self.confirm(&ticket, &before.document, next_refresh, now)),
                None => {
                    Err(NoDocument::Failed(Failure::Invalid("it says unchanged of what is not known".into())))
                }
            },
            Ok(Fetched::NoSuchModel | Fetched::Nothing { .. }) => {
                // The backend's word that a model is gone is an answer, not a failure: the old document goes too.
                ticket.while_current(|| self.cache.remove(ticket.key()));
                Err(NoDocument::NoSuchModel)
            }
            Err(failure) => Err(NoDocument::Failed(failure)),
        };
        let end = match &landing {
            Ok(_) => FetchEnd::Good,
            Err(NoDocument::Failed(failure)) => FetchEnd::of(failure),
            Err(NoDocument::NoSuchModel) => FetchEnd::NoSuchModel,
        };
        self.instruments.fetched(end, now.mono.since(started.mono), ticket.passengers());
        if let Err(why) = &landing {
            self.miss(&ticket, why, now);
        }
        ticket.land(landing);
    }

    /// Remembers that a document cannot be had. One that was not asked for costs the backend nothing, and may be asked
    /// for as soon as the backend may.
    fn miss(&self, ticket: &Ticket<Landing, Urgent>, why: &NoDocument, now: Now) {
        let key = ticket.key();
        let holds_for = match why {
            NoDocument::NoSuchModel => UNKNOWN_FOR,
            NoDocument::Failed(Failure::Resting(_) | Failure::Crowded) => return,
            NoDocument::Failed(failure) => {
                tracing::warn!(document = %key, %failure, "a fetch failed");
                FAILED_FOR
            }
        };
        let until = now.mono.plus(holds_for);
        ticket.while_current(|| self.absences.remember(key.clone(), why.clone(), until));
    }

    /// Builds a document from what came and stores it. Compression takes a while, so it is done aside.
    async fn store(
        &self,
        ticket: &Ticket<Landing, Urgent>,
        content: Content,
        stated: Option<Wall>,
        before: Option<Arc<Stored>>,
        now: Now,
    ) -> Landing {
        if let Some(before) = before.as_ref().filter(|before| before.is_doubtfully_followed_by(&content)) {
            ticket.while_current(|| self.cache.put(ticket.key().clone(), Arc::new(before.doubted())));
            let reason = "it is empty, and what it sent before was not: that is believed the second time";
            return Err(NoDocument::Failed(Failure::Invalid(reason.into())));
        }
        let (label_key, license) = (ticket.key().clone(), self.keeping.load().license.clone());
        let built = tokio::task::spawn_blocking(move || {
            let label = Label { key: &label_key, license: &license };
            Document::build(content, &label, before.as_deref().map(|stored| stored.document.as_ref()))
        });
        let failed = |reason: String| NoDocument::Failed(Failure::Invalid(reason));
        let document =
            built.await.map_err(|error| failed(error.to_string()))?.map_err(|bad| failed(bad.to_string()))?;
        Ok(self.confirm(ticket, &Arc::new(document), stated, now))
    }

    /// Stores a document as confirmed by the backend just now, unless it was purged since it was asked for.
    fn confirm(
        &self,
        ticket: &Ticket<Landing, Urgent>,
        document: &Arc<Document>,
        stated: Option<Wall>,
        now: Now,
    ) -> Arc<Stored> {
        let cadence = self.keeping.load().cadence;
        let due_at = next_refresh(stated, document.generated_at(), cadence, now.wall);
        let due = now.mono.plus(due_at.since(now.wall));
        self.next_refresh.store(due_at.seconds(), Ordering::Relaxed);
        let kept = self.cache.has_room_for(document);
        let stored = Arc::new(Stored {
            document: Arc::clone(document),
            due,
            confirmed: now.mono,
            kept,
            doubted: false,
        });
        let key = ticket.key();
        if kept {
            ticket.while_current(|| self.cache.put(key.clone(), Arc::clone(&stored)));
        } else {
            tracing::warn!(document = %key, bytes = document.bytes(), "a document is too large to be stored");
        }
        stored
    }

    /// Has documents asked for anew: they are served, marked stale, while they are refreshed; with `hard` they are gone at
    /// once. What flights under way bring is not stored. Says how many were stored.
    pub fn purge(&self, selection: &Selection, hard: bool) -> usize {
        let now = self.clock.now().mono;
        self.flights.forget(|key| selection.fits(key));
        self.absences.forget(|key| selection.fits(key));
        let (mut purged, fitting) = (0, self.cache.all().filter(|(key, _)| selection.fits(key)));
        for (key, stored) in fitting {
            purged += 1;
            if hard {
                self.cache.remove(&key);
            } else {
                self.cache.replace(&key, &stored, stored.overdue(now));
            }
        }
        purged
    }

    /// Everything that is stored, for the operator: in the order of what it is.
    pub fn inventory(&self) -> Vec<Kept> {
        let now = self.clock.now().mono;
        let kept = |(key, stored): (Arc<DocumentKey>, Arc<Stored>)| Kept {
            document: key.to_string(),
            bytes: stored.document.bytes(),
            items: stored.document.items(),
            confirmed: now.since(stored.confirmed),
            due_in: ttl(stored.due, now),
        };
        let mut all: Vec<Kept> = self.cache.all().map(kept).collect();
        all.sort_by(|one, other| one.document.cmp(&other.document));
        all
    }

    /// Drops what is gone and tells the metrics how much is there. Called every few seconds.
    pub fn sweep(&self) {
        let now = self.clock.now().mono;
        self.cache.sweep(&self.keeping.load().windows, now);
        self.absences.sweep(now);
        let (documents, bytes) = self.cache.size();
        self.instruments.larder(documents, bytes, self.flights.len());
        self.instruments.upstream(self.upstream.condition());
    }

    /// When the backend is next expected to change its data, as the newest answer has it.
    pub fn next_refresh(&self, now: Wall) -> Option<Wall> {
        let learned = Wall::from_seconds(self.next_refresh.load(Ordering::Relaxed));
        (learned > now).then_some(learned)
    }

    /// How many documents are stored. For tests and the operator.
    pub fn documents(&self) -> u64 {
        self.sweep();
        self.cache.size().0
    }
}
