//! `scoregate keys import`: keys that were made elsewhere come in by their SHA-256, line by line.
//!
//! A thread reads the file while the batch before is being taken in. What was counted is durable. Not for: what a line
//! may say (`admin`), nor for what becomes of it (`gateway`).

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use tokio::sync::mpsc;

use crate::accounts::{BadField, KeyRecord};
use crate::admin::{AdminCommand, ImportView, LineView, MOST_IN_A_BATCH, read_json};
use crate::cli::control::{CommandError, CommandTarget, MissingStore};
use crate::cli::exit::Exit;
use crate::cli::input_lines::{InputLine, InputLines};
use crate::cli::printer::{self, Progress};
use crate::cli::serve::StopSignals;
use crate::config::Config;

use super::csv::Columns;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate keys import keys.csv --data-dir DIR\n  \
scoregate keys import - --format jsonl --data-dir DIR < keys.jsonl\n\n\
One key per line. Required fields: sha256 (64 hexadecimal digits), name and tier. Optional fields: application,\n\
prefix, minute_limit, day_limit, contact, note, created_at, expires_at and revoked_at. A CSV file begins with a line of\n\
column names, in any order. A key with an application id is added to that application if the other fields agree, or\n\
creates it; without one it gets an application of its own. Invalid lines are reported on standard error and the others\n\
are imported; the exit code is then 1. Existing keys are left unchanged, so a file can be imported again. Keys of other\n\
formats are accepted only if keys.accept_imported is set.";

#[derive(Debug, Args)]
pub(super) struct KeysImportArgs {
    /// Input file; `-` for standard input.
    file: PathBuf,
    /// Input format; default: by the file name's extension.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// The longest line: a key with the longest texts needs a tenth of it.
const LONGEST_LINE: usize = 65_536;

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl Format {
    /// The format of a file by the end of its name.
    pub(super) fn of(file: &Path) -> Result<Self, CommandError> {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            Some(_) | None => {
                let shown = file.display();
                Err(CommandError::Input(format!(
                    "what {shown} holds is not clear: say --format csv or jsonl"
                )))
            }
        }
    }
}

/// What the reading thread sends.
enum KeyChunk {
    /// Lines, and how many bytes of the file end with them.
    Lines(Vec<(u64, Result<KeyRecord, BadField>)>, u64),
    /// The header line is wrong, and so the whole file is.
    Header(u64, Vec<BadField>),
    /// The file cannot be read any further.
    Broken(io::Error),
}

#[derive(Default)]
struct KeyImportCounts {
    imported: usize,
    existing: usize,
    rejected: usize,
    last_line: u64,
    /// Whether a key was taken that may have another form than ours, where such keys are not accepted.
    waits_for_setting: bool,
}

pub(super) async fn run(config: &Config, args: KeysImportArgs, json: bool) -> Result<Exit, CommandError> {
    let format = args.format.map_or_else(|| Format::of(&args.file), Ok)?;
    let (source, size) = open(&args.file)?;
    let place = CommandTarget::find(config, MissingStore::IsMade).await?;
    let mut signals = StopSignals::listen()?;
    let mut stop = pin!(signals.wait());
    let name =
        if args.file == Path::new("-") { "standard input".into() } else { args.file.display().to_string() };
    let (sender, mut pieces) = mpsc::channel(1);
    let reader = std::thread::Builder::new().name("reader".into());
    // It ends with the process at the latest: nobody can be waited for who may wait for a keyboard.
    drop(reader.spawn(move || read(source, format, &sender)).context("no thread can be started")?);

    let (progress, mut tally) = (Progress::of(size), KeyImportCounts::default());
    let ended = loop {
        let piece = tokio::select! {
            biased;
            () = &mut stop => {
                let line = tally.last_line;
                break Err(CommandError::Input(format!("stopped after line {line}: import the same file again for the rest")));
            }
            piece = pieces.recv() => piece,
        };
        match piece {
            None => break Ok(()),
            Some(KeyChunk::Broken(error)) => {
                break Err(CommandError::Fault(
                    anyhow::Error::new(error).context(format!("{name} cannot be read")),
                ));
            }
            Some(KeyChunk::Header(line, wrong)) => {
                tally.rejected += wrong.len();
                for bad in &wrong {
                    printer::say(&format!("{name}:{line}: {bad}"));
                }
                break Err(CommandError::Input("nothing was imported; correct the header line first".into()));
            }
            Some(KeyChunk::Lines(lines, bytes)) => {
                if let Err(undone) = tally
                    .take(lines, &place, config, &|line, bad| {
                        progress.say(&format!("{name}:{line}: {bad}"));
                    })
                    .await
                {
                    break Err(undone);
                }
                progress.show(bytes, &tally.words());
            }
        }
    };
    progress.clear();
    tally.told(json, ended)
}

