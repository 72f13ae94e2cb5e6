//! Commands on the cached documents.

use serde_json::json;

use crate::documents::DocumentEngine;
use scoregate_base::routes::Selection;

use super::{
    command::{CacheCommand, PurgeBody},
    command_problem::{CommandProblem, CommandResult},
};

/// Lists, removes or refreshes stored documents.
pub async fn perform(engine: &DocumentEngine, command: CacheCommand, actor: &str) -> CommandResult {
    let PurgeBody { documents, hard } = match command {
        CacheCommand::List {} => return Ok(json!({ "documents": engine.documents.list() })),
        CacheCommand::Purge(body) => body,
    };
    let selection = Selection::parse(&documents, &engine.documents.endpoints())
        .map_err(|bad| CommandProblem::bad(format!("documents: {bad}")))?;
    let purged = engine.purge(&selection, hard).await;
    tracing::info!(actor, documents, hard, purged, "documents purged");
    Ok(json!({ "purged": purged }))
}
