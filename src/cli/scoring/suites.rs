//! `scoregate scoring suites`: shows or replaces the suite table of an archive.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;

use crate::cli::exit::Exit;
use crate::cli::input_file::read_text;
use crate::cli::printer;
use scoregate_base::clock::Clock;
use scoregate_scoring::{Archive, SuiteTable};

use super::import::{create_parent, notify_server};

/// Maximum size of a table.
const MAX_BYTES: u64 = 1024 * 1024;

pub(super) const AFTER_HELP: &str = r#"Examples:
  scoregate scoring suites show --data-dir DIR > suites.toml
  scoregate scoring suites set suites.toml --data-dir DIR

A table has 1 to 8 suites:
  [[suite]]
  name = "coding"
  weight = 0.4
  axes = ["correctness", "spec", "codeQuality", "efficiency", "stability", "refusal", "recovery"]
  feeds = ["combined", "coding", "speed", "7axis", "price"]
Weights are divided by their sum. Every trial of a suite has exactly its axes. A suite is part of the `sortBy` values that
it feeds; a value that no suite feeds has no scores.

`set` computes the scores again, and a running server publishes them immediately. Runs of suites that are not in the table,
and runs that lack an axis, stay stored and do not count. An archive that does not exist has the default table."#;

#[derive(Debug, Subcommand)]
pub(super) enum SuitesCommand {
    /// Print the table as TOML.
    Show,
    /// Replace the table by that of a file.
    Set {
        /// TOML file; `-` for standard input.
        file: PathBuf,
    },
}

pub(super) fn run(archive: &Path, data_dir: Option<&Path>, command: &SuitesCommand) -> Exit {
    let done = match command {
        SuitesCommand::Show => show(archive),
        SuitesCommand::Set { file } => set(archive, data_dir, file),
    };
    done.unwrap_or_else(|error| printer::fault(&error))
}

fn show(archive: &Path) -> anyhow::Result<Exit> {
    let table = if archive.exists() {
        Archive::open(archive, Clock::system().now().wall)?.suites()?.write()
    } else {
        SuiteTable::default().write()
    };
    Ok(printer::data(&table))
}

fn set(archive: &Path, data_dir: Option<&Path>, file: &Path) -> anyhow::Result<Exit> {
    let text = match read_text(file, MAX_BYTES) {
        Ok(text) => text,
        Err(error) => {
            return Ok(printer::input_error(&format!("{} cannot be read: {error}", file.display())));
        }
    };
    let table = match SuiteTable::read(&text) {
        Ok(table) => table,
        Err(bad) => return Ok(printer::input_error(&format!("{}: {bad}", file.display()))),
    };
    create_parent(archive)?;
    let now = Clock::system().now().wall;
    let is_new = Archive::open(archive, now)?.set_suites(&table, now)?;
    if !is_new {
        printer::message("the archive has this table already");
        return Ok(Exit::Done);
    }
    printer::message(&format!("the suites are set; the method is now {}", table.method_version()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the running server cannot be notified")?;
    runtime.block_on(notify_server(data_dir.into_iter().chain(archive.parent())));
    Ok(Exit::Done)
}
