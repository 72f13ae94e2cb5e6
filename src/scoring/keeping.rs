//! Makes the next snapshot when it is due, in a task of its own.
//!
//! Not for: questions, which are answered from the snapshot before until the new one is there.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Wall};

use super::{ArchiveError, Scoring};

/// The longest sleep. The wall can step, and running time stands still while a machine is asleep: whoever slept until
/// the expected instant in one go would wake late by as much. As long is waited after a refresh that came to nothing.
const SLICE: Duration = Duration::from_secs(10);

/// What is done when a snapshot is due: [`Scoring::refresh`], and what depends on it.
pub type Refresh = Arc<dyn Fn(Wall) -> Result<bool, ArchiveError> + Send + Sync>;

/// Keeps the snapshot current until `stop`.
pub async fn keep_current(scoring: Arc<Scoring>, refresh: Refresh, clock: Clock, stop: CancellationToken) {
    let keep = async {
        loop {
            let (due, now) = (scoring.next_refresh(), clock.now().wall);
            if now < due {
                clock.sleep(due.since(now).min(SLICE)).await;
            } else if !is_refreshed(&scoring, &refresh, &clock).await {
                clock.sleep(SLICE).await;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep => {}
    }
}

/// Makes a snapshot, and tells whether there is a newer one now.
async fn is_refreshed(scoring: &Scoring, refresh: &Refresh, clock: &Clock) -> bool {
    let begun = clock.now();
    let refresh = Arc::clone(refresh);
    // It computes for a while, so it must not sit on a thread that serves.
    let worked = tokio::task::spawn_blocking(move || refresh(begun.wall)).await;
    let took = clock.mono().since(begun.mono);
    match worked {
        Ok(Ok(is_new)) => {
            let next = scoring.next_refresh();
            if is_new {
                tracing::info!(took_ms = took.as_millis(), next = next.rfc3339(), "there is a new snapshot");
            }
            // A question may have asked for it a moment before.
            return begun.wall < next;
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the scores could not be refreshed; the old ones are served");
        }
        Err(error) => tracing::error!(%error, "the refresh broke off; the old scores are served"),
    }
    false
}
