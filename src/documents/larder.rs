//! The documents at hand, and the one way to have one fetched.
//!
//! A fetch is a flight in a task of its own that belongs to no client; what it brings is stored before it lands. What
//! could not be had is remembered for a while. Not for: making the fetch (`errand`), what a request makes of it (`fetch`),
//! nor for what a document looks like.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::available_parallelism;

use arc_swap::ArcSwap;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::cache::freshness::verdict;
use crate::cache::{Absences, Cache, Flights, Landed, Seat, Stored, Verdict};
use crate::clock::{Clock, Mono, Wall};
use crate::keys::ApplicationId;
use crate::routes::DocumentKey;
use crate::upstream::{Failure, Protected};

use super::backend_status::Past;
use super::disk_mirror::Keepsakes;
use super::fetch_priority::{Note, Sake};
use super::known_models::Probes;
use super::refresh_schedule::Refreshes;
use super::retention::Keeping;
use crate::instruments::Instruments;
use crate::instruments::Outcome;

/// What is stored for a request.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The document with its dates.
    pub(crate) stored: Arc<Stored>,
    /// When its refresh is due, as far as is known now.
    pub(crate) due: Mono,
    /// What it is good for.
    pub(crate) verdict: Verdict,
}

impl Found {
    /// Whether a request is answered from it, without anybody waiting for the backend.
    pub(crate) fn is_at_hand(&self) -> bool {
        match self.verdict {
            Verdict::Fresh | Verdict::UsableWhileRefreshed => true,
            Verdict::UsableOnError | Verdict::Gone => false,
        }
    }
}

/// Why a fetch brought no document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoDocument {
    /// The backend knows no such model.
    NoSuchModel,
    /// The model is in no list of the backend's, and the backend was asked about another such one a moment ago.
    Unlisted,
    /// The backend gave none.
    Failed(Failure),
}

/// Why a request waited in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InVain {
    /// The fetch brought no document.
    Without(NoDocument),
    /// It takes longer than a request may wait.
    NotInTime,
    /// It died without a result; what it died of was logged where it did.
    Died,
}

/// What a flight brings.
pub(super) type Landing = Result<Arc<Stored>, NoDocument>;

/// Everything needed to find a document or have it fetched.
pub struct Larder {
    pub(super) cache: Cache,
    pub(super) flights: Flights<Landing, Note>,
    pub(super) absences: Absences<NoDocument>,
    pub(crate) upstream: Protected,
    pub(super) keeping: ArcSwap<Keeping>,
    /// When the backend refreshes, as far as is known.
    pub(super) refreshes: Refreshes,
    /// What the backend is asked about models that it has not listed.
    pub(super) probes: Probes,
    pub(super) keepsakes: Arc<Keepsakes>,
    /// What became of the last fetches.
    pub(super) past: Past,
    /// When what is gone was dropped last, in nanoseconds of running time.
    pub(super) cleared: AtomicU64,
    /// Turns at building documents: half of the cores may, since each takes all of one for a while, and megabytes.
    pub(super) builders: Semaphore,
    tasks: TaskTracker,
    pub(super) clock: Clock,
    pub(super) instruments: Arc<Instruments>,
}

impl Larder {
    /// A larder with room for that many bytes of bodies, filled from `upstream`; fetches run as tasks of `tasks`.
    pub fn new(
        cache_bytes: u64,
        keepsakes: Keepsakes,
        upstream: Protected,
        keeping: Keeping,
        tasks: TaskTracker,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        let (flights, absences, refreshes, probes, past, cleared) = Default::default();
        let (keeping, keepsakes) = (ArcSwap::from_pointee(keeping), Arc::new(keepsakes));
        let noted = Arc::clone(&keepsakes);
        Self {
            cache: Cache::new(cache_bytes, move |key| noted.note(key)),
            flights,
            absences,
            upstream,
            keeping,
            refreshes,
            probes,
            keepsakes,
            past,
            cleared,
            builders: Semaphore::new(available_parallelism().map_or(1, usize::from).div_ceil(2)),
            tasks,
            clock,
            instruments,
        }
    }

    /// What is stored for a request, and what it is good for at `now`. To look is no use of it.
    pub(crate) fn find(&self, key: &DocumentKey, now: Mono) -> Option<Found> {
        let stored = self.cache.get(key)?;
        let keeping = self.keeping.load();
        let life = keeping.life(key.route);
        let due = life.due(&stored, self.refreshes.seen_at());
        Some(Found { stored, due, verdict: verdict(due, &life.windows, now) })
    }

