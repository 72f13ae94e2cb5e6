//! The backend: a source of runs and the answers of its newest snapshot.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, ModelId};

use super::answer::Answer;
use super::archive::ArchiveError;
use super::endpoints::SnapshotAnswers;
use super::hour::Hour;
use super::snapshot::RunSource;

/// Pause after a source could not be read.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Why there is a new snapshot, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No new snapshot.
    Nothing,
    /// An hour has begun.
    ByTheHour,
    /// Runs were imported.
    ByAnImport,
}

/// The built-in backend. Shared by `Arc`; any number of threads may query it during a refresh.
#[derive(Debug)]
pub struct Scoring {
    source: RunSource,
    answers: ArcSwap<SnapshotAnswers>,
    /// Held during a refresh. After a failed refresh: when to try again.
    refreshing: Mutex<Option<Wall>>,
}

impl Scoring {
    /// Opens a source and computes the snapshot for the hour of `now`.
    pub fn open(source: RunSource, now: Wall) -> Result<Self, ArchiveError> {
        let answers = SnapshotAnswers::render(&source.snapshot(now)?);
        Ok(Self {
            source,
            answers: ArcSwap::from_pointee(answers),
            refreshing: Mutex::new(None),
        })
    }

    /// A backend of simulated runs: the same seed and hour give the same bytes in every process.
    pub fn demo(seed: u64, now: Wall) -> Self {
        Self::open(RunSource::Simulated { seed }, now).expect("only an archive can be unreadable")
    }

    /// Ensures that the snapshot is not older than the hour of `now`; returns true if this call made a new one.
    ///
    /// Of concurrent callers one computes and the others wait; queries never wait. A clock that jumped ahead is
    /// followed in one step; a clock that went back changes nothing. If the source cannot be read the old snapshot
    /// stays, and the next attempt is made after a pause. Computes for a noticeable part of a second: call it where
    /// blocking is allowed.
    pub fn refresh(&self, now: Wall) -> Result<bool, ArchiveError> {
        let hour = Hour::of(now);
        if hour <= self.answers.load().made_in {
            return Ok(false);
        }
        self.renew(now, |answers| Ok(hour > answers.made_in))
    }

    /// Like [`Scoring::refresh`], and makes a new snapshot after an import too. Checks the archive, which is cheap if there
    /// is nothing new.
    pub fn check(&self, now: Wall) -> Result<Change, ArchiveError> {
        if self.refresh(now)? {
            return Ok(Change::ByTheHour);
        }
        // If the clock went back, the snapshot does not.
        let now = now.max(self.answers.load().made_in.start());
        let is_new = self.renew(now, |answers| {
            Ok(self.source.last_import()? != answers.imported)
        })?;
        Ok(if is_new {
            Change::ByAnImport
        } else {
            Change::Nothing
        })
    }

    /// Makes a new snapshot if one is needed; returns true if it did.
    fn renew(
        &self,
        now: Wall,
        is_wanted: impl Fn(&SnapshotAnswers) -> Result<bool, ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        // A single value, so a panic cannot leave it half changed.
        let mut again = self.refreshing.lock();
        if again.is_some_and(|again| now < again && again.since(now) <= RETRY_AFTER) {
            return Ok(false);
        }
        let snapshot = match is_wanted(&self.answers.load()) {
            Ok(false) => return Ok(false),
            Ok(true) => self.source.snapshot(now),
            Err(error) => Err(error),
        };
        *again = snapshot.is_err().then(|| now.plus(RETRY_AFTER));
        self.answers
            .store(Arc::new(SnapshotAnswers::render(&snapshot?)));
        Ok(true)
    }

    /// The data of a document; `None` if its model does not exist.
    pub fn answer(&self, key: &DocumentKey) -> Option<Answer> {
        self.answers.load().answer(key)
    }

    /// The ids of all models, sorted. A model exists while it has runs in the last 60 days.
    pub fn model_ids(&self) -> Vec<ModelId> {
        self.answers.load().models.clone()
    }

    /// When the next snapshot is due.
    pub fn next_refresh(&self) -> Wall {
        self.answers.load().made_in.plus(1).start()
    }
}
