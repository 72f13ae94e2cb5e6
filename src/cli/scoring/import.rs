//! `scoregate scoring import`: imports benchmark runs, one per line, in one transaction.
//!
//! An import that is killed changes nothing. A running server is notified at the end.

use std::{fmt, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::cli::{
    command_error::{CommandError, CommandOutcome, input_is_fine},
    input_file::InputFile,
    printer,
    serve::runtime_of_this_thread,
};
use scoregate_base::clock::Clock;
use scoregate_scoring::{
    Archive, ArchiveError, BadRun, ExportLine, IdentifiedRun, RunImport, RunInsertion, SuiteTable,
    sample_runs,
};

use super::{
    archive_place::ArchivePlace,
    equal_messages::EqualMessages,
    run_file::{self, ImportLine},
    tool_logs::{ToolLogArgs, ToolLogs},
};

pub const AFTER_HELP: &str = include_str!("../help/scoring_import.txt");

/// Number of runs that are collected before they are written. An import of fewer runs does not block other writers
/// while it waits for standard input.
const BATCH: usize = 16_384;

#[derive(Debug, Args)]
pub struct ScoringImportArgs {
    /// Input files, plain or gzip; `-` for standard input. With --from: logs and directories of logs.
    #[arg(required_unless_present = "sample")]
    files: Vec<PathBuf>,
    /// Print simulated runs of the last 24 hours as a file that can be imported.
    #[arg(long, conflicts_with_all = ["files", "ToolLogArgs"])]
    sample: bool,
    #[command(flatten)]
    tool_logs: ToolLogArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// An import into an archive.
struct Importer<'a> {
    archive: &'a Archive,
    /// The suite table against which lines are validated.
    suites: Arc<SuiteTable>,
    clock: Clock,
    /// Lines that have not been stored yet, with their places.
    batch: Vec<(String, Result<IdentifiedRun, BadRun>)>,
    /// `None` before the first batch.
    import: Option<RunImport<'a>>,
    counts: RunImportCounts,
    messages: EqualMessages,
}

/// The numbers of lines by outcome.
#[derive(Default)]
struct RunImportCounts {
    imported: u64,
    existing: u64,
    rejected: u64,
}

pub fn run(place: &ArchivePlace, args: &ScoringImportArgs) -> CommandOutcome {
    if args.sample {
        let lines = sample_runs(Clock::system().now().wall).map(|record| record.write() + "\n");
        return Ok(printer::data(&lines.collect::<String>())?);
    }
    let mut logs = args
        .tool_logs
        .logs(&args.files)
        .map_err(CommandError::Input)?;
    if let Some(logs) = logs.as_mut().filter(|_| args.tool_logs.is_dry_run()) {
        return logs.dry_run(&place.path, args.json);
    }
    let counts = import(place, args, logs.as_mut())?;
    let runtime = runtime_of_this_thread().context("the server cannot be notified")?;
    runtime.block_on(place.notify_server());
    counts.print(args.json, logs.as_ref())
}

fn import(
    place: &ArchivePlace,
    args: &ScoringImportArgs,
    logs: Option<&mut ToolLogs>,
) -> CommandOutcome<RunImportCounts> {
    // All files are opened before any file is read, so that a wrong name is reported immediately.
    let paths = args.files.iter().filter(|_| logs.is_none());
    let files: Vec<InputFile> = paths
        .map(|path| InputFile::open(path))
        .collect::<Result<_, _>>()?;
    let archive = place.open_or_create()?;
    let mut importer = Importer::new(&archive)?;
    let Some(logs) = logs else {
        importer.add_all(files.into_iter().flat_map(run_file::lines))?;
        return Ok(importer.finish()?);
    };
    importer.add_all(logs.lines())?;
    let counts = importer.finish()?;
    logs.counts.messages.finish();
    Ok(counts)
}

impl<'a> Importer<'a> {
    fn new(archive: &'a Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            archive,
            suites: archive.suites()?,
            clock: Clock::system(),
            batch: Vec::new(),
            import: None,
            counts: RunImportCounts::default(),
            messages: EqualMessages::default(),
        })
    }

    fn add_all(
        &mut self,
        lines: impl Iterator<Item = Result<ImportLine, String>>,
    ) -> Result<(), CommandError> {
        for line in lines {
            let ImportLine { place, line } = line.map_err(nothing_imported)?;
            match line {
                Ok(ExportLine::Suites(table)) => self.take_suites(&place, table)?,
                Ok(ExportLine::Run(run)) => {
                    let checked = run.check(self.clock.now().wall, &self.suites);
                    self.add(place, checked)?;
                }
                Err(bad) => self.add(place, Err(bad))?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        place: String,
        run: Result<IdentifiedRun, BadRun>,
    ) -> Result<(), ArchiveError> {
        self.batch.push((place, run));
        if self.batch.len() >= BATCH {
            self.store()?;
            printer::progress(&self.counts.to_string());
        }
        Ok(())
    }

    /// Uses the suite table of an export to validate the lines after it.
    fn take_suites(&mut self, place: &str, table: SuiteTable) -> Result<(), CommandError> {
        self.store()?;
        if !self.begun()?.take_suites(&table)? {
            return Err(nothing_imported(format!(
                "{place} has a different suite table than the archive; import it into a new archive, or set the table of \
                 the archive with `scoregate scoring suites set` first"
            )));
        }
        self.suites = Arc::new(table);
        Ok(())
    }

    fn begun(&mut self) -> Result<&mut RunImport<'a>, ArchiveError> {
        let import = match self.import.take() {
            Some(begun) => begun,
            None => self.archive.begin_import()?,
        };
        Ok(self.import.insert(import))
    }

    fn store(&mut self) -> Result<(), ArchiveError> {
        for (place, run) in std::mem::take(&mut self.batch) {
            let rejected = match run {
                Ok(record) => match self.begun()?.store(&record)? {
                    RunInsertion::New => {
                        self.counts.imported += 1;
                        None
                    }
                    RunInsertion::AlreadyThere => {
                        self.counts.existing += 1;
                        None
                    }
                    RunInsertion::OtherContent => Some(other_content()),
                },
                Err(bad) => Some(bad),
            };
            if let Some(bad) = rejected {
                self.counts.rejected += 1;
                self.messages.report(place, bad);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<RunImportCounts, ArchiveError> {
        self.store()?;
        if let Some(import) = self.import {
            import.commit(self.clock.now().wall)?;
        }
        printer::progress("");
        self.messages.finish();
        Ok(self.counts)
    }
}

fn nothing_imported(problem: String) -> CommandError {
    CommandError::Input(problem + "; nothing was imported")
}

fn other_content() -> BadRun {
    BadRun {
        field: "id".into(),
        problem: "exists with other content; use a new id, or delete the run with `scoregate scoring delete` first"
            .into(),
    }
}

impl RunImportCounts {
    /// Prints the result.
    fn print(&self, is_json: bool, logs: Option<&ToolLogs>) -> CommandOutcome {
        if is_json {
            let mut counts = json!({
                "imported": self.imported, "existing": self.existing, "rejected": self.rejected
            });
            if let Some(counts) = counts.as_object_mut()
                && let Some(logs) = logs
            {
                counts.insert("logs".into(), logs.counts.json());
            }
            printer::json(&counts)?;
        } else {
            let logs = logs.map_or(String::new(), |logs| logs.counts.summary() + "\n");
            printer::data(&format!("{logs}{self}\n"))?;
        }
        let has_errors = self.rejected > 0 || logs.is_some_and(|logs| logs.counts.has_errors());
        input_is_fine(!has_errors)
    }
}

impl fmt::Display for RunImportCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            imported,
            existing,
            rejected,
        } = self;
        write!(
            f,
            "{imported} imported, {existing} already present, {rejected} rejected"
        )
    }
}
