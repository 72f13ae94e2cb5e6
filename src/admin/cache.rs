//! The cached documents over the side port: `GET /v1/cache` and `POST /v1/cache/purge`. Documents are in the memory of
//! the running server, so a stopped server has none.

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::documents::DocumentEngine;
use scoregate_base::json;
use scoregate_base::routes::Selection;

use super::command_problem::{CommandProblem, CommandResult};

/// A purge request.
#[derive(Clone, Debug, Args, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeBody {
    /// `all`, or an API path, with or without a model and parameters.
    pub documents: String,
    /// Remove the documents instead of serving them stale during the refresh.
    #[arg(long)]
    #[serde(default)]
    pub hard: bool,
}

/// The stored documents.
pub(super) fn list(engine: &DocumentEngine) -> Value {
    json!({ "documents": engine.documents.list() })
}

/// Removes documents, or has them refreshed.
pub(super) async fn purge(engine: &DocumentEngine, body: &[u8], actor: &str) -> CommandResult {
    let PurgeBody { documents, hard } =
        json::read(body).map_err(|bad| CommandProblem::bad(bad.to_string()))?;
    let selection = Selection::parse(&documents, &engine.documents.endpoints())
        .map_err(|bad| CommandProblem::bad(format!("documents: {bad}")))?;
    let purged = engine.purge(&selection, hard).await;
    tracing::info!(actor, documents, hard, purged, "documents purged");
    Ok(json!({ "purged": purged }))
}