impl KeyImportCounts {
    /// Has a batch taken in and counts what became of it.
    async fn take(
        &mut self,
        lines: Vec<(u64, Result<KeyRecord, BadField>)>,
        place: &CommandTarget,
        config: &Config,
        refuse: &dyn Fn(u64, &BadField),
    ) -> Result<(), CommandError> {
        let our_form = format!("{}_", config.key_prefix);
        let (mut numbered, mut readable) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
        for (number, line) in lines {
            let read = line.map(|record| {
                let is_ours = record.shown.as_ref().is_some_and(|shown| shown.starts_with(&our_form));
                readable.push(Ok(record));
                is_ours
            });
            numbered.push((number, read));
        }
        let answer = place.carry_out(AdminCommand::Import(readable)).await?;
        let told: ImportView =
            serde_json::from_value(answer).context("the server's answer cannot be read")?;
        let mut answers = told.results.into_iter();
        for (number, read) in numbered {
            self.last_line = number;
            let became = match read {
                Ok(is_ours) => answers.next().map(|answer| (answer, is_ours)),
                Err(BadField { field, reason }) => Some((LineView::Rejected { field, error: reason }, true)),
            };
            match became {
                Some((LineView::Imported { .. }, is_ours)) => {
                    self.imported += 1;
                    self.waits_for_setting |= !is_ours && !told.accept_imported;
                }
                Some((LineView::Existing, _)) => self.existing += 1,
                Some((LineView::Rejected { field, error }, _)) => {
                    self.rejected += 1;
                    refuse(number, &BadField { field, reason: error });
                }
                None => {
                    return Err(anyhow::anyhow!("the server answered for fewer keys than it was sent").into());
                }
            }
        }
        Ok(())
    }

    fn words(&self) -> String {
        let Self { imported, existing, rejected, .. } = self;
        format!("{imported} imported, {existing} already present, {rejected} rejected")
    }

    /// Tells what was counted, whatever became of the rest.
    fn told(self, json: bool, ended: Result<(), CommandError>) -> Result<Exit, CommandError> {
        let Self { imported, existing, rejected, .. } = self;
        let counts = if json {
            let counts = serde_json::json!({
                "imported": imported, "existing": existing, "rejected": rejected
            });
            format!("{counts:#}\n")
        } else {
            format!("{}\n", self.words())
        };
        let exit = printer::data(&counts);
        if self.waits_for_setting {
            printer::say("keys of other formats are refused until keys.accept_imported is set");
        }
        ended?;
        Ok(if exit == Exit::Done && rejected > 0 { Exit::Input } else { exit })
    }
}

/// The file, and its size if it has one.
fn open(file: &Path) -> Result<(Box<dyn BufRead + Send>, Option<u64>), CommandError> {
    if file == Path::new("-") {
        return Ok((Box::new(BufReader::new(io::stdin())), None));
    }
    let bad = |error: io::Error| CommandError::Input(format!("{} cannot be read: {error}", file.display()));
    let opened = File::open(file).map_err(bad)?;
    let known = opened.metadata().map_err(bad)?;
    let size = known.is_file().then_some(known.len());
    Ok((Box::new(BufReader::with_capacity(1 << 16, opened)), size))
}

/// Reads the file into pieces. Ends early where nobody wants them any more.
fn read(source: Box<dyn BufRead + Send>, format: Format, to: &mpsc::Sender<KeyChunk>) {
    let (mut columns, mut seen) = (None, HashSet::new());
    let (mut batch, mut bytes) = (Vec::with_capacity(MOST_IN_A_BATCH), 0);
    for line in InputLines::of(source, LONGEST_LINE) {
        let InputLine { number, bytes: through, text } = match line {
            Ok(line) => line,
            Err(error) => {
                drop(to.blocking_send(KeyChunk::Lines(batch, bytes)));
                drop(to.blocking_send(KeyChunk::Broken(error)));
                return;
            }
        };
        bytes = through;
        let text = text.map_err(|reason| BadField::new("line", reason));
        let record = match (format, &columns) {
            (Format::Jsonl, _) => text.and_then(|text| read_json(&text)),
            (Format::Csv, Some(columns)) => text.and_then(|text| Columns::record(columns, &text)),
            (Format::Csv, None) => {
                match text.map_err(|bad| vec![bad]).and_then(|text| Columns::read(&text)) {
                    Ok(read) => {
                        columns = Some(read);
                        continue;
                    }
                    Err(wrong) => return drop(to.blocking_send(KeyChunk::Header(number, wrong))),
                }
            }
        };
        let record = record.and_then(|record| {
            // Half a digest is enough to know it again.
            let half: Option<[u8; 16]> = record.digest.as_bytes().first_chunk().copied();
            let twice = || BadField::new("sha256", "stands in this file for the second time");
            if seen.insert(half) { Ok(record) } else { Err(twice()) }
        });
        batch.push((number, record));
        if batch.len() >= MOST_IN_A_BATCH {
            let full = std::mem::replace(&mut batch, Vec::with_capacity(MOST_IN_A_BATCH));
            if to.blocking_send(KeyChunk::Lines(full, bytes)).is_err() {
                return;
            }
        }
    }
    if !batch.is_empty() {
        drop(to.blocking_send(KeyChunk::Lines(batch, bytes)));
    }
}
