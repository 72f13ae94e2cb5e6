//! Refreshes the built-in backend through the side port, after an import of runs.
//!
//! The response is sent once the served documents contain the new runs.

use std::time::Duration;

use serde_json::json;
use tokio::sync::oneshot;

use scoregate_base::clock::Clock;
use scoregate_scoring::UpdateRequests;

use super::command_problem::{CommandProblem, CommandResult};

/// Maximum wait for a snapshot. A snapshot of a large archive takes seconds to compute, and is completed even if the client
/// disconnects.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Refreshes the snapshot.
pub async fn refresh(
    updates: Option<&UpdateRequests>,
    clock: &Clock,
    actor: &str,
) -> CommandResult {
    let updates = updates
        .ok_or_else(|| CommandProblem::bad("this server does not use the built-in backend"))?;
    tracing::info!(actor, "scoring refresh requested");
    let late = "the new scores are still being computed; they are published when ready";
    clock
        .within(TIMEOUT, request(updates))
        .await
        .map_err(|_| CommandProblem::fault(late))?
}

async fn request(updates: &UpdateRequests) -> CommandResult {
    let (reply, replied) = oneshot::channel();
    updates.send(reply).await.map_err(|_| stopping())?;
    let refreshed = replied
        .await
        .map_err(|_| stopping())?
        .map_err(|error| CommandProblem::fault(&error))?;
    Ok(json!({ "refreshed": refreshed }))
}

fn stopping() -> CommandProblem {
    CommandProblem::fault("the server is stopping")
}
