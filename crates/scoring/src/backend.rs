//! The backend: a source of runs, and the answers of the newest snapshot.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ModelId},
};

use super::{
    answer::Answer, archive::ArchiveError, endpoints::SnapshotAnswers, hour::Hour,
    snapshot::RunSource,
};

/// Pause after a failed attempt to read the source.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The reason for a new snapshot, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is no new snapshot.
    Nothing,
    /// An hour has begun.
    ByTheHour,
    /// Runs were imported.
    ByAnImport,
}

/// The built-in backend. It is shared through an `Arc`. Any number of threads may query it during a refresh.
#[derive(Debug)]
pub struct Scoring {
    source: RunSource,
    answers: ArcSwap<SnapshotAnswers>,
    /// Locked during a refresh. After a failed refresh, contains the time of the next attempt.
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

    /// Ensures that the snapshot is not older than the hour of `now`. Returns `true` if this call made a new one.
    ///
    /// If several callers are concurrent, one computes and the others wait. Queries never wait. If the clock jumps
    /// ahead, one new snapshot covers the whole step. If it goes back, nothing changes. If the source cannot be read,
    /// the old snapshot stays, and the next attempt follows after a pause. The computation takes a noticeable fraction of a
    /// second, so call this only where blocking is allowed.
    pub fn refresh(&self, now: Wall) -> Result<bool, ArchiveError> {
        let hour = Hour::of(now);
        if hour <= self.answers.load().made_in {
            return Ok(false);
        }
        self.renew(now, |answers| Ok(hour > answers.made_in))
    }

    /// Like [`Scoring::refresh`], but also makes a new snapshot after an import. Checks the archive, which is cheap if
    /// it has not changed.
    pub fn check(&self, now: Wall) -> Result<Change, ArchiveError> {
        if self.refresh(now)? {
            return Ok(Change::ByTheHour);
        }
        // If the clock went back, the snapshot must not.
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

    /// Makes a new snapshot if one is needed. Returns `true` if it did.
    fn renew(
        &self,
        now: Wall,
        is_wanted: impl Fn(&SnapshotAnswers) -> Result<bool, ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        // The lock guards a single value, so a panic cannot leave inconsistent data.
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
