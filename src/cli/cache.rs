//! `scoregate cache`: lists and purges the documents of a running server.
//!
//! Does not select the documents to purge; the server does, see `routes::Selection`.

use clap::{Args, Subcommand};
use http::Method;
use serde::Deserialize;

use crate::admin::{CACHE, PURGE, PurgeBody};
use crate::documents::CachedDocument;

use super::command_error::CommandOutcome;
use super::control::{block_on, request_running};
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate cache list --data-dir DIR\n  \
scoregate cache purge /api/v1/models --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE uses the directory in the configuration.";

#[derive(Debug, Args)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    command: CacheCommand,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON instead of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum CacheCommand {
    /// List the stored documents.
    #[command(after_help = "Example:\n  scoregate cache list --data-dir DIR --json")]
    List,
    /// Purge documents, so that they are fetched again.
    #[command(after_help = "Examples:\n  \
        scoregate cache purge '/api/v1/models/atlas/history?period=7d' --data-dir DIR\n  \
        scoregate cache purge /api/v1/models/:id --data-dir DIR\n  \
        scoregate cache purge all --hard --data-dir DIR\n\n\
        Omitted models and parameters match all. Purged documents are served stale while they are refreshed;\n\
        with --hard they are removed, and the next request for each waits for the backend.")]
    Purge(PurgeBody),
}

#[derive(Deserialize)]
struct Inventory {
    documents: Vec<CachedDocument>,
}

pub(super) fn run(args: CacheArgs) -> CommandOutcome {
    let config = args.server.settings()?;
    let is_list = matches!(args.command, CacheCommand::List);
    let request = match args.command {
        CacheCommand::List => (Method::GET, CACHE.into(), Vec::new()),
        CacheCommand::Purge(body) => {
            let body = serde_json::to_vec(&body);
            let body = body.expect("a string and a boolean are valid JSON");
            (Method::POST, PURGE.into(), body)
        }
    };
    let reason = "documents are only in the memory of a running server";
    let response = block_on(request_running(&config, request, reason))?;
    Ok(match response {
        response if args.json => printer::json(&response),
        response if is_list => printer::response(response, list),
        response => printer::data(&format!(
            "purged: {}\n",
            response.get("purged").unwrap_or(&response)
        )),
    })
}

fn list(inventory: &Inventory) -> Exit {
    let row = |view: &CachedDocument| {
        let refresh = if view.due_in_seconds <= 0 {
            "overdue".into()
        } else {
            format!("in {} s", view.due_in_seconds)
        };
        let confirmed = format!("{} s ago", view.confirmed_seconds_ago);
        vec![
            view.items.to_string(),
            view.bytes.to_string(),
            confirmed,
            refresh,
            view.document.clone(),
        ]
    };
    let header = ["items", "bytes", "confirmed", "refresh", "document"];
    printer::table(&header, inventory.documents.iter().map(row))
}
