//! How it stands with the backend, as an operator sees it: what it is, whether it is asked, what it last said.
//!
//! Not for: the metrics, which tell the same over time (`observe`), nor for what is stored (`stocktaking`).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Now, Wall};
use crate::routes::DocumentKey;
use crate::upstream::{Condition, Failure};

use super::larder::Larder;

/// Some failures quote what came, which can be long.
const MOST_CHARACTERS: usize = 500;

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Where the backend is; without a credential.
    pub place: String,
    /// Whether it is asked, and how much.
    pub condition: Condition,
    /// The last fetch that failed.
    pub last_failure: Option<Failed>,
    /// When it last answered well.
    pub last_good: Option<Wall>,
    /// When its next refresh is expected, or was.
    pub next_refresh: Option<Wall>,
    /// How long that is overdue.
    pub overdue: Duration,
}

/// A fetch that failed, though the backend was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// When.
    pub at: Wall,
    /// Which document, in words.
    pub document: String,
    /// Why, in words.
    pub why: String,
}

/// What became of the last fetches.
#[derive(Debug, Default)]
pub(super) struct Past(Mutex<(Option<Wall>, Option<Failed>)>);

impl Past {
    /// The backend answered well, be it that there is no such model.
    pub(super) fn went_well(&self, at: Wall) {
        self.lock().0 = Some(at);
    }

    /// It did not.
    pub(super) fn failed(&self, key: &DocumentKey, failure: &Failure, at: Wall) {
        let why = failure.to_string().chars().take(MOST_CHARACTERS).collect();
        self.lock().1 = Some(Failed { at, document: key.to_string(), why });
    }

    /// Each change is one assignment, so a panic elsewhere does no harm.
    fn lock(&self) -> MutexGuard<'_, (Option<Wall>, Option<Failed>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Larder {
    /// When its next refresh is expected, or was, if anything is known of that.
    pub(super) fn awaited_refresh(&self, now: Now) -> Option<Wall> {
        // Where nobody looks for refreshes, there is no rhythm that is kept up: the newest answer's word is all there is.
        if self.keeping.load().probing {
            self.refreshes.awaited().map(|at| now.wall_at(at))
        } else {
            self.refreshes.last_heard_of()
        }
    }

    /// How it stands with the backend.
    pub fn standing(&self) -> Standing {
        let now = self.clock.now();
        let (last_good, last_failure) = self.past.lock().clone();
        let next_refresh = self.awaited_refresh(now);
        Standing {
            place: self.upstream.place(),
            condition: self.upstream.condition(),
            last_failure,
            last_good,
            next_refresh,
            overdue: next_refresh.map_or(Duration::ZERO, |at| now.wall.since(at)),
        }
    }
}
