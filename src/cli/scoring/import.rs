//! `scoregate scoring import`: imports benchmark runs, one per line.
//!
//! A thread reads and validates lines while the previous batch is being stored. Counted runs are on disk. Scores are
//! updated when the import ends, also after an error, and a running server is notified. After a killed import they
//! are updated by a server.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use clap::Args;
use flate2::bufread::MultiGzDecoder;
use tokio::sync::mpsc;

use crate::cli::command_error::{CommandError, CommandOutcome};
use crate::cli::exit::Exit;
use crate::cli::input_file::InputFile;
use crate::cli::input_lines::{InputLine, InputLines};
use crate::cli::printer::{self, Progress};
use crate::cli::serve::{StopSignals, runtime_of_this_thread};
use scoregate_base::clock::Clock;
use scoregate_scoring::{BadRun, ExportLine, ImportEnd, LONGEST_RUN, SuiteTable, sample_runs};

use super::archive_place::ArchivePlace;
use super::import_counts::RunImportCounts;
use super::reader_thread::ReaderThread;
use super::tool_logs::{ToolLogArgs, ToolLogs};

pub(super) const AFTER_HELP: &str = include_str!("../help/scoring_import.txt");

const OTHER_SUITES: &str = "has another suite table than the archive, so its runs are not imported; import it into a \
     new archive, or set the table of the archive with `scoregate scoring suites set` first";
/// Runs in a transaction.
const BATCH: usize = 4_096;
const READ_BUFFER: usize = 1 << 16;
/// Bytes that show what a file is: a byte order mark and the beginning of an object.
const FIRST_BYTES: usize = 8;

#[derive(Debug, Args)]
pub(super) struct ScoringImportArgs {
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

/// A message of the reader thread.
enum RunChunk {
    /// Parsed lines of a file.
    Lines(Arc<str>, Vec<(u64, Result<ExportLine, BadRun>)>),
    /// The suite table of the lines after it.
    Suites(Arc<str>, Arc<SuiteTable>),
    /// A read error, which ends the import.
    Failed(Arc<str>, io::Error),
}

pub(super) fn run(place: &ArchivePlace, args: &ScoringImportArgs) -> CommandOutcome {
    if args.sample {
        let lines = sample_runs(Clock::system().now().wall).map(|record| record.write() + "\n");
        return Ok(printer::data(&lines.collect::<String>()));
    }
    let logs = args
        .tool_logs
        .logs(&args.files)
        .map_err(CommandError::Input)?;
    if let Some(logs) = logs.as_ref().filter(|_| args.tool_logs.is_dry_run()) {
        return Ok(logs.dry_run(&place.path, args.json)?);
    }
    let runtime = runtime_of_this_thread().context("the import cannot be started")?;
    let done = runtime.block_on(async {
        let (done, end) = import(place, args, logs.as_ref()).await?;
        place.publish(end).await;
        Ok(done)
    });
    // The reader may be blocked on standard input.
    runtime.shutdown_background();
    done
}

/// Imports the files.
async fn import(
    place: &ArchivePlace,
    args: &ScoringImportArgs,
    logs: Option<&ToolLogs>,
) -> CommandOutcome<(Exit, ImportEnd)> {
    let clock = Clock::system();
    let sources = RunFile::open_all(&args.files, logs).map_err(CommandError::Input)?;
    let archive = place.open_or_create()?;
    archive.make_room()?;
    let suites = archive.suites()?;
    let import = archive.begin_import()?;
    let size = sources
        .iter()
        .map(|source| source.size)
        .sum::<Option<u64>>();
    let read = Arc::new(AtomicU64::new(0));
    let mut reader =
        RunFile::read_all(sources, &read, &clock, suites).map_err(anyhow::Error::from)?;

    let mut signals = StopSignals::listen()?;
    let progress = Progress::new(size);
    let started = clock.mono();
    let mut counts = RunImportCounts::default();
    let ended = loop {
        let chunk = tokio::select! {
            biased;
            () = signals.wait() => break Err("interrupted: import the same files again to complete".to_owned()),
            chunk = reader.next() => chunk,
        };
        match chunk {
            Ok(None) => break Ok(Ok(())),
            Err(panicked) => break Ok(Err(panicked)),
            Ok(Some(RunChunk::Failed(file, error))) => {
                break Err(format!("{file} cannot be read: {error}"));
            }
            Ok(Some(RunChunk::Suites(file, table))) => {
                if !archive.take_suites(&table, clock.now().wall)? {
                    break Err(format!("{file} {OTHER_SUITES}"));
                }
            }
            Ok(Some(RunChunk::Lines(file, lines))) => {
                if let Err(error) = counts.store(&archive, clock.now().wall, &file, lines) {
                    progress.clear();
                    // Earlier batches are stored.
                    counts.print(args.json, logs);
                    return Err(error.into());
                }
                progress.show(
                    read.load(Ordering::Relaxed),
                    &counts.with_rate(started, clock.mono()),
                );
            }
        }
    };
    progress.show(read.load(Ordering::Relaxed), "updating the scores");
    let end = archive.end_import(import, clock.now().wall)?;
    progress.clear();
    let printed = counts.print(args.json, logs);
    let has_errors = counts.rejected > 0 || logs.is_some_and(|logs| logs.counts().has_errors());
    let exit = match ended {
        Err(reason) => printer::input_error(&reason),
        Ok(Err(panicked)) => printer::fault(&panicked.into()),
        Ok(Ok(())) if printed == Exit::Done && has_errors => Exit::Input,
        Ok(Ok(())) => printed,
    };
    Ok((exit, end))
}

/// An input file.
pub(super) struct RunFile {
    name: Arc<str>,
    file: Box<dyn Read + Send>,
    size: Option<u64>,
}

impl RunFile {
    /// Opens all files before the first is read, so that a wrong name is reported immediately.
    fn open_all(files: &[PathBuf], logs: Option<&ToolLogs>) -> Result<Vec<Self>, String> {
        if let Some(logs) = logs {
            let texts = logs.texts();
            return Ok(texts
                .map(|(path, file)| Self {
                    name: path.display().to_string().into(),
                    file,
                    size: None,
                })
                .collect());
        }
        let open = |file: &PathBuf| {
            Self::open(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))
        };
        files.iter().map(open).collect()
    }

