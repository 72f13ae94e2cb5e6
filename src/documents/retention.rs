//! How documents are kept: for how long, by what rhythm, with how much patience.
//!
//! Pure. Not for: the verdict on a document (`cache::freshness`).

use std::time::Duration;

use crate::cache::freshness::{Dates, Known, dates};
use crate::cache::{Stored, Windows};
use crate::clock::{Mono, Wall};
use crate::routes::Route;

/// How documents are kept.
#[derive(Clone, Debug)]
pub struct Keeping {
    /// For how long.
    pub life: ShelfLife,
    /// For how long those of these endpoints.
    pub lives: Vec<(Route, ShelfLife)>,
    /// How often the backend refreshes, where it does not say.
    pub cadence: Duration,
    /// How long a request waits for a fetch.
    pub patience: Duration,
    /// Whether the backend is asked of our own accord if it has refreshed.
    pub probing: bool,
    /// The attribution notice in every document.
    pub license: String,
}

/// For how long documents are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShelfLife {
    /// After they were due.
    pub windows: Windows,
    /// If this is said they are due so long after they were confirmed, and the backend's refreshes are of no matter.
    pub ttl: Option<Duration>,
}

impl Keeping {
    /// For how long documents of an endpoint are kept.
    pub fn life(&self, route: Route) -> &ShelfLife {
        self.lives.iter().find(|(of, _)| *of == route).map_or(&self.life, |(_, life)| life)
    }

    /// The dates of a document of an endpoint that was confirmed at `now`.
    pub(super) fn dates(&self, route: Route, known: Known, generated_at: Wall, now: Wall) -> Dates {
        match self.life(route).ttl.map(|ttl| now.plus(ttl)) {
            Some(due) => Dates { due, ask_again: due },
            None => dates(known, generated_at, self.cadence, now),
        }
    }
}

impl ShelfLife {
    /// Whether documents are due when the backend refreshes.
    pub fn follows_the_backend(&self) -> bool {
        self.ttl.is_none()
    }

    /// Whether the backend has refreshed since a document was confirmed.
    pub(super) fn is_outdated(&self, stored: &Stored, refreshed_at: Mono) -> bool {
        self.follows_the_backend() && stored.confirmed < refreshed_at
    }

    /// When a document is due, or was: one that is outdated is due by the refresh.
    pub(crate) fn due(&self, stored: &Stored, refreshed_at: Mono) -> Mono {
        if self.is_outdated(stored, refreshed_at) { stored.due.min(refreshed_at) } else { stored.due }
    }
}
