//! `scoregate scoring`: the built-in backend's runs, and that backend by itself; one file a verb.
//!
//! Not for: the backend inside a gateway, which `serve` and `demo` start.

mod export;
mod import;
mod serve;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate scoring import runs.jsonl.gz --data-dir DIR\n  \
scoregate scoring export --archive runs.db > runs.jsonl\n  \
scoregate scoring serve --archive runs.db\n\n\
The archive is the file --archive names, else the one of --config FILE, else runs.db in --data-dir DIR.";

#[derive(Debug, Args)]
pub(super) struct ScoringArgs {
    #[command(subcommand)]
    verb: ScoringCommand,
    /// The archive of runs.
    #[arg(long, value_name = "FILE", global = true)]
    archive: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum ScoringCommand {
    /// Bring benchmark runs in; a running server shows them at once.
    #[command(after_help = import::AFTER_HELP)]
    Import(import::ScoringImportArgs),
    /// Write every run as a line of JSON, as they can be imported elsewhere.
    #[command(after_help = "Example:\n  scoregate scoring export --archive runs.db | gzip > runs.jsonl.gz")]
    Export,
    /// Serve what the runs come to over HTTP, for gateways elsewhere.
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::ServeArgs),
}

pub(super) fn run(args: ScoringArgs) -> Exit {
    let (archive, data_dir) = match (args.archive, args.server.settings()) {
        (Some(archive), settings) => (archive, settings.ok().map(|config| config.data_dir)),
        (None, Ok(config)) => (config.archive, Some(config.data_dir)),
        (None, Err(problems)) => return printer::input(&problems.to_string()),
    };
    match args.verb {
        ScoringCommand::Import(args) => import::run(&archive, data_dir.as_deref(), &args),
        ScoringCommand::Export => export::run(&archive),
        ScoringCommand::Serve(args) => serve::run(archive, args),
    }
}