    /// Opens a file, or standard input.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let InputFile { name, reader, size } = InputFile::open(path)?;
        Ok(Self {
            name: name.into(),
            file: reader,
            size,
        })
    }

    /// Its lines. Adds the bytes read to a counter.
    pub(super) fn lines(
        self,
        read: &Arc<AtomicU64>,
    ) -> io::Result<InputLines<Box<dyn BufRead + Send>>> {
        let mut text = decompressed(CountingReader {
            file: self.file,
            read: Arc::clone(read),
        })?;
        let start = text.fill_buf()?;
        let start = start
            .strip_prefix("\u{feff}".as_bytes())
            .unwrap_or(start)
            .trim_ascii_start();
        let is_array = start.starts_with(b"[");
        if is_array || start.starts_with(b"{\n") || start.starts_with(b"{\r\n") {
            let found = if is_array {
                "it is a JSON array"
            } else {
                "its first run has several lines"
            };
            let filter = if is_array { ".[]" } else { "." };
            return Err(io::Error::other(format!(
                "{found}; write one run per line, as `jq -c '{filter}'` does"
            )));
        }
        Ok(InputLines::new(text, LONGEST_RUN))
    }

    /// Reads the files in a thread, one after the other, until one cannot be read.
    fn read_all(
        files: Vec<Self>,
        read: &Arc<AtomicU64>,
        clock: &Clock,
        mut suites: Arc<SuiteTable>,
    ) -> io::Result<ReaderThread<RunChunk>> {
        let read = Arc::clone(read);
        let clock = clock.clone();
        ReaderThread::start(move |to| {
            for file in files {
                if file.read(&read, &clock, &mut suites, to).is_err() {
                    break;
                }
            }
        })
    }

    /// Sends the parsed lines. Fails if the receiver is gone or the file cannot be read.
    fn read(
        self,
        read: &Arc<AtomicU64>,
        clock: &Clock,
        suites: &mut Arc<SuiteTable>,
        to: &mpsc::Sender<RunChunk>,
    ) -> Result<(), ()> {
        let name = Arc::clone(&self.name);
        let failed = |error| {
            to.blocking_send(RunChunk::Failed(Arc::clone(&name), error))
                .map_or(Err(()), |()| Err(()))
        };
        let lines = match self.lines(read) {
            Ok(lines) => lines,
            Err(error) => return failed(error),
        };
        let mut batch = Vec::with_capacity(BATCH);
        let send = |batch| {
            to.blocking_send(RunChunk::Lines(Arc::clone(&name), batch))
                .map_err(|_| ())
        };
        for line in lines {
            let InputLine { number, text, .. } = match line {
                Ok(line) => line,
                Err(error) => {
                    send(batch)?;
                    return failed(error);
                }
            };
            let is_table = text.as_ref().is_ok_and(|text| ExportLine::is_suites(text));
            let record = text
                .map_err(|problem| BadRun {
                    field: "line".into(),
                    problem,
                })
                .and_then(|text| ExportLine::read(&text, clock.now().wall, suites));
            match record {
                Ok(ExportLine::Suites(table)) => {
                    *suites = Arc::new(table);
                    send(std::mem::take(&mut batch))?;
                    let table = RunChunk::Suites(Arc::clone(&name), Arc::clone(suites));
                    to.blocking_send(table).map_err(|_| ())?;
                }
                // The lines after it cannot be validated.
                Err(bad) if is_table => {
                    send(batch)?;
                    return failed(io::Error::other(format!("line {number}: {bad}")));
                }
                record => batch.push((number, record)),
            }
            if batch.len() >= BATCH {
                send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)))?;
            }
        }
        send(batch)
    }
}

/// A file that counts the bytes read.
struct CountingReader {
    file: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Decompresses a gzip file, recognized by its first bytes.
fn decompressed(file: CountingReader) -> io::Result<Box<dyn BufRead + Send>> {
    const GZIP: [u8; 2] = [0x1F, 0x8B];
    let mut file = BufReader::with_capacity(READ_BUFFER, file);
    let mut first = Vec::with_capacity(FIRST_BYTES);
    (&mut file)
        .take(FIRST_BYTES as u64)
        .read_to_end(&mut first)?;
    let is_gzip = first.starts_with(&GZIP);
    let complete = BufReader::with_capacity(READ_BUFFER, io::Cursor::new(first).chain(file));
    if is_gzip {
        return Ok(Box::new(BufReader::with_capacity(
            READ_BUFFER,
            MultiGzDecoder::new(complete),
        )));
    }
    Ok(Box::new(complete))
}
