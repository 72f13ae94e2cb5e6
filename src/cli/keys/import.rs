//! `scoregate keys import`: imports keys of another system by their SHA-256, one per line.
//!
//! A thread reads the file while the previous batch is being stored. Counted keys are durable. Does not validate lines;
//! see `admin`.

use std::collections::HashSet;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc;

use crate::admin::{AdminCommand, ImportView, KeysCommand, LineView, MAX_BATCH, read_json};
use crate::cli::command_error::{CommandError, CommandOutcome};
use crate::cli::control::{CommandTarget, MissingStore};
use crate::cli::exit::Exit;
use crate::cli::input_file::InputFile;
use crate::cli::input_lines::{InputLine, InputLines};
use crate::cli::printer::{self, Progress};
use crate::cli::serve::StopSignals;
use crate::config::Config;
use crate::registry::{BadField, KeyRecord};

use super::csv::Columns;

pub(super) const AFTER_HELP: &str = include_str!("../help/keys_import.txt");

#[derive(Debug, Args)]
pub(super) struct KeysImportArgs {
    /// Input file; `-` for standard input.
    file: PathBuf,
    /// Input format; default: by the file name's extension.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// Maximum length of a line: a key with the longest texts needs a tenth of it.
const MAX_LINE_LENGTH: usize = 65_536;
const READ_BUFFER: usize = 1 << 16;

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl Format {
    /// The format of a file by its extension.
    pub(super) fn of(file: &Path) -> CommandOutcome<Self> {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            Some(_) | None => {
                let shown = file.display();
                Err(CommandError::Input(format!(
                    "unknown format of {shown}: add --format csv or jsonl"
                )))
            }
        }
    }
}

/// Lines of a file.
#[derive(Default)]
struct KeyChunk {
    /// Parsed lines with their numbers.
    lines: Vec<(u64, Result<KeyRecord, BadField>)>,
    /// Bytes of the file up to their end.
    bytes: u64,
}

/// The reason why an import ends before the end of the file.
enum KeyReadError {
    /// The header line of this number has problems.
    Header(u64, Vec<BadField>),
    /// The file cannot be read.
    Failed(io::Error),
}

type KeyChunks = mpsc::Receiver<Result<KeyChunk, KeyReadError>>;

/// An import and its counts.
struct FileImport<'i> {
    /// The name of the file.
    name: String,
    target: CommandTarget,
    config: &'i Config,
    progress: Progress,
    imported: usize,
    existing: usize,
    rejected: usize,
    last_line: u64,
    /// Set if a key of another format was imported while `keys.accept_imported` is off.
    needs_setting: bool,
}

pub(super) async fn run(config: &Config, args: KeysImportArgs, json: bool) -> CommandOutcome {
    let format = args.format.map_or_else(|| Format::of(&args.file), Ok)?;
    let bad = |error: io::Error| {
        CommandError::Input(format!("{} cannot be read: {error}", args.file.display()))
    };
    let InputFile { name, reader, size } = InputFile::open(&args.file).map_err(bad)?;
    let mut import = FileImport {
        name,
        target: CommandTarget::find(config, MissingStore::Create).await?,
        config,
        progress: Progress::new(size),
        imported: 0,
        existing: 0,
        rejected: 0,
        last_line: 0,
        needs_setting: false,
    };
    let mut signals = StopSignals::listen()?;
    let (sender, mut chunks) = mpsc::channel(1);
    let thread = std::thread::Builder::new().name("reader".into());
    // The thread is not joined, because it may be blocked on standard input. It ends with the process.
    let spawned = thread.spawn(move || send_lines(reader, format, &sender));
    drop(spawned.context("the reader thread cannot be started")?);
    let ended = import.store_all(&mut chunks, &mut signals).await;
    import.progress.clear();
    import.finish(json, ended)
}

