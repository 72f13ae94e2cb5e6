//! The commands of `scoregate scoring`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::archive_place::ArchivePlace;
use crate::cli::{command_error::CommandOutcome, serve::ServerArgs};

pub const AFTER_HELP: &str = include_str!("../help/scoring.txt");

#[derive(Debug, Args)]
pub struct ScoringArgs {
    #[command(subcommand)]
    command: ScoringCommand,
    /// Archive of runs.
    #[arg(long, value_name = "FILE", global = true)]
    archive: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Subcommand)]
enum ScoringCommand {
    /// Import benchmark runs; a running server publishes them immediately.
    #[command(after_help = super::import::AFTER_HELP)]
    Import(super::import::ScoringImportArgs),
    /// Export the suite table and all runs as JSON lines.
    #[command(
        after_help = "Example:\n  scoregate scoring export --archive runs.db | gzip > runs.jsonl.gz"
    )]
    Export,
    /// Show or replace the suites, their weights and axes.
    #[command(after_help = super::suites::AFTER_HELP)]
    Suites {
        #[command(subcommand)]
        command: super::suites::SuitesCommand,
    },
    /// Delete runs and incidents.
    #[command(after_help = super::delete::AFTER_HELP)]
    Delete(super::delete::DeleteArgs),
    /// List recorded incidents.
    #[command(after_help = super::incidents::AFTER_HELP)]
    Incidents(super::incidents::IncidentsArgs),
    /// Serve the scores over HTTP, for gateways on other machines.
    #[command(after_help = super::serve::AFTER_HELP)]
    Serve(super::serve::ServeArgs),
}

pub fn run(args: ScoringArgs) -> CommandOutcome {
    let settings = args.server.settings();
    let place = if let Some(path) = args.archive {
        ArchivePlace {
            path,
            data_dir: settings.ok().map(|config| config.data_dir),
        }
    } else {
        let config = settings?;
        ArchivePlace {
            path: config.archive,
            data_dir: Some(config.data_dir),
        }
    };
    match args.command {
        ScoringCommand::Import(args) => super::import::run(&place, &args),
        ScoringCommand::Export => super::export::run(&place),
        ScoringCommand::Suites { command } => super::suites::run(&place, &command),
        ScoringCommand::Delete(args) => super::delete::run(&place, args),
        ScoringCommand::Incidents(args) => super::incidents::run(&place, &args),
        ScoringCommand::Serve(args) => super::serve::run(place.path, args),
    }
}
