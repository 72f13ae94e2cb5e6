//! The backend that is built in: it scores models from benchmark runs, so that the gateway runs whole on one machine.
//!
//! The results of one instant are a snapshot, computed by pure functions from the runs before the top of an hour, and again
//! at the end of an import, and swapped whole, so that lists and details agree. Answers are rendered when the snapshot is made; a question costs a
//! look-up. It speaks the vocabulary of [`crate::routes`] and knows nothing of gateways. Not for: keys, tiers, envelopes
//! and HTTP, and not for leaving `latestScore` out: who may see what is the gateway's business.

mod archive;
mod catalogue;
mod changes;
mod count;
pub mod detection;
mod drift;
mod endpoints;
mod figures;
mod hour;
mod incidents;
mod losses;
mod measure;
mod method;
mod model_state;
mod page_hinkley;
mod question;
mod run;
mod series;
mod simulate;
mod snapshot;
mod snapshot_updater;
mod statistics;
mod student;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::clock::Wall;
use crate::routes::{Limit, ModelId, Period, SortBy};

use endpoints::SnapshotAnswers;
use hour::Hour;

pub use archive::{Archive, ArchiveError, RunInsertion};
pub use method::METHOD_VERSION;
pub use run::{
    Axis, BadRun, IdentifiedRun, LONGEST_RUN, MOST_TRIALS, Run, RunFailure, RunId, RunOutcome, Suite,
    TestedModel, Trial,
};
pub use simulate::simulated_records;
pub use snapshot::RunSource;
pub use snapshot_updater::{SnapshotUpdater, UpdateRequest, UpdateRequests, UpdateSnapshot};

/// A source that could not be read is left alone for so long.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// What can be asked: one for each endpoint that has data, with its parameters resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the endpoints of routes/table.rs and their parameters, by name")]
pub enum Question {
    Models { period: Period, sort_by: SortBy },
    Model(ModelId),
    History { id: ModelId, period: Period },
    Index,
    Alerts,
    Incidents { period: Period, limit: Limit },
    Providers,
    Degradations(Period),
    Recommendations(Period),
    ProviderReliability(Period),
    Transparency(Period),
    Drift(ModelId),
}

/// The answer to a question. A clone shares its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The items, as the text of a JSON array, with the paid-only fields in.
    pub data: Bytes,
    /// How many items these are.
    pub count: usize,
    /// The snapshot's instant: the top of the hour whose beginning it describes, or the last import since.
    pub generated_at: Wall,
    /// When there will be a newer one.
    pub next_refresh: Wall,
    /// A strong entity tag of the data, quotes included. It changes exactly if the data does.
    pub etag: Arc<str>,
}

/// Why there is a new snapshot, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is none.
    Nothing,
    /// An hour has begun.
    ByTheHour,
    /// Runs were imported.
    ByAnImport,
}

/// The built-in backend. Share it by `Arc`; any number of threads may ask while one refreshes.
#[derive(Debug)]
pub struct Scoring {
    source: RunSource,
    answers: ArcSwap<SnapshotAnswers>,
    /// Held by whoever refreshes. After a refresh that failed: when it is worth trying again.
    refreshing: Mutex<Option<Wall>>,
}

impl Scoring {
    /// Opens a source and computes the snapshot of the hour that `now` lies in.
    pub fn open(source: RunSource, now: Wall) -> Result<Self, ArchiveError> {
        let source = source.in_order();
        let answers = SnapshotAnswers::render(&source.snapshot(now)?);
        Ok(Self { source, answers: ArcSwap::from_pointee(answers), refreshing: Mutex::new(None) })
    }

    /// A backend of simulated runs: the same seed and hour give the same bytes in every process.
    pub fn demo(seed: u64, now: Wall) -> Self {
        Self::open(RunSource::Simulated { seed }, now).expect("only an archive can be unreadable")
    }

    /// Sees to it that the snapshot is not older than the hour `now` lies in; true if this call made a new one.
    ///
    /// However many call at once, one computes and the others wait for it; whoever only asks never waits. A clock that
    /// jumped ahead is caught up with in one step; a clock that went back changes nothing. If the source cannot be read
    /// the old snapshot stays, and the next attempt comes after a pause. It computes for a noticeable part of a second:
    /// call it where blocking is allowed.
    pub fn refresh(&self, now: Wall) -> Result<bool, ArchiveError> {
        let hour = Hour::of(now);
        if hour <= self.answers.load().hour() {
            return Ok(false);
        }
        self.renew(now, |answers| Ok(hour > answers.hour()))
    }

    /// As [`Scoring::refresh`], and makes a new snapshot after an import too. It looks at the archive, which is cheap where
    /// there is nothing new.
    pub fn look(&self, now: Wall) -> Result<Change, ArchiveError> {
        if self.refresh(now)? {
            return Ok(Change::ByTheHour);
        }
        // A clock that went back does not take the snapshot back with it.
        let now = now.max(self.answers.load().hour().start());
        let is_new = self.renew(now, |answers| Ok(self.source.last_import()? != answers.imported()))?;
        Ok(if is_new { Change::ByAnImport } else { Change::Nothing })
    }

    /// Makes a new snapshot if one is wanted; true if it did.
    fn renew(
        &self,
        now: Wall,
        is_wanted: impl Fn(&SnapshotAnswers) -> Result<bool, ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        // What the lock guards is whole at any time: a panic under it leaves nothing behind that could be wrong.
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
        self.answers.store(Arc::new(SnapshotAnswers::render(&snapshot?)));
        Ok(true)
    }

    /// The answer to a question; `None` if it names a model that there is not.
    pub fn answer(&self, question: &Question) -> Option<Answer> {
        self.answers.load().answer(question)
    }

    /// The models there are, by identifier. A model is there while it has runs in the last 60 days.
    pub fn model_ids(&self) -> Vec<ModelId> {
        self.answers.load().model_ids().to_vec()
    }

    /// When there will be a newer snapshot.
    pub fn next_refresh(&self) -> Wall {
        self.answers.load().hour().plus(1).start()
    }
}
