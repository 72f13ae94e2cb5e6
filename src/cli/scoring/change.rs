//! `scoregate scoring withdraw` and `correct`: change stored runs, with a record in the audit trail of the archive.
//!
//! All runs of a request are changed, or none. Scores are updated as after an import.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use crate::cli::command_error::{CommandError, CommandOutcome};
use crate::cli::control::operator;
use crate::cli::input_file::input_name;
use crate::cli::input_lines::InputLine;
use crate::cli::printer;
use crate::cli::serve::runtime_of_this_thread;
use scoregate_base::clock::{Clock, Wall};
use scoregate_scoring::{
    Archive, BadRun, ChangeAuthor, ChangeReason, ExportLine, IdentifiedRun, RefusedRunChange,
    RunChangeError, RunId, SuiteTable,
};

use super::archive_place::ArchivePlace;
use super::equal_messages::EqualMessages;
use super::import::RunFile;

pub(super) const AFTER_WITHDRAW_HELP: &str = "Example:\n  \
scoregate scoring withdraw r-17 r-18 --reason 'wrong API key' --data-dir DIR\n\n\
Withdrawn runs count nowhere. A withdrawal is final: the id is not used again, and importing its line again has no effect.\n\
If one of the runs cannot be withdrawn, none is.";

pub(super) const AFTER_CORRECT_HELP: &str = "Example:\n  \
scoregate scoring correct corrected.jsonl --reason 'prices were per thousand tokens' --data-dir DIR\n\n\
The lines have the format of `scoring import`, and the ids of stored runs. The new content replaces the previous one,\n\
which remains in the audit trail. If one of the lines is invalid, nothing is changed.";

/// Maximum size of a request: its runs are in memory.
const MAX_BYTES: u64 = 256 << 20;

