//! `scoregate keys import`: imports keys of another system by their SHA-256, one per line.
//!
//! A thread reads the file while the previous batch is being stored. Counted keys are durable. Does not validate lines;
//! see `admin`.

use std::collections::HashSet;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::sync::mpsc;

use crate::admin::{AdminCommand, ImportView, LineView, MAX_BATCH, read_json};
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

/// A key with the longest texts needs a tenth of it.
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

/// A message of the reader thread.
enum KeyChunk {
    /// Parsed lines, and the bytes of the file up to their end.
    Lines(Vec<(u64, Result<KeyRecord, BadField>)>, u64),
    /// Problems of the header line, which end the import.
    Header(u64, Vec<BadField>),
    /// A read error, which ends the import.
    Failed(io::Error),
}

#[derive(Default)]
struct KeyImportCounts {
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
    let InputFile {
        name,
        reader: source,
        size,
    } = InputFile::open(&args.file).map_err(bad)?;
    let target = CommandTarget::find(config, MissingStore::Create).await?;
    let mut signals = StopSignals::listen()?;
    let mut stop = pin!(signals.wait());
    let (sender, mut chunks) = mpsc::channel(1);
    let reader = std::thread::Builder::new().name("reader".into());
    // Not joined: the reader may be blocked on standard input. It ends with the process.
    drop(
        reader
            .spawn(move || read(source, format, &sender))
            .context("the reader thread cannot be started")?,
    );

    let progress = Progress::new(size);
    let mut counts = KeyImportCounts::default();
    let ended = loop {
        let chunk = tokio::select! {
            biased;
            () = &mut stop => {
                let line = counts.last_line;
                break Err(CommandError::Input(format!("interrupted after line {line}: import the same file again to complete")));
            }
            chunk = chunks.recv() => chunk,
        };
        match chunk {
            None => break Ok(()),
            Some(KeyChunk::Failed(error)) => {
                break Err(CommandError::Fault(
                    anyhow::Error::new(error).context(format!("{name} cannot be read")),
                ));
            }
            Some(KeyChunk::Header(line, problems)) => {
                counts.rejected += problems.len();
                for bad in &problems {
                    printer::message(&format!("{name}:{line}: {bad}"));
                }
                break Err(CommandError::Input(
                    "nothing was imported: correct the header line".into(),
                ));
            }
            Some(KeyChunk::Lines(lines, bytes)) => {
                if let Err(error) = counts
                    .store(lines, &target, config, &|line, bad| {
                        progress.message(&format!("{name}:{line}: {bad}"));
                    })
                    .await
                {
                    break Err(error);
                }
                progress.show(bytes, &counts.summary());
            }
        }
    };
    progress.clear();
    counts.finish(json, ended)
}

impl KeyImportCounts {
    /// Stores the valid keys of a batch, reports the invalid lines and counts the outcomes.
    async fn store(
        &mut self,
        lines: Vec<(u64, Result<KeyRecord, BadField>)>,
        target: &CommandTarget,
        config: &Config,
        report: &dyn Fn(u64, &BadField),
    ) -> CommandOutcome<()> {
        let own_prefix = format!("{}_", config.key_prefix);
        let mut numbered = Vec::with_capacity(lines.len());
        let mut readable = Vec::with_capacity(lines.len());
        for (number, line) in lines {
            let read = line.map(|record| {
                let is_ours = record
                    .shown
                    .as_ref()
                    .is_some_and(|shown| shown.starts_with(&own_prefix));
                readable.push(Ok(record));
                is_ours
            });
            numbered.push((number, read));
        }
        let response = target.perform(AdminCommand::Import(readable)).await?;
        let view: ImportView =
            serde_json::from_value(response).context("the server's response is invalid")?;
        let mut results = view.results.into_iter();
        for (number, read) in numbered {
            self.last_line = number;
            let outcome = match read {
                Ok(is_ours) => results.next().map(|result| (result, is_ours)),
                Err(BadField { field, reason }) => Some((
                    LineView::Rejected {
                        field,
                        error: reason,
                    },
                    true,
                )),
            };
            match outcome {
                Some((LineView::Imported { .. }, is_ours)) => {
                    self.imported += 1;
                    self.needs_setting |= !is_ours && !view.accept_imported;
                }
                Some((LineView::Existing, _)) => self.existing += 1,
                Some((LineView::Rejected { field, error }, _)) => {
                    self.rejected += 1;
                    report(
                        number,
                        &BadField {
                            field,
                            reason: error,
                        },
                    );
                }
                None => {
                    return Err(
                        anyhow::anyhow!("the server returned fewer results than keys").into(),
                    );
                }
            }
        }
        Ok(())
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
        let Self {
            imported,
            existing,
            rejected,
            ..
        } = self;
        let exit = if json {
            printer::json(
                &json!({ "imported": imported, "existing": existing, "rejected": rejected }),
            )
        } else {
            printer::data(&format!("{}\n", self.summary()))
        };
        if self.needs_setting {
            printer::message("keys of other formats are refused until keys.accept_imported is set");
        }
        ended?;
        Ok(if exit == Exit::Done && rejected > 0 {
            Exit::Input
        } else {
            exit
        })
    }
}

/// Sends the parsed lines. Ends early if the receiver is gone.
fn read(source: impl Read, format: Format, to: &mpsc::Sender<KeyChunk>) {
    let mut columns = None;
    let mut seen = HashSet::new();
    let mut batch = Vec::with_capacity(MAX_BATCH);
    let mut bytes = 0;
    let source = BufReader::with_capacity(READ_BUFFER, source);
    for line in InputLines::new(source, MAX_LINE_LENGTH) {
        let InputLine {
            number,
            bytes: end,
            text,
        } = match line {
            Ok(line) => line,
            Err(error) => {
                drop(to.blocking_send(KeyChunk::Lines(batch, bytes)));
                drop(to.blocking_send(KeyChunk::Failed(error)));
                return;
            }
        };
        bytes = end;
        let text = text.map_err(|reason| BadField::new("line", reason));
        let record = match (format, &columns) {
            (Format::Jsonl, _) => text.and_then(|text| read_json(&text)),
            (Format::Csv, Some(columns)) => text.and_then(|text| Columns::record(columns, &text)),
            (Format::Csv, None) => {
                match text
                    .map_err(|bad| vec![bad])
                    .and_then(|text| Columns::read(&text))
                {
                    Ok(read) => {
                        columns = Some(read);
                        continue;
                    }
                    Err(problems) => {
                        return drop(to.blocking_send(KeyChunk::Header(number, problems)));
                    }
                }
            }
        };
        let record = record.and_then(|record| {
            // Half a digest is enough to find duplicates.
            let half: Option<[u8; 16]> = record.digest.as_bytes().first_chunk().copied();
            let duplicate = || BadField::new("sha256", "is in this file for the second time");
            if seen.insert(half) {
                Ok(record)
            } else {
                Err(duplicate())
            }
        });
        batch.push((number, record));
        if batch.len() >= MAX_BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(MAX_BATCH));
            if to.blocking_send(KeyChunk::Lines(full, bytes)).is_err() {
                return;
            }
        }
    }
    if !batch.is_empty() {
        drop(to.blocking_send(KeyChunk::Lines(batch, bytes)));
    }
}
