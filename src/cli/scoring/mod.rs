//! `scoregate scoring`: import, export and change of runs, incidents, the suite table, and the built-in backend without a gateway.

mod audit;
mod change;
mod export;
mod import;
mod import_counts;
mod incidents;
mod reader_thread;
mod serve;
mod suites;
mod tool_logs;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate scoring import runs.jsonl.gz --data-dir DIR\n  \
scoregate scoring export --archive runs.db > runs.jsonl\n  \
scoregate scoring withdraw r-17 --reason 'wrong API key' --archive runs.db\n  \
scoregate scoring serve --archive runs.db\n\n\
The archive is --archive FILE, else the one set in --config FILE, else runs.db in --data-dir DIR.";

#[derive(Debug, Args)]
pub(super) struct ScoringArgs {
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
    /// Import benchmark runs; a running server publishes them at once.
    #[command(after_help = import::AFTER_HELP)]
    Import(import::ScoringImportArgs),
    /// Export all runs, withdrawals and incidents as JSON lines.
    #[command(after_help = "Example:\n  scoregate scoring export --archive runs.db | gzip > runs.jsonl.gz")]
    Export,
    /// Show or replace the suites, their weights and axes.
    #[command(after_help = suites::AFTER_HELP)]
    Suites {
        #[command(subcommand)]
        command: suites::SuitesCommand,
    },
    /// Withdraw runs: they count nowhere.
    #[command(after_help = change::AFTER_WITHDRAW_HELP)]
    Withdraw(change::WithdrawArgs),
    /// Replace the content of runs.
    #[command(after_help = change::AFTER_CORRECT_HELP)]
    Correct(change::CorrectArgs),
    /// Show withdrawn and corrected runs, newest change first.
    #[command(after_help = audit::AFTER_HELP)]
    Audit(audit::RunAuditArgs),
    /// List or retract recorded incidents.
    #[command(after_help = incidents::AFTER_HELP)]
    Incidents {
        #[command(subcommand)]
        command: incidents::IncidentsCommand,
    },
    /// Serve the scores over HTTP, for gateways on other machines.
    #[command(after_help = serve::AFTER_HELP)]
    Serve(serve::ServeArgs),
}

pub(super) fn run(args: ScoringArgs) -> Exit {
    let (archive, data_dir) = match (args.archive, args.server.settings()) {
        (Some(archive), settings) => (archive, settings.ok().map(|config| config.data_dir)),
        (None, Ok(config)) => (config.archive, Some(config.data_dir)),
        (None, Err(problems)) => return printer::input_error(&problems.to_string()),
    };
    match args.command {
        ScoringCommand::Import(args) => import::run(&archive, data_dir.as_deref(), &args),
        ScoringCommand::Export => export::run(&archive),
        ScoringCommand::Suites { command } => suites::run(&archive, data_dir.as_deref(), &command),
        ScoringCommand::Withdraw(args) => change::withdraw(&archive, data_dir.as_deref(), args),
        ScoringCommand::Correct(args) => change::correct(&archive, data_dir.as_deref(), args),
        ScoringCommand::Incidents { command } => incidents::run(&archive, data_dir.as_deref(), command),
        ScoringCommand::Audit(args) => audit::run(&archive, &args),
        ScoringCommand::Serve(args) => serve::run(archive, args),
    }
}