impl FileImport<'_> {
    /// Stores all batches, until a batch cannot be read or a signal arrives between two batches.
    async fn store_all(
        &mut self,
        chunks: &mut KeyChunks,
        signals: &mut StopSignals,
    ) -> CommandOutcome<()> {
        loop {
            let chunk = tokio::select! {
                biased;
                () = signals.wait() => {
                    let line = self.last_line;
                    return Err(CommandError::Input(format!(
                        "interrupted after line {line}: import the same file again to complete"
                    )));
                }
                chunk = chunks.recv() => chunk,
            };
            match chunk {
                None => return Ok(()),
                Some(Ok(chunk)) => self.store(chunk).await?,
                Some(Err(KeyReadError::Failed(error))) => {
                    let what = format!("{} cannot be read", self.name);
                    return Err(anyhow::Error::new(error).context(what).into());
                }
                Some(Err(KeyReadError::Header(line, problems))) => {
                    for problem in &problems {
                        self.reject(line, problem);
                    }
                    return Err(CommandError::Input(
                        "nothing was imported: correct the header line".into(),
                    ));
                }
            }
        }
    }

    /// Stores the valid keys of a batch, reports the invalid lines and counts the outcomes.
    async fn store(&mut self, chunk: KeyChunk) -> CommandOutcome<()> {
        let valid = chunk
            .lines
            .iter()
            .filter_map(|(_, line)| line.as_ref().ok());
        let keys = valid.map(to_raw_value).collect::<Result<_, _>>();
        let keys = keys.expect("strings and numbers are valid JSON");
        let command = AdminCommand::Keys(KeysCommand::Import { keys });
        let response = self.target.perform(command).await?;
        let view: ImportView =
            serde_json::from_value(response).context("the server's response is invalid")?;
        let mut results = view.results.into_iter();
        for (number, line) in chunk.lines {
            self.last_line = number;
            let key = match line {
                Ok(key) => key,
                Err(bad) => {
                    self.reject(number, &bad);
                    continue;
                }
            };
            match results.next() {
                Some(LineView::Imported { .. }) => {
                    self.imported += 1;
                    self.needs_setting |= !view.accept_imported && !self.is_ours(&key);
                }
                Some(LineView::Existing) => self.existing += 1,
                Some(LineView::Rejected { field, error }) => {
                    self.reject(number, &BadField::new(&field, error));
                }
                None => {
                    return Err(
                        anyhow::anyhow!("the server returned fewer results than keys").into(),
                    );
                }
            }
        }
        self.progress.show(chunk.bytes, &self.summary());
        Ok(())
    }

    fn reject(&mut self, line: u64, bad: &BadField) {
        self.rejected += 1;
        self.progress
            .message(&format!("{}:{line}: {bad}", self.name));
    }

    /// Whether a key has the form of this service.
    fn is_ours(&self, key: &KeyRecord) -> bool {
        let rest = key
            .shown
            .as_ref()
            .and_then(|shown| shown.strip_prefix(&self.config.key_prefix));
        rest.is_some_and(|rest| rest.starts_with('_'))
    }

    fn summary(&self) -> String {
        let Self {
            imported,
            existing,
            rejected,
            ..
        } = self;
        format!("{imported} imported, {existing} already present, {rejected} rejected")
    }

    /// Prints the counts, also after an error.
    fn finish(self, json: bool, ended: CommandOutcome<()>) -> CommandOutcome {
        let exit = if json {
            printer::json(&json!({
                "imported": self.imported,
                "existing": self.existing,
                "rejected": self.rejected,
            }))
        } else {
            printer::data(&format!("{}\n", self.summary()))
        };
        if self.needs_setting {
            printer::message("keys of other formats are refused until keys.accept_imported is set");
        }
        ended?;
        Ok(if exit == Exit::Done && self.rejected > 0 {
            Exit::Input
        } else {
            exit
        })
    }
}

/// Sends the parsed lines in batches. Ends early if the receiver is gone.
fn send_lines(
    source: impl Read,
    format: Format,
    to: &mpsc::Sender<Result<KeyChunk, KeyReadError>>,
) {
    let mut parser = LineParser {
        format,
        columns: None,
        seen: HashSet::new(),
    };
    let mut chunk = KeyChunk::default();
    let source = BufReader::with_capacity(READ_BUFFER, source);
    let mut failed = None;
    for line in InputLines::new(source, MAX_LINE_LENGTH) {
        let parsed = line
            .map_err(KeyReadError::Failed)
            .and_then(|line| parser.parse(line, &mut chunk));
        if let Err(error) = parsed {
            failed = Some(error);
            break;
        }
        if chunk.lines.len() >= MAX_BATCH
            && to.blocking_send(Ok(std::mem::take(&mut chunk))).is_err()
        {
            return;
        }
    }
    if !chunk.lines.is_empty() {
        drop(to.blocking_send(Ok(chunk)));
    }
    if let Some(error) = failed {
        drop(to.blocking_send(Err(error)));
    }
}

/// Parses the lines of a file.
struct LineParser {
    format: Format,
    /// The columns of a CSV file, from its header line.
    columns: Option<Columns>,
    /// The first halves of the digests, which suffice to find duplicates.
    seen: HashSet<Option<[u8; 16]>>,
}

impl LineParser {
    /// Adds a line to a chunk, unless it is the header line of a CSV file.
    fn parse(&mut self, line: InputLine, chunk: &mut KeyChunk) -> Result<(), KeyReadError> {
        let InputLine {
            number,
            bytes,
            text,
        } = line;
        let text = text.map_err(|reason| BadField::new("line", reason));
        let key = match (self.format, &self.columns) {
            (Format::Jsonl, _) => text.and_then(|text| read_json(&text)),
            (Format::Csv, Some(columns)) => text.and_then(|text| columns.record(&text)),
            (Format::Csv, None) => {
                let columns = text
                    .map_err(|bad| vec![bad])
                    .and_then(|text| Columns::read(&text));
                let columns = columns.map_err(|problems| KeyReadError::Header(number, problems));
                self.columns = Some(columns?);
                return Ok(());
            }
        };
        let key = key.and_then(|key| {
            if self
                .seen
                .insert(key.digest.as_bytes().first_chunk().copied())
            {
                Ok(key)
            } else {
                Err(BadField::new("sha256", "occurs twice in this file"))
            }
        });
        chunk.lines.push((number, key));
        chunk.bytes = bytes;
        Ok(())
    }
}