    /// When the refresh of a document is due, or was.
    pub(crate) fn due(&self, key: &DocumentKey, stored: &Stored) -> Mono {
        self.keeping.load().life(key.route).due(stored, self.refreshes.seen_at())
    }

    /// Whether the backend may be asked about an overdue document: not if it was a moment ago.
    pub(super) fn may_be_asked_about(&self, key: &DocumentKey, stored: &Stored, now: Mono) -> bool {
        now >= stored.ask_again
            || self.keeping.load().life(key.route).is_outdated(stored, self.refreshes.seen_at())
    }

    /// When the backend is next expected to change its data, as the newest answer has it.
    pub fn next_refresh(&self, now: Wall) -> Option<Wall> {
        self.refreshes.heard_of(now)
    }

    /// Has an overdue document refreshed, if the backend may be asked about it. Nobody waits for that, so while the backend
    /// rests it is not even tried: every request for a stale document comes by here.
    pub(crate) fn refresh(self: &Arc<Self>, key: &DocumentKey, stored: &Stored, sake: Sake, now: Mono) {
        if self.may_be_asked_about(key, stored, now) && !self.upstream.rests() {
            drop(self.board(key, sake.without_waiting()));
        }
    }

    /// Asks the backend about a document, current or not. What is stored after that.
    pub(super) async fn ask_about(self: &Arc<Self>, key: &DocumentKey) -> Option<Arc<Stored>> {
        let (landed, _) = self.board_unless(key, Sake::NOBODY, |_| false);
        landed.result().await?.ok()
    }

    /// Waits for the flight of a document, as long as a request's patience lasts.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        key: &DocumentKey,
        sake: Sake,
    ) -> Result<(Arc<Stored>, Outcome), InVain> {
        let deadline = self.clock.now().mono.plus(self.keeping.load().patience);
        match self.wait_until(deadline, key, sake).await {
            // It may be in a list that is not at hand.
            Err(InVain::Without(NoDocument::Unlisted)) => {
                if self.lists_anew(deadline, sake).await? {
                    self.wait_until(deadline, key, sake).await
                } else {
                    Err(InVain::Without(NoDocument::Unlisted))
                }
            }
            ended => ended,
        }
    }

    pub(super) async fn wait_until(
        self: &Arc<Self>,
        deadline: Mono,
        key: &DocumentKey,
        sake: Sake,
    ) -> Result<(Arc<Stored>, Outcome), InVain> {
        let (landed, outcome) = self.board(key, sake);
        let landing = self.clock.until(deadline, landed.result()).await.map_err(|_| InVain::NotInTime)?;
        let stored = landing.ok_or(InVain::Died)?.map_err(InVain::Without)?;
        Ok((stored, outcome))
    }

    /// Takes a seat in the flight of a document; starts it if there is none.
    fn board(self: &Arc<Self>, key: &DocumentKey, sake: Sake) -> (Landed<Landing>, Outcome) {
        // Another flight may have landed between the look at the cache and the boarding of this one.
        self.board_unless(key, sake, |stored| self.clock.now().mono < self.due(key, stored))
    }

    fn board_unless(
        self: &Arc<Self>,
        key: &DocumentKey,
        sake: Sake,
        is_current: impl Fn(&Stored) -> bool,
    ) -> (Landed<Landing>, Outcome) {
        match self.flights.board(key, sake.note()) {
            Seat::Shared(landed, note) => {
                note.urgent.raise(sake.urgency);
                (landed, Outcome::Shared)
            }
            Seat::First(ticket, landed) => {
                if let Some(instead) = self.instead_of_a_fetch(key, sake.caller, is_current) {
                    ticket.land(instead);
                    return (landed, Outcome::Shared);
                }
                let larder = Arc::clone(self);
                self.tasks.spawn(async move { larder.run(ticket).await });
                (landed, Outcome::Miss)
            }
        }
    }

    /// What a flight brings at once, without a fetch.
    fn instead_of_a_fetch(
        &self,
        key: &DocumentKey,
        caller: Option<ApplicationId>,
        is_current: impl Fn(&Stored) -> bool,
    ) -> Option<Landing> {
        let now = self.clock.now().mono;
        // It was asked for and could not be had, a moment ago.
        if let Some(why) = self.absences.get(key, now) {
            return Some(Err(why));
        }
        match self.cache.get(key) {
            Some(stored) => is_current(&stored).then_some(Ok(stored)),
            None => self.turned_away(key, caller, now).map(Err),
        }
    }
}
