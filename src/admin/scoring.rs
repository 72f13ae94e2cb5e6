//! Runs were imported: `POST /v1/scoring/refresh` has the built-in backend take them up at once.
//!
//! The answer comes when the documents that are in use show them. Not for: the import itself (`cli`).

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::scoring::UpdateRequests;

use super::command::CommandProblem;
use super::paths::SCORING_REFRESH;

/// A snapshot of a large archive takes seconds. It is finished even if its caller has left.
const PATIENCE: Duration = Duration::from_mins(1);

/// Answers a request for this path.
pub(super) async fn answer(
    looks: Option<&UpdateRequests>,
    clock: &Clock,
    method: &Method,
    path: &str,
    who: &str,
) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::POST, SCORING_REFRESH) => {
            let looks =
                looks.ok_or_else(|| CommandProblem::bad("this server does not use the built-in backend"))?;
            tracing::info!(who, "scoring refresh requested");
            let looked = clock.within(PATIENCE, look(looks)).await;
            looked.map_err(|_| {
                CommandProblem::fault("the new scores are not ready yet; they are shown when they are")
            })?
        }
        _ => Err(CommandProblem::not_found()),
    }
}

async fn look(looks: &UpdateRequests) -> Result<Value, CommandProblem> {
    let (answer, answered) = oneshot::channel();
    let stopping = || CommandProblem::fault("the server is stopping");
    looks.send(answer).await.map_err(|_| stopping())?;
    let refreshed = answered.await.map_err(|_| stopping())?.map_err(|error| CommandProblem::fault(&error))?;
    Ok(json!({ "refreshed": refreshed }))
}