#[derive(Debug, Args)]
pub(super) struct WithdrawArgs {
    /// Ids of runs.
    #[arg(required = true, value_name = "ID", value_parser = run_id)]
    ids: Vec<RunId>,
    /// Reason for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: ChangeReason,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct CorrectArgs {
    /// Input file, plain or gzip; `-` for standard input.
    file: PathBuf,
    /// Reason for the audit trail.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: ChangeReason,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The numbers of changed runs, for the operator.
struct RunChangeCounts(Vec<(&'static str, usize)>);

/// A change of an archive at an instant.
type ChangeOfArchive<'c> =
    &'c dyn Fn(&Archive, &ChangeAuthor, Wall) -> Result<RunChangeCounts, RunChangeError>;

pub(super) fn run_id(text: &str) -> Result<RunId, &'static str> {
    RunId::new(text).ok_or("write 1 to 128 visible ASCII characters")
}

pub(super) fn reason(text: &str) -> Result<ChangeReason, String> {
    ChangeReason::new(text).map_err(|bad| bad.problem)
}

pub(super) fn withdraw(place: &ArchivePlace, args: WithdrawArgs) -> CommandOutcome {
    let WithdrawArgs { ids, reason, json } = args;
    let withdraw = |archive: &Archive, author: &ChangeAuthor, now: Wall| {
        archive
            .withdraw(&ids, author, now)
            .map(|()| RunChangeCounts(vec![("withdrawn", ids.len())]))
    };
    let shown = |refused: &RefusedRunChange| format!("the run {}", refused.id);
    change(place, reason, json, &withdraw, &shown)
}

pub(super) fn correct(place: &ArchivePlace, args: CorrectArgs) -> CommandOutcome {
    let CorrectArgs { file, reason, json } = args;
    let suites = place.open()?.suites()?;
    let lines = read(&file, &suites).map_err(|problem| {
        if let Some(problem) = problem {
            printer::message(&problem);
        }
        nothing_changed()
    })?;
    let (numbers, records) = lines
        .into_iter()
        .unzip::<u64, IdentifiedRun, Vec<_>, Vec<_>>();
    let correct = |archive: &Archive, author: &ChangeAuthor, now: Wall| {
        let changed = archive.correct(&records, author, now)?;
        let corrected = changed.iter().filter(|is_changed| **is_changed).count();
        Ok(RunChangeCounts(vec![
            ("corrected", corrected),
            ("unchanged", changed.len() - corrected),
        ]))
    };
    let shown = |refused: &RefusedRunChange| {
        let number = numbers.get(refused.index).copied().unwrap_or_default();
        format!("{}:{number}: id: {}", input_name(&file), refused.id)
    };
    change(place, reason, json, &correct, &shown)
}

/// Changes an archive, updates the scores and notifies a running server.
fn change(
    place: &ArchivePlace,
    reason: ChangeReason,
    json: bool,
    change: ChangeOfArchive<'_>,
    shown: &dyn Fn(&RefusedRunChange) -> String,
) -> CommandOutcome {
    let clock = Clock::system();
    let archive = place.open()?;
    let import = archive.begin_import()?;
    let author = ChangeAuthor {
        actor: operator(),
        reason,
    };
    let counts = match change(&archive, &author, clock.now().wall) {
        Ok(counts) => counts,
        Err(RunChangeError::Refused(refused)) => {
            let mut messages = EqualMessages::default();
            for refused in &refused {
                messages.report(shown(refused), refused.why);
            }
            messages.finish();
            return Err(nothing_changed());
        }
        Err(RunChangeError::Archive(error)) => return Err(error.into()),
    };
    let end = archive.end_import(import, clock.now().wall)?;
    let exit = printer::data(&counts.text(json));
    let runtime = runtime_of_this_thread().context("the server cannot be notified")?;
    runtime.block_on(place.publish(end));
    Ok(exit)
}

fn nothing_changed() -> CommandError {
    CommandError::Input("nothing was changed".into())
}

/// The runs of a file with their line numbers. Invalid lines are reported; an error is why the file cannot be used.
fn read(file: &Path, suites: &SuiteTable) -> Result<Vec<(u64, IdentifiedRun)>, Option<String>> {
    let now = Clock::system().now().wall;
    let unreadable = |error| Some(format!("{} cannot be read: {error}", input_name(file)));
    let lines = RunFile::open(file).and_then(|source| source.lines(&Arc::new(AtomicU64::new(0))));
    let mut records = Vec::new();
    let mut messages = EqualMessages::default();
    let mut is_valid = true;
    for line in lines.map_err(unreadable)? {
        let InputLine {
            number,
            bytes,
            text,
        } = line.map_err(unreadable)?;
        if bytes > MAX_BYTES {
            return Err(Some(format!(
                "{} has more than {} MiB; split it",
                input_name(file),
                MAX_BYTES >> 20
            )));
        }
        // An export begins with the table of its archive.
        if let Ok(text) = &text
            && ExportLine::is_suites(text)
            && let Ok(ExportLine::Suites(table)) = ExportLine::read(text, now, suites)
            && table == *suites
        {
            continue;
        }
        let record = text
            .map_err(|problem| BadRun {
                field: "line".into(),
                problem,
            })
            .and_then(|text| IdentifiedRun::read(&text, now, suites));
        match record {
            Ok(record) => records.push((number, record)),
            Err(bad) => {
                is_valid = false;
                messages.report(format_args!("{}:{number}", input_name(file)), bad);
            }
        }
    }
    messages.finish();
    if is_valid { Ok(records) } else { Err(None) }
}

impl RunChangeCounts {
    fn text(&self, json: bool) -> String {
        if json {
            let counts = self
                .0
                .iter()
                .map(|(name, count)| ((*name).to_owned(), Value::from(*count)));
            return format!("{:#}\n", Value::Object(counts.collect()));
        }
        let counts: Vec<String> = self
            .0
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        format!("{}\n", counts.join(", "))
    }
}
