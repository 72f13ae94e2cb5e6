//! `scoregate keys`: applications and their keys.

mod csv;
mod export;
mod import;
mod lines;
mod show;
mod verb;

use std::future::Future;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::admin::Command;

use super::control::{Missing, Place, Undone};
use super::exit::Exit;
use super::printer;
use super::serve::{runtime, settings_of_a_server};

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate keys create --name 'Weather site' --tier pro --data-dir DIR\n  \
scoregate keys list --data-dir DIR --json\n  \
scoregate keys rotate app_0123456789a --overlap-hours 24 --data-dir DIR\n  \
scoregate keys import keys.csv --data-dir DIR\n\n\
DIR is the server's data directory; --config FILE finds it there. With a running server changes hold at once.\n\
A key is printed once, when it is made: only its SHA-256 is kept.";

#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    place: PlaceArgs,
}

#[derive(Debug, Args)]
struct PlaceArgs {
    /// The server's data directory.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// The server's configuration: its data directory, tiers and key prefix.
    #[arg(long, value_name = "FILE", env = "SCOREGATE_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Print JSON in place of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    #[command(flatten)]
    One(verb::Verb),
    /// Take in keys that were made elsewhere, by their SHA-256, from a file of lines.
    #[command(after_help = import::AFTER_HELP)]
    Import(import::ImportArgs),
    /// Write all keys out as lines that `import` reads.
    #[command(after_help = export::AFTER_HELP)]
    Export(export::ExportArgs),
}

pub(super) fn run(args: KeysArgs) -> Exit {
    let KeysArgs { what, place } = args;
    let config = match settings_of_a_server(place.config.as_deref(), place.data_dir.as_deref()) {
        Ok(config) => config,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    match what {
        What::One(verb) => {
            let command = verb.into_command();
            let asked = command.clone();
            let is_first = matches!(command, Command::Create(_));
            let missing = if is_first { Missing::IsMade } else { Missing::IsRefused };
            let answer = wait_for(async { Place::find(&config, missing).await?.carry_out(command).await });
            match answer {
                Ok(answer) if place.json => printer::data(&format!("{answer:#}\n")),
                Ok(answer) => show::show(&asked, answer),
                Err(undone) => said(undone),
            }
        }
        What::Import(args) => wait_for(import::run(&config, args, place.json)).unwrap_or_else(said),
        What::Export(args) => wait_for(export::run(&config, args)).unwrap_or_else(said),
    }
}

fn wait_for<T>(work: impl Future<Output = Result<T, Undone>>) -> Result<T, Undone> {
    runtime(Some(1))?.block_on(work)
}

fn said(undone: Undone) -> Exit {
    match undone {
        Undone::Input(problem) => printer::input(&problem),
        Undone::Fault(error) => printer::fault(&error),
    }
}
