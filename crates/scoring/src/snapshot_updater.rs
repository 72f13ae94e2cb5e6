//! A separate task that makes the next snapshot when it is due, at the full hour or after an import. Queries get the
//! previous snapshot until the new one is ready.

use std::{sync::Arc, time::Duration};

use tokio::sync::{mpsc, oneshot};

use scoregate_base::clock::{Clock, Wall};

use super::{ArchiveError, Change, Scoring};

/// Maximum sleep. A single long sleep could end late, because the wall clock can step and monotonic time stops during
/// suspend. It is also the polling interval for imports that were not announced, and the pause after a failed refresh.
const SLICE: Duration = Duration::from_secs(10);

/// Makes a snapshot with [`Scoring::check`], and updates everything that depends on it.
pub type UpdateSnapshot = Arc<dyn Fn(Wall) -> Result<Change, ArchiveError> + Send + Sync>;

/// A request to check for an import now. The reply is sent when everything has been refreshed. It states whether there
/// was an import.
pub type UpdateRequest = oneshot::Sender<Result<bool, String>>;

/// The channel for such requests.
pub type UpdateRequests = mpsc::Sender<UpdateRequest>;

/// Keeps a snapshot current.
pub struct SnapshotUpdater {
    scoring: Arc<Scoring>,
    check: UpdateSnapshot,
    clock: Clock,
    requests: mpsc::Receiver<UpdateRequest>,
    /// Whether the last refresh failed.
    has_failed: bool,
}

impl SnapshotUpdater {
    /// An updater that keeps the snapshot of `scoring` current by calling `check`, and the channel for requests.
    pub fn new(
        scoring: Arc<Scoring>,
        check: UpdateSnapshot,
        clock: Clock,
    ) -> (Self, UpdateRequests) {
        let (sender, requests) = mpsc::channel(1);
        (
            Self {
                scoring,
                check,
                clock,
                requests,
                has_failed: false,
            },
            sender,
        )
    }

    /// Waits for a new snapshot, or for the end of a requested check. The caller must answer the returned request.
    pub async fn next(&mut self) -> (Change, Option<(UpdateRequest, Result<bool, String>)>) {
        loop {
            let due = self.scoring.next_refresh();
            let now = self.clock.now().wall;
            let request = if now < due || self.has_failed {
                let pause = if now < due {
                    due.since(now).min(SLICE)
                } else {
                    SLICE
                };
                tokio::select! {
                    biased;
                    Some(request) = self.requests.recv() => Some(request),
                    () = self.clock.sleep(pause) => None,
                }
            } else {
                None
            };
            let result = self.check().await;
            let change = *result.as_ref().unwrap_or(&Change::Nothing);
            if change != Change::Nothing || request.is_some() {
                let outcome = result.map(|change| change != Change::Nothing);
                return (change, request.map(|request| (request, outcome)));
            }
        }
    }

    /// Runs one check.
    async fn check(&mut self) -> Result<Change, String> {
        let begun = self.clock.now();
        let check = Arc::clone(&self.check);
        // The computation takes a while, so it must not run on a serving thread.
        let result = tokio::task::spawn_blocking(move || check(begun.wall)).await;
        let took = self.clock.mono().since(begun.mono);
        // A query may have triggered this hour's snapshot just before the check.
        let next = self.scoring.next_refresh();
        self.has_failed = next <= begun.wall;
        match result {
            Ok(Ok(change)) => {
                if change != Change::Nothing {
                    let after_import = change == Change::ByAnImport;
                    let next = next.rfc3339();
                    tracing::info!(
                        after_import,
                        duration_ms = took.as_millis(),
                        next_refresh_at = next,
                        "new snapshot"
                    );
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
