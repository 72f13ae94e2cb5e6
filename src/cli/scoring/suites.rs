//! `scoregate scoring suites`: shows or replaces the suite table of an archive.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use clap::Subcommand;

use crate::cli::{
    command_error::{CommandError, CommandOutcome},
    input_file::read_text,
    printer,
    serve::runtime_of_this_thread,
};
use scoregate_base::clock::Clock;
use scoregate_scoring::SuiteTable;

use super::archive_place::ArchivePlace;

/// Maximum size of a table.
const MAX_BYTES: u64 = 1024 * 1024;

pub const AFTER_HELP: &str = include_str!("../help/scoring_suites.txt");

#[derive(Debug, Subcommand)]
pub enum SuitesCommand {
    /// Print the table as TOML.
    Show,
    /// Replace the table with the table in a file.
    Set {
        /// TOML file; `-` for standard input.
        file: PathBuf,
    },
}

pub fn run(place: &ArchivePlace, command: &SuitesCommand) -> CommandOutcome {
    match command {
        SuitesCommand::Show => show(place),
        SuitesCommand::Set { file } => set(place, file),
    }
}

fn show(place: &ArchivePlace) -> CommandOutcome {
    let table = if place.path.exists() {
        place.open()?.suites()?
    } else {
        Arc::default()
    };
    Ok(printer::data(&table.write())?)
}

fn set(place: &ArchivePlace, file: &Path) -> CommandOutcome {
    let shown = file.display();
    let text = read_text(file, MAX_BYTES)?;
    let table =
        SuiteTable::parse(&text).map_err(|bad| CommandError::Input(format!("{shown}: {bad}")))?;
    let is_new = place
        .open_or_create()?
        .set_suites(&table, Clock::system().now().wall)?;
    if !is_new {
        printer::message("the archive already has this table");
        return Ok(());
    }
    printer::message(&format!(
        "the suites are set; the method version is now {}",
        table.method_version()
    ));
    let runtime = runtime_of_this_thread().context("the running server cannot be notified")?;
    runtime.block_on(place.notify_server());
    Ok(())
}
