//! Refresh of the built-in backend over the side port, after an import of runs: `POST /v1/scoring/refresh`.
//!
//! The response is sent once the served documents contain the new runs.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use scoregate_base::clock::Clock;
use scoregate_scoring::UpdateRequests;

use super::command::CommandProblem;
use super::paths::SCORING_REFRESH;

/// Wait for a snapshot; of a large archive it takes seconds. It completes even if the client has disconnected.
const TIMEOUT: Duration = Duration::from_mins(1);

pub(super) async fn handle(
    updates: Option<&UpdateRequests>,
    clock: &Clock,
    method: &Method,
    path: &str,
    actor: &str,
) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::POST, SCORING_REFRESH) => {
            let updates = updates
                .ok_or_else(|| CommandProblem::bad("this server does not use the built-in backend"))?;
            tracing::info!(actor, "scoring refresh requested");
            let refreshed = clock.within(TIMEOUT, refresh(updates)).await;
            refreshed.map_err(|_| {
                CommandProblem::fault(
                    "the new scores are still being computed; they are published when ready",
                )
            })?
        }
        _ => Err(CommandProblem::not_found()),
    }
}

async fn refresh(updates: &UpdateRequests) -> Result<Value, CommandProblem> {
    let (reply, replied) = oneshot::channel();
    let stopping = || CommandProblem::fault("the server is stopping");
    updates.send(reply).await.map_err(|_| stopping())?;
    let refreshed = replied.await.map_err(|_| stopping())?.map_err(|error| CommandProblem::fault(&error))?;
    Ok(json!({ "refreshed": refreshed }))
}
