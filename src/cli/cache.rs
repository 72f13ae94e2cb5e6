//! `scoregate cache`: the documents that a running server has.
//!
//! Not for: judging which documents are meant (`routes::Selection`, on the server).

use clap::{Args, Subcommand};
use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::admin::{CACHE, DocumentView, PURGE, PurgeBody};

use super::control::{ask_running, said, wait_for};
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate cache list --data-dir DIR\n  \
scoregate cache purge /api/v1/models --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE reads it from the configuration.";

#[derive(Debug, Args)]
pub(super) struct CacheArgs {
    #[command(subcommand)]
    verb: CacheCommand,
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
        A model or parameters that are left out match all. Purged documents are served stale while they are refreshed;\n\
        with --hard they are removed, and the next request for each waits for the backend.")]
    Purge {
        /// `all`, or an API path, with or without a model and parameters.
        documents: String,
        /// Remove the documents instead of serving them stale during the refresh.
        #[arg(long)]
        hard: bool,
    },
}

#[derive(Deserialize)]
struct Inventory {
    documents: Vec<DocumentView>,
}

pub(super) fn run(args: CacheArgs) -> Exit {
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    let lists = matches!(args.verb, CacheCommand::List);
    let asked = match args.verb {
        CacheCommand::List => (Method::GET, CACHE.into(), Vec::new()),
        CacheCommand::Purge { documents, hard } => {
            let body = serde_json::to_vec(&PurgeBody { documents, hard });
            (Method::POST, PURGE.into(), body.expect("a text and a flag make JSON"))
        }
    };
    match wait_for(ask_running(&config, asked, "documents are in the memory of a running server alone")) {
        Ok(told) if args.json => printer::data(&format!("{told:#}\n")),
        Ok(told) if lists => list(told),
        Ok(told) => printer::data(&format!("purged: {}\n", told.get("purged").unwrap_or(&told))),
        Err(undone) => said(undone),
    }
}

fn list(told: Value) -> Exit {
    let inventory: Inventory = match serde_json::from_value(told) {
        Ok(inventory) => inventory,
        Err(error) => {
            return printer::fault(&anyhow::anyhow!("the server's answer cannot be read: {error}"));
        }
    };
    let row = |view: &DocumentView| {
        let due =
            if view.due_in_seconds <= 0 { "overdue".into() } else { format!("{} s", view.due_in_seconds) };
        let confirmed = format!("{} s ago", view.confirmed_seconds_ago);
        vec![view.items.to_string(), view.bytes.to_string(), confirmed, due, view.document.clone()]
    };
    let rows: Vec<Vec<String>> = inventory.documents.iter().map(row).collect();
    printer::table(&["items", "bytes", "confirmed", "due", "document"], &rows)
}
