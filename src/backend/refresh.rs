//! Makes the next snapshot when it is due, in a task of its own.
//!
//! Not for: requests, which are answered from the snapshot before until the new one is there.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::answer::Backend;

/// The longest sleep. The wall can step, and running time stands still while a machine is asleep: whoever slept until
/// the expected instant in one go would wake late by as much. As long is waited after a refresh that came to nothing.
const SLICE: Duration = Duration::from_secs(10);

/// Keeps the snapshot current until `stop`.
pub(super) async fn keep_current(backend: Arc<Backend>, stop: CancellationToken) {
    let keep = async {
        loop {
            let (due, now) = (backend.next_refresh(), backend.clock().now().wall);
            if now < due {
                backend.clock().sleep(due.since(now).min(SLICE)).await;
            } else if !refresh(&backend).await {
                backend.clock().sleep(SLICE).await;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = keep => {}
    }
}

/// Makes a snapshot, and tells whether there is a newer one now.
async fn refresh(backend: &Arc<Backend>) -> bool {
    let begun = backend.clock().now();
    let working = Arc::clone(backend);
    // It computes for a while, so it must not sit on a thread that serves.
    let worked = tokio::task::spawn_blocking(move || working.refresh(begun.wall)).await;
    let took = backend.clock().mono().since(begun.mono);
    match worked {
        Ok(Ok(is_new)) => {
            if is_new {
                let next = backend.next_refresh().rfc3339();
                tracing::info!(took_ms = took.as_millis(), next, "there is a new snapshot");
            }
            return is_new;
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the scores could not be refreshed; the old ones are served");
        }
        Err(error) => tracing::error!(%error, "the refresh broke off; the old scores are served"),
    }
    false
}
