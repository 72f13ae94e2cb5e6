//! Makes the next snapshot when it is due, at the top of the hour or after an import, in a task of its own.
//!
//! Not for: questions, which are answered from the snapshot before until the new one is there.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Wall};

use super::{ArchiveError, Change, Scoring};

/// The longest sleep. The wall can step, and running time stands still while a machine is asleep: a sleep until the
/// expected instant in one go would end late by as much. It is also how often the archive is looked at for an import that
/// we were not told of, and the pause after a refresh that came to nothing.
const SLICE: Duration = Duration::from_secs(10);

/// How a snapshot is made: [`Scoring::look`], and what depends on it.
pub type UpdateSnapshot = Arc<dyn Fn(Wall) -> Result<Change, ArchiveError> + Send + Sync>;

/// A request to look for an import now. It is answered when all that follows from it is done: whether there was one.
pub type UpdateRequest = oneshot::Sender<Result<bool, String>>;

/// Where such looks are asked for.
pub type UpdateRequests = mpsc::Sender<UpdateRequest>;

/// Keeps a snapshot current.
pub struct SnapshotUpdater {
    scoring: Arc<Scoring>,
    look: UpdateSnapshot,
    clock: Clock,
    asked: mpsc::Receiver<UpdateRequest>,
    /// Whether the last refresh came to nothing.
    in_vain: bool,
}

impl SnapshotUpdater {
    /// Keeps the snapshot of `scoring` current by `look`; and a way to ask it for a look at once.
    pub fn new(scoring: Arc<Scoring>, look: UpdateSnapshot, clock: Clock) -> (Self, UpdateRequests) {
        let (looks, asked) = mpsc::channel(1);
        (Self { scoring, look, clock, asked, in_vain: false }, looks)
    }

    /// Waits until there is a new snapshot, or a look that was asked for is done; that one is to be answered by the caller.
    pub async fn next(&mut self) -> (Change, Option<(UpdateRequest, Result<bool, String>)>) {
        loop {
            let (due, now) = (self.scoring.next_refresh(), self.clock.now().wall);
            let asked = if now < due || self.in_vain {
                let pause = if now < due { due.since(now).min(SLICE) } else { SLICE };
                tokio::select! {
                    biased;
                    Some(asked) = self.asked.recv() => Some(asked),
                    () = self.clock.sleep(pause) => None,
                }
            } else {
                None
            };
            let looked = self.look().await;
            let change = *looked.as_ref().unwrap_or(&Change::Nothing);
            if change != Change::Nothing || asked.is_some() {
                let outcome = looked.map(|change| change != Change::Nothing);
                return (change, asked.map(|asked| (asked, outcome)));
            }
        }
    }

    /// Looks once.
    async fn look(&mut self) -> Result<Change, String> {
        let begun = self.clock.now();
        let look = Arc::clone(&self.look);
        // It computes for a while, so it must not sit on a thread that serves.
        let looked = tokio::task::spawn_blocking(move || look(begun.wall)).await;
        let took = self.clock.mono().since(begun.mono);
        // A question may have asked for the hour's snapshot a moment before.
        let next = self.scoring.next_refresh();
        self.in_vain = next <= begun.wall;
        match looked {
            Ok(Ok(change)) => {
                if change != Change::Nothing {
                    let by_an_import = change == Change::ByAnImport;
                    let next = next.rfc3339();
                    tracing::info!(by_an_import, took_ms = took.as_millis(), next, "new snapshot");
                }
                Ok(change)
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "score refresh failed; the previous scores are served");
                Err(error.to_string())
            }
            Err(error) => {
                tracing::error!(%error, "score refresh panicked; the previous scores are served");
                Err(error.to_string())
            }
        }
    }
}
