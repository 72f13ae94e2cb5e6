//! `scoregate scoring`: the built-in backend by itself, one file a verb.
//!
//! Not for: the backend inside a gateway, which `serve` and `demo` start.

mod serve;

use clap::{Args, Subcommand};

use super::exit::Exit;

pub(super) const AFTER_HELP: &str = "Example:\n  scoregate scoring serve --archive runs.archive";

#[derive(Debug, Args)]
pub(super) struct ScoringArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve the results of an archive of runs over HTTP, for a gateway to ask.
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::ServeArgs),
}

pub(super) fn run(args: ScoringArgs) -> Exit {
    match args.verb {
        Verb::Serve(args) => serve::run(args),
    }
}
