//! The cached documents.

use serde_json::{Value, json};

use crate::documents::DocumentEngine;
use scoregate_base::routes::Selection;

use super::command::PurgeBody;
use super::command_problem::{CommandProblem, CommandResult};

/// The stored documents.
pub(super) fn list(engine: &DocumentEngine) -> Value {
    json!({ "documents": engine.documents.list() })
}

/// Removes documents, or has them refreshed.
pub(super) async fn purge(engine: &DocumentEngine, body: PurgeBody, actor: &str) -> CommandResult {
    let PurgeBody { documents, hard } = body;
    let selection = Selection::parse(&documents, &engine.documents.endpoints())
        .map_err(|bad| CommandProblem::bad(format!("documents: {bad}")))?;
    let purged = engine.purge(&selection, hard).await;
    tracing::info!(actor, documents, hard, purged, "documents purged");
    Ok(json!({ "purged": purged }))
}
